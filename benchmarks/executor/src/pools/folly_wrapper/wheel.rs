//! A hashed hierarchical timing wheel: 4 levels of 256 slots, ticks of 10 milliseconds.
//!
//! A slot is a doubly linked list of timers through their indices. A timer of level 0 fires in its
//! slot's tick; the slot of a higher level is spread over the lower ones when its time comes.

use std::time::Duration;

/// Of the wheel, as Folly's event loop has it.
pub(super) const TICK: Duration = Duration::from_millis(10);

const LEVELS: usize = 4;
const SLOT_BITS: usize = 8;
const SLOTS: usize = 1 << SLOT_BITS;
/// What is further away fires early; 497 days are for ever here.
const TICKS_MAX: u64 = (1 << (SLOT_BITS * LEVELS)) - 1;
const NONE: u32 = u32::MAX;

/// A timer of the wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimerIndex(u32);

#[derive(Debug)]
pub(super) struct Wheel {
    /// The tick that was handled last.
    now: u64,
    nodes: Vec<Node>,
    /// Timers that were removed.
    free: Vec<u32>,
    /// The first timer of each slot, level by level.
    heads: Vec<u32>,
    /// Armed timers of each level.
    counts: [usize; LEVELS],
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The task whose timer this is.
    id: u64,
    due: u64,
    /// Index into `heads`, or [`NONE`] when it is not armed.
    slot: u32,
    previous: u32,
    next: u32,
}

impl Default for Wheel {
    fn default() -> Self {
        Self {
            now: 0,
            nodes: Vec::new(),
            free: Vec::new(),
            heads: vec![NONE; LEVELS * SLOTS],
            counts: [0; LEVELS],
        }
    }
}

impl Wheel {
    /// The tick that was handled last.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Adds a timer that is not armed.
    pub(super) fn add(&mut self, id: u64) -> TimerIndex {
        let node = Node { id, due: 0, slot: NONE, previous: NONE, next: NONE };
        if let Some(index) = self.free.pop() {
            self.nodes[index as usize] = node;
            return TimerIndex(index);
        }
        self.nodes.push(node);
        TimerIndex(u32::try_from(self.nodes.len() - 1).expect("fewer timers than indices"))
    }

    /// Removes a timer, armed or not.
    pub(super) fn remove(&mut self, timer: TimerIndex) {
        self.unlink(timer.0);
        self.free.push(timer.0);
    }

    /// Lets a timer fire in tick `due`, in the next one at the earliest.
    pub(super) fn arm(&mut self, timer: TimerIndex, due: u64) {
        self.unlink(timer.0);
        self.link(timer.0, due.clamp(self.now + 1, self.now + TICKS_MAX));
    }

    /// Lets a timer not fire.
    pub(super) fn disarm(&mut self, timer: TimerIndex) {
        self.unlink(timer.0);
    }

    /// Handles all ticks up to `to`; the tasks of timers that fire are appended to `fired`.
    pub(super) fn advance(&mut self, to: u64, fired: &mut Vec<u64>) {
        while self.now < to {
            if self.counts == [0; LEVELS] {
                self.now = to;
                return;
            }
            self.now += 1;
            for level in (1..LEVELS).rev() {
                if self.now.trailing_zeros() as usize >= SLOT_BITS * level {
                    self.cascade(level);
                }
            }
            let slot = slot_of(0, self.now);
            while self.heads[slot] != NONE {
                let index = self.heads[slot];
                self.unlink(index);
                fired.push(self.nodes[index as usize].id);
            }
        }
    }

    /// The next tick in which there is something to do.
    pub(super) fn next_tick(&self) -> Option<u64> {
        let epoch = (self.now | (SLOTS as u64 - 1)) + 1;
        if self.counts[0] > 0 {
            let ticks = self.now + 1..=self.now + SLOTS as u64;
            for tick in ticks {
                let cascades = tick == epoch && self.counts[1..] != [0; LEVELS - 1];
                if cascades || self.heads[slot_of(0, tick)] != NONE {
                    return Some(tick);
                }
            }
        }
        (self.counts[1..] != [0; LEVELS - 1]).then_some(epoch)
    }

    /// Spreads the present slot of a level over the levels below.
    fn cascade(&mut self, level: usize) {
        let slot = slot_of(level, self.now);
        while self.heads[slot] != NONE {
            let index = self.heads[slot];
            self.unlink(index);
            self.link(index, self.nodes[index as usize].due);
        }
    }

    fn link(&mut self, index: u32, due: u64) {
        let away = due - self.now;
        let level = (1..LEVELS).rev().find(|&level| away >> (SLOT_BITS * level) > 0).unwrap_or(0);
        let slot = slot_of(level, due);
        let next = self.heads[slot];
        let node = &mut self.nodes[index as usize];
        *node = Node { due, slot: slot as u32, previous: NONE, next, ..*node };
        if next != NONE {
            self.nodes[next as usize].previous = index;
        }
        self.heads[slot] = index;
        self.counts[level] += 1;
    }

    fn unlink(&mut self, index: u32) {
        let Node { slot, previous, next, .. } = self.nodes[index as usize];
        if slot == NONE {
            return;
        }
        match previous {
            NONE => self.heads[slot as usize] = next,
            _ => self.nodes[previous as usize].next = next,
        }
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
        self.nodes[index as usize].slot = NONE;
        self.counts[slot as usize / SLOTS] -= 1;
    }
}

fn slot_of(level: usize, tick: u64) -> usize {
    level * SLOTS + (tick >> (SLOT_BITS * level)) as usize % SLOTS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use platform::{Random, seeds::seeds};

    use super::*;

    /// Far enough for every level but the last to be used and cascaded.
    const FAR: u64 = 140_000;

    #[test]
    fn timers_fire_in_their_tick_whatever_was_done_to_them_before() {
        for seed in seeds(4) {
            let mut random = Random::from_seed(seed);
            let mut wheel = Wheel::default();
            let timers: Vec<_> = (0..50).map(|id| wheel.add(id)).collect();
            let mut due = BTreeMap::new();
            let mut fired = Vec::new();
            while wheel.now() < FAR {
                for _ in 0..random.below(3) {
                    let id = random.below(timers.len() as u64);
                    let timer = timers[id as usize];
                    if random.below(5) == 0 {
                        wheel.disarm(timer);
                        due.remove(&id);
                    } else {
                        let scale = [10, 300, 20_000, 70_000][random.below(4) as usize];
                        let at = wheel.now() + 1 + random.below(scale);
                        wheel.arm(timer, at);
                        due.insert(id, at);
                    }
                }
                let next = due.values().min().copied();
                assert!(wheel.next_tick() <= next || next.is_none(), "seed {seed}");
                let to = wheel.next_tick().unwrap_or(wheel.now() + 1);
                wheel.advance(to, &mut fired);
                for id in fired.drain(..) {
                    assert_eq!(due.remove(&id), Some(to), "seed {seed}");
                }
                assert!(due.values().all(|&at| at > to), "seed {seed}: none is forgotten");
            }
        }
    }

    #[test]
    fn an_empty_wheel_has_nothing_to_do() {
        let mut wheel = Wheel::default();
        let timer = wheel.add(1);
        assert_eq!(wheel.next_tick(), None);
        wheel.arm(timer, 5);
        assert_eq!(wheel.next_tick(), Some(5));
        wheel.remove(timer);
        assert_eq!(wheel.next_tick(), None);
        let mut fired = Vec::new();
        wheel.advance(1_000_000, &mut fired);
        assert!(fired.is_empty());
        assert_eq!(wheel.now(), 1_000_000);
    }
}
