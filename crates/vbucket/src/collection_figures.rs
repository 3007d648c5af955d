//! What a vBucket has of each collection, for whoever looks without its lock.

use std::ops::AddAssign;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use document::{CollectionId, Deletion, Item};
use platform::OwnedCounter;

/// One collection in one vBucket. Whoever holds the vBucket's lock writes it.
///
/// It begins a line of memory, so that a request has one to wait for where vBuckets take turns.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct CollectionCells {
    pub(crate) id: CollectionId,
    /// 1 until it is dropped; then it stays as long as memory has something of it.
    is_open: OwnedCounter,
    /// Documents alive.
    pub(crate) documents: OwnedCounter,
    /// Bytes of its items in the hash table.
    pub(crate) items_bytes: OwnedCounter,
    pub(crate) reads: OwnedCounter,
    pub(crate) stores: OwnedCounter,
    pub(crate) deletions: OwnedCounter,
}

/// What a vBucket has and has done of one collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollectionFigures {
    /// Documents alive, in memory or not.
    pub documents: u64,
    /// Bytes of its documents and tombstones in memory.
    pub items_bytes: u64,
    /// Reads that found a document.
    pub reads: u64,
    /// Versions stored.
    pub stores: u64,
    /// Documents deleted by request.
    pub deletions: u64,
}

impl AddAssign for CollectionFigures {
    /// Those of both together.
    fn add_assign(&mut self, other: Self) {
        let Self { documents, items_bytes, reads, stores, deletions } = other;
        self.documents += documents;
        self.items_bytes += items_bytes;
        self.reads += reads;
        self.stores += stores;
        self.deletions += deletions;
    }
}

impl CollectionCells {
    pub(crate) fn of(id: CollectionId) -> Self {
        Self {
            id,
            is_open: OwnedCounter::default(),
            documents: OwnedCounter::default(),
            items_bytes: OwnedCounter::default(),
            reads: OwnedCounter::default(),
            stores: OwnedCounter::default(),
            deletions: OwnedCounter::default(),
        }
    }

    fn read(&self) -> CollectionFigures {
        CollectionFigures {
            documents: self.documents.get(),
            items_bytes: self.items_bytes.get(),
            reads: self.reads.get(),
            stores: self.stores.get(),
            deletions: self.deletions.get(),
        }
    }
}

/// Counts that `item` is the newest version of its key now.
#[inline]
pub(crate) fn count_write(item: &Item, stores: &OwnedCounter, deletions: &OwnedCounter) {
    match item.deletion() {
        None => stores.add(1),
        Some(Deletion::Explicit) => deletions.add(1),
        Some(Deletion::Expired) => {}
    }
}

/// The named collections of a vBucket. The list changes under the vBucket's lock, when a collection
/// comes or goes or has its first item in memory; its own lock is held for a look or a change.
#[derive(Debug, Default)]
pub(crate) struct NamedCollections {
    list: Mutex<Vec<Arc<CollectionCells>>>,
    /// Reads of those that are dropped.
    dropped_reads: OwnedCounter,
}

impl NamedCollections {
    /// Those of a collection, which is on the list from now on.
    pub(crate) fn of(&self, id: CollectionId) -> Arc<CollectionCells> {
        let mut list = self.lock();
        match list.binary_search_by_key(&id, |cells| cells.id) {
            Ok(place) => Arc::clone(&list[place]),
            Err(place) => {
                let cells = Arc::new(CollectionCells::of(id));
                list.insert(place, Arc::clone(&cells));
                cells
            }
        }
    }

    /// The collection has come.
    pub(crate) fn open(&self, id: CollectionId) -> Arc<CollectionCells> {
        let cells = self.of(id);
        cells.is_open.set(1);
        cells
    }

    /// The collection is dropped: it has no documents any more.
    pub(crate) fn close(&self, cells: &CollectionCells) {
        self.dropped_reads.add(usize::try_from(cells.reads.get()).unwrap_or(usize::MAX));
        cells.reads.set(0);
        cells.documents.set(0);
        cells.is_open.set(0);
        self.forget_if_gone(cells);
    }

    /// Takes a collection off the list that is dropped and of which memory has nothing.
    pub(crate) fn forget_if_gone(&self, cells: &CollectionCells) {
        if cells.is_open.get() > 0 || cells.items_bytes.get() > 0 {
            return;
        }
        let mut list = self.lock();
        if let Ok(place) = list.binary_search_by_key(&cells.id, |cells| cells.id) {
            list.remove(place);
        }
    }

    /// Reads of collections that are dropped.
    pub(crate) fn dropped_reads(&self) -> u64 {
        self.dropped_reads.get()
    }

    /// What there is of each, in order.
    pub(crate) fn read(&self) -> Vec<(CollectionId, CollectionFigures)> {
        self.lock().iter().map(|cells| (cells.id, cells.read())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<CollectionCells>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
