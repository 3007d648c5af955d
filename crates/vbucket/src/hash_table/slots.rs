//! The slots of a hash table: open addressing with linear probing, a byte of tag beside each slot.
//!
//! A table that doubles has twice the slots that it needs right after it has grown: at nine bytes
//! a slot, up to nineteen bytes a document. This one grows by a quarter, so that 0.70 to 0.875 of
//! its slots are taken while it grows. Capacities are no powers of two; a hash is scaled to its
//! slot by a multiplication.

use std::ops::Range;

use document::{Item, Key};

use super::ItemAction;

/// A slot that nothing was ever in: a search ends here.
const EMPTY: u8 = 0;
/// A slot whose item was removed: a search goes on.
const REMOVED: u8 = 1;
/// Set in the tag of a slot that holds an item; the other seven bits are bits of its hash.
const TAKEN: u8 = 0x80;

/// Slots come in steps of this many.
const CAPACITY_STEP: usize = 16;

/// Items by the hash of their key.
#[derive(Debug, Default)]
pub(super) struct Slots {
    tags: Box<[u8]>,
    items: Box<[Option<Item>]>,
    /// Slots that hold an item.
    taken_count: usize,
    /// Slots whose item was removed, and that searches still pass.
    removed_count: usize,
}

/// What a search of some slots has met.
enum Scan {
    /// The key.
    Found(usize),
    /// The end of the search.
    Empty,
    /// Neither.
    Nothing,
}

impl Slots {
    /// The slot of `key`, whose hash is `hash`.
    pub(super) fn find(&self, hash: u64, key: Key<'_>) -> Option<usize> {
        if self.tags.is_empty() {
            return None;
        }
        let first = self.first_slot(hash);
        match self.scan(first..self.tags.len(), tag_of(hash), key) {
            // At least an eighth of the slots is empty, so the search ends in one of the halves.
            Scan::Nothing => match self.scan(0..first, tag_of(hash), key) {
                Scan::Found(slot) => Some(slot),
                Scan::Empty | Scan::Nothing => None,
            },
            Scan::Found(slot) => Some(slot),
            Scan::Empty => None,
        }
    }

    /// Searches a run of slots.
    fn scan(&self, range: Range<usize>, tag: u8, key: Key<'_>) -> Scan {
        for (&found, slot) in self.tags[range.clone()].iter().zip(range) {
            if found == tag && self.holds(slot, key) {
                return Scan::Found(slot);
            }
            if found == EMPTY {
                return Scan::Empty;
            }
        }
        Scan::Nothing
    }

    /// The item in a slot that [`Slots::find`] has found.
    pub(super) fn item(&self, slot: usize) -> &Item {
        self.items[slot].as_ref().expect(TAKEN_HOLDS)
    }

    /// Puts `item` in the place of the one in `slot`, which has the same key.
    pub(super) fn replace(&mut self, slot: usize, item: Item) -> Item {
        self.items[slot].replace(item).expect(TAKEN_HOLDS)
    }

    /// Adds an item whose key is not here. `hash_of` tells the hash of any item.
    pub(super) fn add(&mut self, hash: u64, item: Item, hash_of: impl Fn(&Item) -> u64) {
        let used_count = self.taken_count + self.removed_count;
        if (used_count + 1) * 8 > self.tags.len() * 7 {
            self.rebuild(capacity_for(self.taken_count + 1), hash_of);
        }
        self.place(hash, item);
    }

    /// Takes the item out of a slot.
    pub(super) fn remove(&mut self, slot: usize) -> Item {
        let item = self.items[slot].take().expect(TAKEN_HOLDS);
        self.taken_count -= 1;
        if self.tags[self.next_slot(slot)] == EMPTY {
            // No search passes here on its way to something.
            self.tags[slot] = EMPTY;
        } else {
            self.tags[slot] = REMOVED;
            self.removed_count += 1;
        }
        item
    }

    /// Makes room for `count` items in all.
    pub(super) fn reserve(&mut self, count: usize, hash_of: impl Fn(&Item) -> u64) {
        let capacity = capacity_for(count);
        if capacity > self.tags.len() {
            self.rebuild(capacity, hash_of);
        }
    }

    /// Goes through at most `slots_max` slots, at least one, from the one that `from` names on.
    /// Returns where to go on: names of slots are the parts of the whole that lie before them, in
    /// units of 2^-32. None at the end.
    pub(super) fn visit(
        &mut self,
        from: u64,
        slots_max: usize,
        mut act: impl FnMut(&Item) -> ItemAction,
        released: &mut Vec<(Item, Option<Item>)>,
    ) -> Option<u64> {
        let capacity = self.tags.len();
        let wide = u64::try_from(capacity).expect("slots are counted in 64 bits");
        let first = usize::try_from((from * wide) >> 32).expect("a slot is below the capacity");
        let end = first.saturating_add(slots_max.max(1)).min(capacity);
        for slot in first..end {
            let Some(item) = &self.items[slot] else { continue };
            match act(item) {
                ItemAction::Keep => {}
                ItemAction::Replace(item) => {
                    let before = self.replace(slot, item.clone());
                    released.push((before, Some(item)));
                }
                ItemAction::Remove => released.push((self.remove(slot), None)),
            }
        }
        let next = u64::try_from(end).expect("slots are counted in 64 bits");
        (end < capacity).then(|| (next << 32).div_ceil(wide))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().flatten()
    }

    pub(super) fn len(&self) -> usize {
        self.taken_count
    }

    /// Bytes of the slots and their tags.
    pub(super) fn bytes(&self) -> usize {
        self.tags.len() * (1 + size_of::<Option<Item>>())
    }

    fn rebuild(&mut self, capacity: usize, hash_of: impl Fn(&Item) -> u64) {
        assert!(capacity > self.taken_count, "a rebuilt table has room for what it held");
        let old = std::mem::take(self);
        self.tags = vec![EMPTY; capacity].into();
        self.items = std::iter::repeat_with(|| None).take(capacity).collect();
        for item in old.items.into_iter().flatten() {
            self.place(hash_of(&item), item);
        }
    }

    /// Puts an item into the first free slot of its search.
    fn place(&mut self, hash: u64, item: Item) {
        let mut slot = self.first_slot(hash);
        while self.tags[slot] & TAKEN != 0 {
            slot = self.next_slot(slot);
        }
        if self.tags[slot] == REMOVED {
            self.removed_count -= 1;
        }
        self.tags[slot] = tag_of(hash);
        self.items[slot] = Some(item);
        self.taken_count += 1;
    }

    fn holds(&self, slot: usize, key: Key<'_>) -> bool {
        self.items[slot].as_ref().is_some_and(|item| item.key() == key)
    }

    /// Where the search for a hash begins: its upper half, scaled to the capacity.
    fn first_slot(&self, hash: u64) -> usize {
        let capacity = u64::try_from(self.tags.len()).expect("slots are counted in 64 bits");
        usize::try_from(((hash >> 32) * capacity) >> 32).expect("a slot is below the capacity")
    }

    fn next_slot(&self, slot: usize) -> usize {
        if slot + 1 == self.tags.len() { 0 } else { slot + 1 }
    }
}

const TAKEN_HOLDS: &str = "a taken slot holds an item";

/// The lower bits of the hash, which the slot does not depend on.
fn tag_of(hash: u64) -> u8 {
    TAKEN | u8::try_from(hash & 0x7f).expect("seven bits fit a byte")
}

/// Slots of which `count` items take seven tenths.
fn capacity_for(count: usize) -> usize {
    (count * 10 / 7 + 1).next_multiple_of(CAPACITY_STEP)
}

#[cfg(test)]
mod tests;
