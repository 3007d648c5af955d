//! All documents of a vBucket by key: the newest version of each, tombstones until they are
//! flushed.

use std::hash::{BuildHasher, Hasher};

use document::{Item, Key};
use foldhash::fast::SeedableRandomState;

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

/// The table, with the counts that statistics need.
#[derive(Debug)]
pub(crate) struct HashTable {
    seed: HashSeed,
    items: hashbrown::HashTable<Item>,
    /// Items that are tombstones.
    pub(crate) tombstone_count: usize,
    /// Items whose value is only in the file.
    pub(crate) ejected_count: usize,
    /// Bytes of all items, slots left out.
    pub(crate) items_bytes: usize,
}

impl HashTable {
    pub(crate) fn new(seed: HashSeed) -> Self {
        Self {
            seed,
            items: hashbrown::HashTable::new(),
            tombstone_count: 0,
            ejected_count: 0,
            items_bytes: 0,
        }
    }

    pub(crate) fn get(&self, key: Key<'_>) -> Option<&Item> {
        self.items.find(self.seed.hash(key.encoded()), |item| item.key() == key)
    }

    /// Makes `item` the version of its key and returns the one before.
    pub(crate) fn insert(&mut self, item: Item) -> Option<Item> {
        self.count(&item, 1);
        let Self { seed, items, .. } = self;
        let hash = seed.hash(item.key().encoded());
        let entry = items.entry(
            hash,
            |other| other.key() == item.key(),
            |other| seed.hash(other.key().encoded()),
        );
        let before = match entry {
            hashbrown::hash_table::Entry::Occupied(mut occupied) => {
                Some(std::mem::replace(occupied.get_mut(), item))
            }
            hashbrown::hash_table::Entry::Vacant(vacant) => {
                vacant.insert(item);
                None
            }
        };
        if let Some(before) = &before {
            self.count(before, -1);
        }
        before
    }

    pub(crate) fn remove(&mut self, key: Key<'_>) -> Option<Item> {
        let hash = self.seed.hash(key.encoded());
        let entry = self.items.find_entry(hash, |item| item.key() == key).ok()?;
        let (item, _) = entry.remove();
        self.count(&item, -1);
        Some(item)
    }

    /// All items, in an order that depends on the seed and the history alone.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.items.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    pub(crate) fn reserve(&mut self, count: usize) {
        let seed = &self.seed;
        self.items.reserve(count, |item| seed.hash(item.key().encoded()));
    }

    /// Bytes of the table itself: a pointer and a control byte for each slot.
    pub(crate) fn table_bytes(&self) -> usize {
        self.items.allocation_size()
    }

    /// Bytes of the items and of the table.
    pub(crate) fn bytes(&self) -> usize {
        self.items_bytes + self.table_bytes()
    }

    fn count(&mut self, item: &Item, sign: isize) {
        let move_by = |count: &mut usize, step: usize| {
            *count = count.checked_add_signed(sign * step.cast_signed()).expect("counts balance");
        };
        move_by(&mut self.items_bytes, item.allocation_size());
        if item.is_deleted() {
            move_by(&mut self.tombstone_count, 1);
        }
        if item.is_ejected() {
            move_by(&mut self.ejected_count, 1);
        }
    }
}
