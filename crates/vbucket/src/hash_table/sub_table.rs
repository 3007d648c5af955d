//! One sub-table of a hash table: a few dozen items in no order, two bytes of tag beside each.
//!
//! Full arrays without gaps beat open addressing at this size. A search compares the tags of all
//! items, eight at a time, and meets a wrong item once in 65 536 of them. Nothing is rehashed when
//! the arrays grow, and a removed item leaves no mark that later searches must pass. Capacities
//! are the size classes of the allocator, so that nothing is lost to its rounding.

use document::{Item, Key};
use platform::allocator::rounded_size;

use super::ItemAction;

/// Tags that a search compares at once.
const STRIDE: usize = 8;

/// The smallest capacity but none.
const CAPACITY_MIN: usize = 4;

/// Items whose hashes share their lower bits.
#[derive(Debug, Default)]
pub(super) struct SubTable {
    /// The upper bits of the hashes, in the order of `items`.
    tags: Vec<u16>,
    items: Vec<Item>,
}

impl SubTable {
    /// A table with room for `count` items.
    pub(super) fn with_room_for(count: usize) -> Self {
        let capacity = capacity_for(count);
        Self { tags: Vec::with_capacity(capacity), items: Vec::with_capacity(capacity) }
    }

    /// The place of `key`, whose hash is `hash`. Good until the next removal.
    pub(super) fn find(&self, hash: u64, key: Key<'_>) -> Option<usize> {
        let tag = tag_of(hash);
        let (strides, rest) = self.tags.as_chunks::<STRIDE>();
        for (number, stride) in strides.iter().enumerate() {
            // Without a way out in between, so that it becomes one comparison of vectors.
            let has_tag = stride.iter().fold(false, |has_tag, &other| has_tag | (other == tag));
            if has_tag && let Some(place) = self.find_among(stride, number * STRIDE, tag, key) {
                return Some(place);
            }
        }
        self.find_among(rest, strides.len() * STRIDE, tag, key)
    }

    fn find_among(&self, tags: &[u16], first: usize, tag: u16, key: Key<'_>) -> Option<usize> {
        let is_it = |(&other, item): (&u16, &Item)| other == tag && item.key() == key;
        tags.iter().zip(&self.items[first..]).position(is_it).map(|place| first + place)
    }

    /// The item at a place that [`SubTable::find`] has found.
    pub(super) fn item(&self, place: usize) -> &Item {
        &self.items[place]
    }

    /// Puts `item` in the place of the one that has the same key.
    pub(super) fn replace(&mut self, place: usize, item: Item) -> Item {
        std::mem::replace(&mut self.items[place], item)
    }

    /// Adds an item whose key is not here.
    pub(super) fn add(&mut self, hash: u64, item: Item) {
        self.push(tag_of(hash), item);
    }

    /// Takes the item out of a place.
    pub(super) fn remove(&mut self, place: usize) -> Item {
        let item = self.take(place).1;
        self.give_back();
        item
    }

    /// Moves the items of which `belongs` says so to a table of their own.
    pub(super) fn split_off(&mut self, belongs: impl Fn(&Item) -> bool) -> Self {
        let mut other = Self::with_room_for(self.len() / 2);
        let mut end = self.len();
        while end > 0 {
            let first = end.saturating_sub(64);
            // Asks for many items before it decides on one: whether an item belongs cannot be
            // guessed, and a processor that guesses wrong waits for one cache miss after another.
            let ask = |bits: u64, item| (bits << 1) | u64::from(belongs(item));
            let bits = self.items[first..end].iter().rev().fold(0, ask);
            for place in (first..end).rev() {
                if (bits >> (place - first)) & 1 == 1 {
                    let (tag, item) = self.take(place);
                    other.push(tag, item);
                }
            }
            end = first;
        }
        self.give_back();
        other
    }

    /// Takes over all items of `other`.
    pub(super) fn merge(&mut self, mut other: Self) {
        let count = self.len() + other.len();
        if count > self.capacity() {
            self.resize(capacity_for(count));
        }
        self.tags.append(&mut other.tags);
        self.items.append(&mut other.items);
    }

    /// Does to each item what `act` says; what leaves the table goes to `removed`.
    pub(super) fn visit(
        &mut self,
        act: &mut impl FnMut(&Item) -> ItemAction,
        removed: &mut Vec<Item>,
    ) {
        // Backwards: what takes the place of a removed item has been visited.
        for place in (0..self.len()).rev() {
            match act(&self.items[place]) {
                ItemAction::Keep => {}
                ItemAction::Replace(item) => {
                    assert!(item.key() == self.items[place].key(), "a replacement has the key");
                    removed.push(self.replace(place, item));
                }
                ItemAction::Remove => removed.push(self.take(place).1),
            }
        }
        self.give_back();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.items.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn capacity(&self) -> usize {
        self.items.capacity()
    }

    fn push(&mut self, tag: u16, item: Item) {
        if self.items.len() == self.capacity() {
            self.resize(capacity_for(self.items.len() + 1));
        }
        self.tags.push(tag);
        self.items.push(item);
    }

    fn take(&mut self, place: usize) -> (u16, Item) {
        (self.tags.swap_remove(place), self.items.swap_remove(place))
    }

    /// Shrinks the arrays once three eighths of them are empty. They grow when they are full, so
    /// that it takes many additions and removals to move them again.
    fn give_back(&mut self) {
        if self.items.len() * 8 < self.capacity() * 5 {
            let capacity = capacity_for(self.items.len());
            if capacity < self.capacity() {
                self.resize(capacity);
            }
        }
    }

    /// Moves to new arrays. Resizing the old ones in place would leave the allocator holding up
    /// to twice what `bytes` tells.
    fn resize(&mut self, capacity: usize) {
        let mut tags = Vec::with_capacity(capacity);
        tags.append(&mut self.tags);
        let mut items = Vec::with_capacity(capacity);
        items.append(&mut self.items);
        (self.tags, self.items) = (tags, items);
    }
}

/// The bits of the hash by which tables are not told apart.
fn tag_of(hash: u64) -> u16 {
    u16::try_from(hash >> 48).expect("sixteen bits are left")
}

/// The smallest size class with `count` elements or more: none, or 4, 5, 6 or 7 times a power of
/// two.
pub(super) fn capacity_for(count: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let above = (count.max(CAPACITY_MIN) - 1).max(CAPACITY_MIN);
    let unit = 1 << (above.ilog2() - CAPACITY_MIN.ilog2());
    count.max(CAPACITY_MIN).next_multiple_of(unit)
}

/// Bytes that the arrays of a table with this capacity take from the allocator.
pub(super) fn arrays_bytes(capacity: usize) -> usize {
    if capacity == 0 {
        return 0;
    }
    rounded_size(capacity * size_of::<u16>()) + rounded_size(capacity * size_of::<Item>())
}

#[cfg(test)]
mod tests {
    use super::capacity_for;

    #[test]
    fn capacities_are_size_classes_of_the_allocator() {
        let mut capacities: Vec<usize> = (0..=160).map(capacity_for).collect();
        assert!((0..=160).zip(&capacities).all(|(count, &capacity)| count <= capacity));
        capacities.dedup();
        let expected =
            [0, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128];
        assert_eq!(capacities[..expected.len()], expected);
        assert_eq!(capacities[expected.len()..], [160]);
    }
}
