//! What one vBucket has done.

use std::ops::AddAssign;

/// Counters of one vBucket since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VbucketStatistics {
    /// Documents created.
    pub creations: u64,
    /// Documents changed.
    pub updates: u64,
    /// Documents deleted by request.
    pub deletions: u64,
    /// Documents deleted because their time was over.
    pub expirations: u64,
    /// Successful reads.
    pub reads: u64,
    /// Mutations refused (CAS, lock, existence).
    pub rejections: u64,
    /// Queued versions that a newer version replaced before they were flushed.
    pub deduplications: u64,
    /// Documents deleted to make room, where there is no disk.
    pub auto_deletions: u64,
    /// Tombstones forgotten, where there is no disk.
    pub purged_tombstones: u64,
    /// Seqnos that rollbacks have given up.
    pub rollback_items: u64,
    /// Durable writes begun.
    pub sync_writes_accepted: u64,
    /// Durable writes committed.
    pub sync_writes_committed: u64,
    /// Of those, the ones that no majority holds, because there was none.
    pub sync_writes_committed_not_durable: u64,
    /// Durable writes aborted.
    pub sync_writes_aborted: u64,
    /// Versions taken that came about elsewhere, tombstones left out.
    pub foreign_stores: u64,
    /// Tombstones taken that came about elsewhere.
    pub foreign_deletions: u64,
    /// Versions from elsewhere that did not win, tombstones left out.
    pub foreign_stores_lost: u64,
    /// Tombstones from elsewhere that did not win.
    pub foreign_deletions_lost: u64,
    /// Values dropped from memory, with or without the rest of their documents.
    pub ejections: u64,
    /// Versions queued for the flusher, without those that took the place of one still queued.
    pub queue_fills: u64,
    /// Versions that it has made durable.
    pub queue_drains: u64,
}

impl AddAssign for VbucketStatistics {
    /// What both have done.
    fn add_assign(&mut self, other: Self) {
        // All fields by name: a new one that is not added up does not compile.
        let Self {
            creations,
            updates,
            deletions,
            expirations,
            reads,
            rejections,
            deduplications,
            auto_deletions,
            purged_tombstones,
            rollback_items,
            sync_writes_accepted,
            sync_writes_committed,
            sync_writes_committed_not_durable,
            sync_writes_aborted,
            foreign_stores,
            foreign_deletions,
            foreign_stores_lost,
            foreign_deletions_lost,
            ejections,
            queue_fills,
            queue_drains,
        } = other;
        self.creations += creations;
        self.updates += updates;
        self.deletions += deletions;
        self.expirations += expirations;
        self.reads += reads;
        self.rejections += rejections;
        self.deduplications += deduplications;
        self.auto_deletions += auto_deletions;
        self.purged_tombstones += purged_tombstones;
        self.rollback_items += rollback_items;
        self.sync_writes_accepted += sync_writes_accepted;
        self.sync_writes_committed += sync_writes_committed;
        self.sync_writes_committed_not_durable += sync_writes_committed_not_durable;
        self.sync_writes_aborted += sync_writes_aborted;
        self.foreign_stores += foreign_stores;
        self.foreign_deletions += foreign_deletions;
        self.foreign_stores_lost += foreign_stores_lost;
        self.foreign_deletions_lost += foreign_deletions_lost;
        self.ejections += ejections;
        self.queue_fills += queue_fills;
        self.queue_drains += queue_drains;
    }
}
