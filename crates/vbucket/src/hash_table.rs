//! All documents of a vBucket by key: the newest version of each, tombstones until they are
//! flushed.

mod list;
mod node;
mod sub_table;
mod sub_tables;
mod visit;

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use document::{Item, Key};
use foldhash::fast::SeedableRandomState;
use platform::OwnedCounter;

use sub_tables::{Place, SubTables};

use crate::by_collection::ByCollection;
use crate::collection_figures::{CollectionCells, NamedCollections};
use crate::statistics::VbucketFigures;

pub use visit::{ItemAction, VisitPosition};

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
    sub_tables: SubTables,
    counts: TableCounts,
    /// Rises whenever items may have moved.
    moves: u64,
}

/// Where a key is in a table, or that it is not there. Good as long as nothing comes into the table
/// or leaves it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Located {
    hash: u64,
    place: Option<Place>,
    /// Of the table then.
    moves: u64,
}

/// What is in a table. Whoever has the table writes it, anybody may read it.
#[derive(Debug, Default)]
pub(crate) struct TableCells {
    pub(crate) tombstones: OwnedCounter,
    /// Items whose value is only in the file.
    pub(crate) ejected: OwnedCounter,
    /// Documents by the bits of their datatype.
    datatypes: [OwnedCounter; 8],
    /// Bytes of all items.
    pub(crate) items_bytes: OwnedCounter,
}

/// Counts what comes into a table and leaves it.
#[derive(Debug, Default)]
pub(crate) struct TableCounts {
    cells: Arc<TableCells>,
    collections: Arc<NamedCollections>,
    /// The named collections that have items here.
    named: ByCollection<Arc<CollectionCells>>,
}

/// Documents by the bits of their datatype, tombstones left out.
pub type DatatypeCounts = [usize; 8];

impl HashTable {
    /// An empty table that counts in `counts`.
    pub(crate) fn new(seed: HashSeed, counts: TableCounts) -> Self {
        Self { seed, sub_tables: SubTables::default(), counts, moves: 0 }
    }

    /// Looks `key` up, for who needs its place more than once.
    pub(crate) fn locate(&self, key: Key<'_>) -> Located {
        let hash = self.seed.hash(key.encoded());
        Located { hash, place: self.sub_tables.find(hash, key), moves: self.moves }
    }

    /// The version of a key that was looked up.
    pub(crate) fn at(&self, located: Located) -> Option<&Item> {
        self.check_is_good(located);
        located.place.map(|place| self.sub_tables.item(place))
    }

    pub(crate) fn get(&self, key: Key<'_>) -> Option<&Item> {
        let place = self.sub_tables.find(self.seed.hash(key.encoded()), key)?;
        Some(self.sub_tables.item(place))
    }

    /// Has what is most likely the version of `key` fetched while the caller does something else.
    #[inline]
    pub(crate) fn prefetch(&self, key: Key<'_>) {
        if let Some(item) = self.sub_tables.similar(self.seed.hash(key.encoded())) {
            item.prefetch();
        }
    }

    /// The same of where items of the named collection are counted that was asked for last.
    pub(crate) fn prefetch_last_named(&self) {
        self.counts.named.prefetch_last();
    }

    /// What each change of the table counts in.
    pub(crate) fn cells(&self) -> &TableCells {
        &self.counts.cells
    }

    /// Makes `item` the version of its key and returns the one before.
    pub(crate) fn insert(&mut self, item: Item) -> Option<Item> {
        let located = self.locate(item.key());
        self.insert_at(located, item)
    }

    /// The same where the item's key was looked up before.
    pub(crate) fn insert_at(&mut self, located: Located, item: Item) -> Option<Item> {
        self.check_is_good(located);
        self.counts.add(&item);
        let Some(place) = located.place else {
            let seed = &self.seed;
            self.moves += 1;
            self.sub_tables.add(located.hash, item, |other| seed.hash(other.key().encoded()));
            return None;
        };
        let before = self.sub_tables.replace(place, item);
        self.counts.subtract(&before);
        Some(before)
    }

    pub(crate) fn remove(&mut self, key: Key<'_>) -> Option<Item> {
        let place = self.sub_tables.find(self.seed.hash(key.encoded()), key)?;
        self.moves += 1;
        let item = self.sub_tables.remove(place);
        self.counts.subtract(&item);
        Some(item)
    }

    fn check_is_good(&self, located: Located) {
        assert!(located.moves == self.moves, "a place is good until the table changes");
    }

