//! What one vBucket has done and has, in numbers that anybody may read without its lock.

use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use document::{CollectionId, VbucketState};
use platform::{Instant, OwnedCounter};

use crate::checkpoint::ReaderPlaces;
use crate::collection_figures::{CollectionFigures, NamedCollections};
use crate::hash_table::{DatatypeCounts, TableCells};
use crate::hlc::Drift;

/// Numbers, and the same as whoever holds the vBucket's lock writes them and anybody reads them.
/// All fields by name: a new one that is not added up does not compile.
macro_rules! numbers {
    (
        $(#[doc = $numbers_doc:tt])+ $numbers:ident;
        $(#[doc = $cells_doc:tt])+ $cells:ident;
        $($(#[doc = $doc:tt])+ $name:ident,)+
    ) => {
        $(#[doc = $numbers_doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $numbers {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        $(#[doc = $cells_doc])+
        #[derive(Debug, Default)]
        pub(crate) struct $cells {
            $($(#[doc = $doc])+ pub(crate) $name: OwnedCounter,)+
        }

        impl $cells {
            pub(crate) fn read(&self) -> $numbers {
                $numbers { $($name: self.$name.get(),)+ }
            }

            /// Writes those that are others than before.
            #[inline]
            pub(crate) fn set(&self, numbers: &$numbers) {
                $(self.$name.set(numbers.$name);)+
            }
        }

        impl AddAssign for $numbers {
            /// Those of both together.
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)+
            }
        }
    };
}

numbers! {
    /// Counters of one vBucket since it was made.
    VbucketStatistics;
    /// The counters as they are counted.
    StatisticCells;
    /// Documents created.
    creations,
    /// Documents changed.
    updates,
    /// Documents deleted by request.
    deletions,
    /// Documents deleted because their time was over.
    expirations,
    /// Successful reads.
    reads,
    /// Mutations refused (CAS, lock, existence).
    rejections,
    /// Queued versions that a newer version replaced before they were flushed.
    deduplications,
    /// Documents deleted to make room, where there is no disk.
    auto_deletions,
    /// Tombstones forgotten, where there is no disk.
    purged_tombstones,
    /// Seqnos that rollbacks have given up.
    rollback_items,
    /// Durable writes begun.
    sync_writes_accepted,
    /// Durable writes committed.
    sync_writes_committed,
    /// Of those, the ones that no majority holds, because there was none.
    sync_writes_committed_not_durable,
    /// Durable writes aborted.
    sync_writes_aborted,
    /// Versions taken that came about elsewhere, tombstones left out.
    foreign_stores,
    /// Tombstones taken that came about elsewhere.
    foreign_deletions,
    /// Versions from elsewhere that did not win, tombstones left out.
    foreign_stores_lost,
    /// Tombstones from elsewhere that did not win.
    foreign_deletions_lost,
    /// Values dropped from memory, with or without the rest of their documents.
    ejections,
    /// Versions queued for the flusher, without those that took the place of one still queued.
    queue_fills,
    /// Versions that it has made durable.
    queue_drains,
}

numbers! {
    /// What one vBucket has now.
    VbucketGauges;
    /// The same as it was published last.
    GaugeCells;
    /// Documents of which nothing is in memory.
    evicted,
    /// Items in the hash table, tombstones included.
    table_items,
    /// Bytes of the hash table without its items.
    tables_bytes,
    /// Keys in the filter of what is on disk and may not be in memory.
    filter_keys,
    /// Bytes of that filter.
    filter_bytes,
    /// Look-ups of keys in the file, and their results, that are in memory.
    lookups,
    /// Documents that clients hold locked.
    locks,
    /// Requests that wait for another role.
    parked,
    /// Durable writes that have not ended.
    sync_writes,
    /// Items that readers of the log have in front of them or behind them.
    log_items,
    /// Items that wait for a flusher.
    queued,
    /// Since when the oldest of them waits, nanoseconds of the monotonic clock; 0: nobody knows.
    queued_since_ns,
    /// Checkpoints.
    checkpoints,
    /// Bytes of checkpoints: items in full although the hash table holds them, too.
    checkpoints_bytes,
    /// Documents of dropped collections that are not erased yet.
    leaving,
    /// 1 for a copy that began empty and has not yet what the active one held then.
    incomplete,
    /// 1 while keys that are to stay in memory come back from the file.
    loading_keys,
}

/// What anybody may read of one vBucket without its lock. Whoever holds that writes it: counters
/// and those of the hash table where they change, gauges at the end of each change. Readers see
/// each number right, but not all of one moment.
#[derive(Debug)]
pub struct VbucketFigures {
    pub(crate) done: StatisticCells,
    pub(crate) table: Arc<TableCells>,
    pub(crate) readers: Arc<ReaderPlaces>,
    pub(crate) collections: Arc<NamedCollections>,
    pub(crate) default_stores: OwnedCounter,
    pub(crate) default_deletions: OwnedCounter,
    gauges: GaugeCells,
    drift: DriftCells,
    state: AtomicU8,
}

#[derive(Debug, Default)]
struct DriftCells {
    total_us: OwnedCounter,
    count: OwnedCounter,
    ahead_exceeded: OwnedCounter,
    behind_exceeded: OwnedCounter,
}

impl VbucketFigures {
    pub(crate) fn new(state: VbucketState) -> Self {
        Self {
            done: StatisticCells::default(),
            table: Arc::default(),
            readers: Arc::default(),
            collections: Arc::default(),
            default_stores: OwnedCounter::default(),
            default_deletions: OwnedCounter::default(),
            gauges: GaugeCells::default(),
            drift: DriftCells::default(),
            state: AtomicU8::new(state as u8),
        }
    }

    #[inline]
    pub(crate) fn publish(&self, state: VbucketState, gauges: &VbucketGauges, drift: Drift) {
        self.gauges.set(gauges);
        if self.state.load(Ordering::Relaxed) != state as u8 {
            self.state.store(state as u8, Ordering::Relaxed);
        }
        // The other three change with the count alone.
        if self.drift.count.get() != drift.count {
            self.drift.total_us.set(drift.total_us);
            self.drift.count.set(drift.count);
            self.drift.ahead_exceeded.set(drift.ahead_exceeded);
            self.drift.behind_exceeded.set(drift.behind_exceeded);
        }
    }

    /// Whether that is what was published last.
    pub(crate) fn shows(&self, state: VbucketState, gauges: &VbucketGauges, drift: Drift) -> bool {
        self.state() == state && self.gauges.read() == *gauges && self.drift() == drift
    }

    /// The role.
    pub fn state(&self) -> VbucketState {
        let state = VbucketState::from_number(self.state.load(Ordering::Relaxed));
        state.expect("only states are written here")
    }

    /// What the vBucket has done.
    pub fn statistics(&self) -> VbucketStatistics {
        self.done.read()
    }

    /// What it has.
    pub fn gauges(&self) -> VbucketGauges {
        self.gauges.read()
    }

    /// Documents, in memory or not, tombstones left out.
    pub fn document_count(&self) -> u64 {
        let in_table = self.gauges.table_items.get();
        in_table.saturating_sub(self.tombstone_count()) + self.gauges.evicted.get()
    }

    /// Documents whose value is only in the file, those that are there whole included.
    pub fn ejected_count(&self) -> u64 {
        self.table.ejected.get() + self.gauges.evicted.get()
    }

    /// Tombstones that are not flushed yet, or not purged.
    pub fn tombstone_count(&self) -> u64 {
        self.table.tombstones.get()
    }

    /// Bytes of documents in memory, without the table that finds them.
    pub fn items_bytes(&self) -> u64 {
        self.table.items_bytes.get()
    }

    /// Documents in memory by the bits of their datatype.
    pub fn datatype_counts(&self) -> DatatypeCounts {
        self.table.datatype_counts()
    }

    /// How far the clocks of others were from this node's.
    pub fn drift(&self) -> Drift {
        Drift {
            total_us: self.drift.total_us.get(),
            count: self.drift.count.get(),
            ahead_exceeded: self.drift.ahead_exceeded.get(),
            behind_exceeded: self.drift.behind_exceeded.get(),
        }
    }

    /// What there is of each collection, the default one first.
    pub fn collections(&self) -> Vec<(CollectionId, CollectionFigures)> {
        let mut all = vec![(CollectionId::DEFAULT, CollectionFigures::default())];
        all.extend(self.collections.read());
        // The rest: what is not of a named collection is of the default one.
        let named = |of: fn(&CollectionFigures) -> u64| all.iter().map(|(_, it)| of(it)).sum();
        let documents: u64 = named(|it| it.documents);
        let reads: u64 = named(|it| it.reads);
        let others = documents + self.gauges.leaving.get();
        let default = CollectionFigures {
            documents: self.document_count().saturating_sub(others),
            items_bytes: self.items_bytes().saturating_sub(named(|it| it.items_bytes)),
            reads: self.done.reads.get().saturating_sub(reads + self.collections.dropped_reads()),
            stores: self.default_stores.get(),
            deletions: self.default_deletions.get(),
        };
        all[0].1 = default;
        all
    }

    /// Items of the log in front of the reader whose cursor has this name; of one that is not
    /// there, none.
    pub fn remaining(&self, cursor_name: &str) -> u64 {
        self.readers.remaining(cursor_name, self.gauges.log_items.get())
    }

    /// Since when the oldest item waits that is to be flushed, if one does.
    pub fn unflushed_since(&self) -> Option<Instant> {
        let since_ns = self.gauges.queued_since_ns.get();
        (since_ns > 0 && self.gauges.queued.get() > 0).then_some(Instant(since_ns))
    }
}
