//! Counts of what a bucket does behind its clients' backs.

use std::sync::atomic::{AtomicU64, Ordering};

use super::timings::Timings;

/// Counts of background work, and how long it took. Anybody may add.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) timings: Timings,

    // What became durable.
    /// Batches: commits of vBucket files or, with a journal, parts of its groups.
    pub(crate) commits: AtomicU64,
    /// Those that failed, and are tried again.
    pub(crate) commits_failed: AtomicU64,
    /// Items in them.
    pub(crate) items_persisted: AtomicU64,
    /// Queued versions that a newer one in the same flush made superfluous.
    pub(crate) flusher_deduplications: AtomicU64,
    /// Flushes that waited for room in the journal.
    pub(crate) journal_full_waits: AtomicU64,
    /// Files brought up to date with the journal.
    pub(crate) applies: AtomicU64,
    /// Files that could not be, which is tried again.
    pub(crate) applies_failed: AtomicU64,
    /// Rollbacks of vBuckets.
    pub(crate) rollbacks: AtomicU64,

    // What was read back.
    /// Values fetched for requests.
    pub(crate) values_fetched: AtomicU64,
    /// Keys that were not in memory and were looked up in files.
    pub(crate) documents_fetched: AtomicU64,
    /// Fetches that failed.
    pub(crate) reads_failed: AtomicU64,

    // What was done to documents in memory.
    /// Rounds of the item pager.
    pub(crate) pager_rounds: AtomicU64,
    /// Documents that it evicted, and those that writers did.
    pub(crate) evictions: AtomicU64,
    /// Rounds of the decayer of frequency counters.
    pub(crate) decayer_rounds: AtomicU64,
    /// Rounds of the expiry pager.
    pub(crate) expiry_pager_rounds: AtomicU64,
    /// Items that the compressor has looked at.
    pub(crate) compressor_visited: AtomicU64,
    /// Values that it has compressed.
    pub(crate) compressor_compressed: AtomicU64,
    /// Rounds of the defragmenter.
    pub(crate) defragmenter_rounds: AtomicU64,
    /// Documents that it has moved.
    pub(crate) defragmenter_moved: AtomicU64,
}

impl Counters {
    /// Adds to one of them.
    pub(crate) fn add(&self, counter: &AtomicU64, count: usize) {
        counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}