    /// Does to each item what `act` says, until that were about `slots_max` items or the end. What
    /// leaves the table goes to `removed`. Returns where to go on, `None` at the end.
    ///
    /// An item that stays in the table is met; more than once when the table shrinks between two
    /// calls or by what this one removes.
    pub(crate) fn visit(
        &mut self,
        from: VisitPosition,
        slots_max: usize,
        mut act: impl FnMut(&Item) -> ItemAction,
        removed: &mut Vec<Item>,
    ) -> Option<VisitPosition> {
        self.moves += 1;
        let counts = &mut self.counts;
        let count_and_act = |item: &Item| {
            let action = act(item);
            match &action {
                ItemAction::Keep => {}
                ItemAction::Replace(other) => {
                    counts.add(other);
                    counts.subtract(item);
                }
                ItemAction::Remove => counts.subtract(item),
            }
            action
        };
        self.sub_tables.visit(from, slots_max, count_and_act, removed)
    }

    /// All items, in an order that depends on the seed and the history alone.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.sub_tables.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.sub_tables.len()
    }

    /// Items that are tombstones.
    pub(crate) fn tombstone_count(&self) -> usize {
        narrow(&self.counts.cells.tombstones)
    }

    /// Items whose value is only in the file.
    pub(crate) fn ejected_count(&self) -> usize {
        narrow(&self.counts.cells.ejected)
    }

    /// Documents by the bits of their datatype.
    pub(crate) fn datatype_counts(&self) -> DatatypeCounts {
        self.counts.cells.datatype_counts()
    }

    /// Makes room for `count` items in all.
    pub(crate) fn reserve(&mut self, count: usize) {
        self.moves += 1;
        let seed = &self.seed;
        self.sub_tables.reserve(count, |item| seed.hash(item.key().encoded()));
    }

    /// Bytes of the items and of the table.
    pub(crate) fn bytes(&self) -> usize {
        narrow(&self.counts.cells.items_bytes) + self.slots_bytes()
    }

    /// Bytes of the table, its items left out.
    pub(crate) fn slots_bytes(&self) -> usize {
        self.sub_tables.bytes()
    }
}

impl TableCells {
    pub(crate) fn datatype_counts(&self) -> DatatypeCounts {
        self.datatypes.each_ref().map(narrow)
    }

    fn add(&self, item: &Item) {
        self.items_bytes.add(item.allocation_size());
        if item.is_ejected() {
            self.ejected.add(1);
        }
        match item.is_deleted() {
            true => self.tombstones.add(1),
            false => self.datatypes[usize::from(item.datatype().bits())].add(1),
        }
    }

    fn subtract(&self, item: &Item) {
        self.items_bytes.subtract(item.allocation_size());
        if item.is_ejected() {
            self.ejected.subtract(1);
        }
        match item.is_deleted() {
            true => self.tombstones.subtract(1),
            false => self.datatypes[usize::from(item.datatype().bits())].subtract(1),
        }
    }
}

impl TableCounts {
    /// For the table of a vBucket's documents.
    pub(crate) fn of(figures: &VbucketFigures) -> Self {
        let (cells, collections) = (Arc::clone(&figures.table), Arc::clone(&figures.collections));
        Self { cells, collections, named: ByCollection::default() }
    }

    #[inline]
    fn add(&mut self, item: &Item) {
        self.cells.add(item);
        if !item.key().is_in_default_collection() {
            self.add_named(item);
        }
    }

    fn add_named(&mut self, item: &Item) {
        let id = item.key().collection();
        if !self.named.contains(id) {
            self.named.insert(id, self.collections.of(id));
        }
        if let Some(cells) = self.named.get(id) {
            cells.items_bytes.add(item.allocation_size());
        }
    }

    #[inline]
    fn subtract(&mut self, item: &Item) {
        self.cells.subtract(item);
        if !item.key().is_in_default_collection() {
            self.subtract_named(item);
        }
    }

    fn subtract_named(&mut self, item: &Item) {
        let id = item.key().collection();
        let cells = self.named.get(id).expect("a collection is counted while it has items here");
        cells.items_bytes.subtract(item.allocation_size());
        if cells.items_bytes.get() == 0 {
            self.collections.forget_if_gone(cells);
            self.named.remove(id);
        }
    }
}

/// A count of what is in memory.
fn narrow(count: &OwnedCounter) -> usize {
    usize::try_from(count.get()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
