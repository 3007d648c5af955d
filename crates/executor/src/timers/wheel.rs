//! A hashed hierarchical timer wheel: inserting, removing and finding the next entry take constant
//! time, whatever the number of entries.
//!
//! Ticks are numbers of 64 bits, cut into digits of 6 bits, a level for each. An entry stands on
//! the level of the highest digit in which its tick differs from the present one, in the slot of
//! that digit's value (Varghese and Lauck, "Hashed and hierarchical timing wheels", scheme 7):
//!
//! ```text
//! level 0   64 slots of  1 tick        |.|x|.|.|x| ... |.|    due together
//! level 1   64 slots of 64 ticks       |.|.|x|.|.| ... |.|    moved to level 0 in time
//! level 2   64 slots of 4096 ticks     |.|.|.|x|.| ... |.|    moved to level 1 or 0
//! ...
//! level 10  covers the rest of the 64 bits: there is no tick too far away
//! ```
//!
//! A level's slots at or before the present digit are empty, except on level 0 the present one. So
//! the next entry is in the first occupied slot of the lowest occupied level, which a bitmap a
//! level gives in one instruction.

const DIGIT_BITS: u32 = 6;
const SLOT_COUNT: usize = 1 << DIGIT_BITS;
const LEVEL_COUNT: usize = 11;
const _: () = assert!(LEVEL_COUNT as u32 * DIGIT_BITS >= u64::BITS);
const NIL: u32 = u32::MAX;

/// Entries by tick. Within a tick they keep the order of insertion as far as they were inserted on
/// the same level.
#[derive(Debug)]
pub(crate) struct Wheel<T> {
    /// Nothing before this tick is left.
    now: u64,
    levels: Box<[Level; LEVEL_COUNT]>,
    nodes: Vec<Node<T>>,
    /// The first of the unused nodes, which are linked by `next`.
    free: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    /// Bit n: slot n has entries.
    occupied: u64,
    /// The first entry of each slot. A slot's entries are a ring.
    first: [u32; SLOT_COUNT],
}

#[derive(Debug)]
struct Node<T> {
    /// `None` while unused.
    value: Option<T>,
    tick: u64,
    next: u32,
    previous: u32,
    level: u8,
    slot: u8,
}

impl<T> Wheel<T> {
    pub(crate) fn new() -> Self {
        let level = Level { occupied: 0, first: [NIL; SLOT_COUNT] };
        Self {
            now: 0,
            levels: Box::new([level; LEVEL_COUNT]),
            nodes: Vec::new(),
            free: NIL,
            len: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds `value`, to be popped at `tick`, or as soon as possible when that is over. The answer
    /// names the entry until it is popped or removed.
    pub(crate) fn insert(&mut self, tick: u64, value: T) -> u32 {
        let node = Node { value: Some(value), tick, next: NIL, previous: NIL, level: 0, slot: 0 };
        let entry = if self.free == NIL {
            self.nodes.push(node);
            u32::try_from(self.nodes.len() - 1).expect("a wheel has room for 4 billion entries")
        } else {
            let entry = self.free;
            self.free = self.nodes[entry as usize].next;
            self.nodes[entry as usize] = node;
            entry
        };
        self.len += 1;
        self.link(entry);
        entry
    }

    /// Takes an entry out.
    pub(crate) fn remove(&mut self, entry: u32) -> T {
        self.unlink(entry);
        let node = &mut self.nodes[entry as usize];
        let value = node.value.take().expect("only entries in the wheel are removed");
        node.next = self.free;
        self.free = entry;
        self.len -= 1;
        value
    }

    /// Moves time on to `now`, or to the first entry that is due until then, and takes that out.
    pub(crate) fn pop(&mut self, now: u64) -> Option<T> {
        while let Some((level, slot, start)) = self.next_slot()
            && start <= now
        {
            // Time never goes back: an entry that was late when it came is due at once.
            self.now = self.now.max(start);
            let first = self.levels[level].first[slot];
            if level == 0 {
                return Some(self.remove(first));
            }
            self.move_down(level, slot);
        }
        self.now = self.now.max(now);
        None
    }

    /// A tick that nothing is due before. Time must be moved on then, though perhaps nothing is due
    /// at it yet: entries far away are looked at a few times on their way.
    pub(crate) fn next_tick(&self) -> Option<u64> {
        self.next_slot().map(|(_, _, start)| start)
    }

    /// The first occupied slot and the tick at which it begins.
    fn next_slot(&self) -> Option<(usize, usize, u64)> {
        let level = self.levels.iter().position(|level| level.occupied != 0)?;
        let slot = self.levels[level].occupied.trailing_zeros();
        let shift = level as u32 * DIGIT_BITS;
        // The digits above this level are those of the present.
        let above = (u64::MAX << shift).checked_shl(DIGIT_BITS).unwrap_or(0);
        Some((level, slot as usize, self.now & above | u64::from(slot) << shift))
    }

    fn move_down(&mut self, level: usize, slot: usize) {
        while self.levels[level].occupied & 1 << slot != 0 {
            let entry = self.levels[level].first[slot];
            self.unlink(entry);
            self.link(entry);
        }
    }

    fn link(&mut self, entry: u32) {
        let tick = self.nodes[entry as usize].tick.max(self.now);
        let level = (tick ^ self.now).checked_ilog2().unwrap_or(0) / DIGIT_BITS;
        let slot = (tick >> (level * DIGIT_BITS)) as usize % SLOT_COUNT;
        let list = &mut self.levels[level as usize];
        let first = list.first[slot];
        list.occupied |= 1 << slot;
        if first == NIL {
            list.first[slot] = entry;
        }
        // Before the first one of a ring is behind its last one.
        let next = if first == NIL { entry } else { first };
        let previous = if first == NIL { entry } else { self.nodes[first as usize].previous };
        self.nodes[previous as usize].next = entry;
        self.nodes[next as usize].previous = entry;
        let node = &mut self.nodes[entry as usize];
        (node.next, node.previous) = (next, previous);
        (node.level, node.slot) = (level as u8, slot as u8);
    }

    fn unlink(&mut self, entry: u32) {
        let Node { next, previous, level, slot, .. } = self.nodes[entry as usize];
        let list = &mut self.levels[usize::from(level)];
        if next == entry {
            list.first[usize::from(slot)] = NIL;
            list.occupied &= !(1 << slot);
            return;
        }
        if list.first[usize::from(slot)] == entry {
            list.first[usize::from(slot)] = next;
        }
        self.nodes[previous as usize].next = next;
        self.nodes[next as usize].previous = previous;
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests;
