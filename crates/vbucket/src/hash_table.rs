//! All documents of a vBucket by key: the newest version of each, tombstones until they are
//! flushed.

mod slots;

use std::hash::{BuildHasher, Hasher};

use document::{Item, Key};
use foldhash::fast::SeedableRandomState;

use slots::Slots;

/// Decides where keys land in the tables. Random in production, so that nobody can choose keys
/// that collide; fixed under test.
#[derive(Clone)]
pub struct HashSeed(SeedableRandomState);

impl HashSeed {
    /// The same seed gives the same tables.
    pub fn new(seed: u64) -> Self {
        Self(SeedableRandomState::with_seed(seed, foldhash::SharedSeed::global_fixed()))
    }

    fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write(key);
        hasher.finish()
    }
}

impl std::fmt::Debug for HashSeed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("HashSeed")
    }
}

/// What a visitor wants done with an item.
#[derive(Debug)]
pub enum ItemAction {
    /// Nothing.
    Keep,
    /// Another form of the same version: without its value, or compressed.
    Replace(Item),
    /// It leaves memory.
    Remove,
}

/// Where a visit of a table goes on. It outlives changes of the table: items that come, go or move
/// meanwhile may be met twice or not at all, and the visit ends nevertheless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VisitPosition(u64);

impl VisitPosition {
    /// Somewhere inside: so many parts of 2^32 of the way.
    pub fn inside(parts: u32) -> Self {
        Self(u64::from(parts))
    }
}

/// The table, with the counts that statistics need.
#[derive(Debug)]
pub(crate) struct HashTable {
    seed: HashSeed,
    slots: Slots,
    /// Items that are tombstones.
    pub(crate) tombstone_count: usize,
    /// Items whose value is only in the file.
    pub(crate) ejected_count: usize,
    /// Documents by the bits of their datatype.
    pub(crate) datatype_counts: DatatypeCounts,
    /// Bytes of all items, slots left out.
    items_bytes: usize,
}

/// Documents by the bits of their datatype, tombstones left out.
pub type DatatypeCounts = [usize; 8];

impl HashTable {
    pub(crate) fn new(seed: HashSeed) -> Self {
        Self {
            seed,
            slots: Slots::default(),
            tombstone_count: 0,
            ejected_count: 0,
            datatype_counts: DatatypeCounts::default(),
            items_bytes: 0,
        }
    }

    pub(crate) fn get(&self, key: Key<'_>) -> Option<&Item> {
        let slot = self.slots.find(self.seed.hash(key.encoded()), key)?;
        Some(self.slots.item(slot))
    }

    /// Makes `item` the version of its key and returns the one before.
    pub(crate) fn insert(&mut self, item: Item) -> Option<Item> {
        self.count(&item, 1);
        let hash = self.seed.hash(item.key().encoded());
        let Some(slot) = self.slots.find(hash, item.key()) else {
            let seed = &self.seed;
            self.slots.add(hash, item, |other| seed.hash(other.key().encoded()));
            return None;
        };
        let before = self.slots.replace(slot, item);
        self.count(&before, -1);
        Some(before)
    }

    pub(crate) fn remove(&mut self, key: Key<'_>) -> Option<Item> {
        let slot = self.slots.find(self.seed.hash(key.encoded()), key)?;
        let item = self.slots.remove(slot);
        self.count(&item, -1);
        Some(item)
    }

    /// Shows a portion of the items to `act`, at most `slots_max` slots' worth, and does what it
    /// says. What leaves the table goes to `released`. Returns where to go on, none at the end.
    pub(crate) fn visit(
        &mut self,
        from: VisitPosition,
        slots_max: usize,
        act: impl FnMut(&Item) -> ItemAction,
        released: &mut Vec<Item>,
    ) -> Option<VisitPosition> {
        let mut changed = Vec::new();
        let next = self.slots.visit(from.0, slots_max, act, &mut changed);
        for (before, after) in changed {
            if let Some(after) = after {
                self.count(&after, 1);
            }
            self.count(&before, -1);
            released.push(before);
        }
        next.map(VisitPosition)
    }

    /// All items, in an order that depends on the seed and the history alone.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.slots.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Makes room for `count` items in all.
    pub(crate) fn reserve(&mut self, count: usize) {
        let seed = &self.seed;
        self.slots.reserve(count, |item| seed.hash(item.key().encoded()));
    }

    /// Bytes of the items and of the slots.
    pub(crate) fn bytes(&self) -> usize {
        self.items_bytes + self.slots.bytes()
    }

    /// Bytes of the slots.
    pub(crate) fn slots_bytes(&self) -> usize {
        self.slots.bytes()
    }

    fn count(&mut self, item: &Item, sign: isize) {
        let move_by = |count: &mut usize, step: usize| {
            *count = count.checked_add_signed(sign * step.cast_signed()).expect("counts balance");
        };
        move_by(&mut self.items_bytes, item.allocation_size());
        if item.is_deleted() {
            move_by(&mut self.tombstone_count, 1);
        } else {
            move_by(&mut self.datatype_counts[usize::from(item.datatype().bits())], 1);
        }
        if item.is_ejected() {
            move_by(&mut self.ejected_count, 1);
        }
    }
}
