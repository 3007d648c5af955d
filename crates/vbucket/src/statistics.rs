//! What one vBucket has done.

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
}
