//! What a bucket has done and how it is.

use std::sync::atomic::{AtomicU64, Ordering};

use document::{Vbid, VbucketState};
use storage::{BacklogUsage, FileSizes, JournalUsage};
use vbucket::eviction::Watermarks;
use vbucket::{DatatypeCounts, Vbucket, VbucketStatistics};

use crate::bucket::Bucket;
use crate::tasks::WarmupProgress;
use crate::write_gate::WriteBlock;

/// Counters of background work.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) rollbacks: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) commits_failed: AtomicU64,
    pub(crate) applies: AtomicU64,
    pub(crate) applies_failed: AtomicU64,
    pub(crate) journal_full_waits: AtomicU64,
    pub(crate) items_persisted: AtomicU64,
    pub(crate) flusher_deduplications: AtomicU64,
    pub(crate) values_fetched: AtomicU64,
    pub(crate) documents_fetched: AtomicU64,
    pub(crate) reads_failed: AtomicU64,
    pub(crate) pager_rounds: AtomicU64,
    pub(crate) evictions: AtomicU64,
    pub(crate) decayer_rounds: AtomicU64,
    pub(crate) expiry_pager_rounds: AtomicU64,
    pub(crate) compressor_visited: AtomicU64,
    pub(crate) compressor_compressed: AtomicU64,
    pub(crate) defragmenter_rounds: AtomicU64,
    pub(crate) defragmenter_moved: AtomicU64,
}

impl Counters {
    pub(crate) fn add(&self, counter: &AtomicU64, count: usize) {
        counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// A bucket at one moment. Sums over vBuckets are taken one vBucket at a time.
#[derive(Clone, Debug)]
pub struct BucketStatistics {
    /// Documents.
    pub document_count: usize,
    /// Documents whose value is only in a file.
    pub ejected_count: usize,
    /// Documents of which nothing is in memory.
    pub evicted_count: usize,
    /// Look-ups of keys in files, and their results, that are in memory.
    pub lookup_count: usize,
    /// Keys in the filters of what is on disk and may not be in memory.
    pub filter_key_count: usize,
    /// Bytes of these filters.
    pub filter_bytes: usize,
    /// Tombstones not flushed yet, or not purged.
    pub tombstone_count: usize,
    /// Items that wait for a flusher.
    pub queued_item_count: usize,
    /// vBuckets that wait for a flusher.
    pub queued_vbucket_count: usize,
    /// Checkpoints of all vBuckets.
    pub checkpoint_count: u64,
    /// Documents by the bits of their datatype.
    pub datatype_counts: DatatypeCounts,
    /// Locked documents.
    pub lock_count: usize,
    /// Bytes of documents in memory, and of the tables that find them.
    pub documents_bytes: u64,
    /// Bytes of the structure of logs.
    pub log_bytes: u64,
    /// Bytes of checkpoints as their quota counts them: items in full although tables hold
    /// them, too.
    pub checkpoints_bytes: u64,
    /// Bytes of checkpoints that have left their logs and wait to be freed.
    pub checkpoints_pending_bytes: u64,
    /// Items that have left logs.
    pub checkpoint_items_removed: u64,
    /// Bytes of logs that they and their slots were.
    pub checkpoint_bytes_removed: u64,
    /// Bytes above which an open checkpoint is closed while there are streams.
    pub checkpoint_bytes_max: usize,
    /// Bytes that checkpoints may take.
    pub checkpoints_quota_bytes: u64,
    /// Bytes of checkpoints from which on memory is recovered.
    pub checkpoints_upper_mark_bytes: u64,
    /// Bytes of checkpoints down to which it is recovered.
    pub checkpoints_lower_mark_bytes: u64,
    /// Runs of the recovery.
    pub checkpoint_recoveries: u64,
    /// Cursors of streams that it dropped.
    pub cursors_dropped: u64,
    /// Writes refused because of checkpoints.
    pub checkpoint_refusals: u64,
    /// Bytes that documents may take.
    pub memory_quota_bytes: u64,
    /// Bytes in use at which the pager stops, and above which it begins.
    pub watermarks: Watermarks,
    /// Parts of the quota: the low watermark, the high one, the one above which writes are refused.
    pub memory_ratios: [f64; 3],
    /// Bytes above which writes are refused.
    pub used_bytes_max: u64,
    /// Sums of what the vBuckets have done.
    pub vbuckets: VbucketStatistics,
    /// vBuckets by their role: active, replica, pending, dead.
    pub vbucket_counts: [usize; 4],
    /// Documents of active vBuckets.
    pub active_document_count: usize,
    /// Requests that wait for pending vBuckets to take up another role.
    pub parked_count: usize,
    /// Rollbacks of vBuckets.
    pub rollbacks: u64,
    /// Commits of vBucket files.
    pub commits: u64,
    /// Commits that failed (and are tried again).
    pub commits_failed: u64,
    /// Items that became durable.
    pub items_persisted: u64,
    /// The journal; `None` without one.
    pub journal: Option<JournalUsage>,
    /// How far files are behind it.
    pub backlog: BacklogUsage,
    /// Files brought up to date with it.
    pub applies: u64,
    /// Files that could not be (which is tried again).
    pub applies_failed: u64,
    /// Flushes that waited for room in it.
    pub journal_full_waits: u64,
    /// Queued versions that a newer one in the same flush made superfluous.
    pub flusher_deduplications: u64,
    /// Values fetched for requests.
    pub values_fetched: u64,
    /// Keys that were not in memory and were looked up in files.
    pub documents_fetched: u64,
    /// Requests that wait for values.
    pub fetches_waiting: usize,
    /// Fetches that failed.
    pub reads_failed: u64,
    /// Rounds of the expiry pager.
    pub expiry_pager_rounds: u64,
    /// Rounds of the item pager.
    pub pager_rounds: u64,
    /// Rounds of the decayer of frequency counters.
    pub decayer_rounds: u64,
    /// Items that the compressor has looked at.
    pub compressor_visited: u64,
    /// Values that it has compressed.
    pub compressor_compressed: u64,
    /// Rounds of the defragmenter.
    pub defragmenter_rounds: u64,
    /// Documents that it has moved.
    pub defragmenter_moved: u64,
    /// Writes refused because of memory.
    pub memory_refusals: u64,
    /// Writes refused because of the disk.
    pub disk_refusals: u64,
    /// Why writes are refused now, if they are.
    pub disk_block: Option<WriteBlock>,
    /// vBuckets whose files are damaged: out of service, refusing writes, or in part.
    pub damaged_vbucket_count: usize,
    /// How far loading has come.
    pub warmup: WarmupProgress,
}

impl Bucket {
    /// The bucket as it is now.
    pub fn statistics(&self) -> BucketStatistics {
        let core = &self.0;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut statistics = BucketStatistics {
            document_count: 0,
            ejected_count: 0,
            evicted_count: 0,
            lookup_count: 0,
            filter_key_count: 0,
            filter_bytes: 0,
            tombstone_count: 0,
            queued_item_count: 0,
            queued_vbucket_count: core.flush_queues.waiting_count(),
            checkpoint_count: 0,
            datatype_counts: DatatypeCounts::default(),
            lock_count: 0,
            documents_bytes: core.account.items_bytes() + core.account.tables_bytes(),
            log_bytes: core.account.log_bytes(),
            checkpoints_bytes: core.account.checkpoints_bytes(),
            checkpoints_pending_bytes: core.account.pending_destruction_bytes(),
            checkpoint_items_removed: load(&core.destroyers.items_removed),
            checkpoint_bytes_removed: load(&core.destroyers.bytes_removed),
            checkpoint_bytes_max: core.account.checkpoint_limits().with_streams_bytes,
            checkpoints_quota_bytes: core.checkpoint_marks.quota_bytes(),
            checkpoints_upper_mark_bytes: core.checkpoint_marks.upper_bytes(),
            checkpoints_lower_mark_bytes: core.checkpoint_marks.lower_bytes(),
            checkpoint_recoveries: load(&core.checkpoint_recovery.runs),
            cursors_dropped: load(&core.checkpoint_recovery.cursors_dropped),
            checkpoint_refusals: load(&core.gate.checkpoint_refusals),
            memory_quota_bytes: core.limits.quota_bytes(),
            watermarks: core.limits.watermarks(),
            memory_ratios: core.limits.ratios(),
            used_bytes_max: core.limits.mutation_bytes_max(),
            vbuckets: VbucketStatistics::default(),
            vbucket_counts: [0; 4],
            active_document_count: 0,
            parked_count: 0,
            rollbacks: load(&core.counters.rollbacks),
            commits: load(&core.counters.commits),
            commits_failed: load(&core.counters.commits_failed),
            items_persisted: load(&core.counters.items_persisted),
            journal: core.store.journal_usage(),
            backlog: core.store.backlog(),
            applies: load(&core.counters.applies),
            applies_failed: load(&core.counters.applies_failed),
            journal_full_waits: load(&core.counters.journal_full_waits),
            flusher_deduplications: load(&core.counters.flusher_deduplications),
            values_fetched: load(&core.counters.values_fetched),
            documents_fetched: load(&core.counters.documents_fetched),
            fetches_waiting: core.fetch_queue.waiting_count(),
            reads_failed: load(&core.counters.reads_failed),
            expiry_pager_rounds: load(&core.counters.expiry_pager_rounds),
            pager_rounds: load(&core.counters.pager_rounds),
            decayer_rounds: load(&core.counters.decayer_rounds),
            compressor_visited: load(&core.counters.compressor_visited),
            compressor_compressed: load(&core.counters.compressor_compressed),
            defragmenter_rounds: load(&core.counters.defragmenter_rounds),
            defragmenter_moved: load(&core.counters.defragmenter_moved),
            memory_refusals: load(&core.gate.memory_refusals),
            disk_refusals: load(&core.gate.disk_refusals),
            disk_block: core.gate.disk_block(),
            damaged_vbucket_count: core.damaged_count(),
            warmup: core.warmup.progress(core.clock.now()),
        };
        self.for_each_vbucket(|_, vbucket| statistics.add(vbucket));
        statistics
    }

    /// Looks at every loaded vBucket, one lock at a time. `look` must not block.
    pub fn for_each_vbucket(&self, mut look: impl FnMut(Vbid, &Vbucket)) {
        for (vbid, slot) in self.0.slots() {
            if let Some(vbucket) = slot.lock().as_ref() {
                look(vbid, vbucket);
            }
        }
    }
}

impl Bucket {
    /// Bytes of all vBucket files, and of what in them is live. Asks the system for every file:
    /// not for front-end workers in a hurry.
    pub fn file_sizes(&self) -> FileSizes {
        let mut sum = FileSizes::default();
        for (vbid, _) in self.0.slots() {
            if let Ok(sizes) = self.0.store.file_sizes(vbid) {
                sum.file_bytes += sizes.file_bytes;
                sum.live_bytes += sizes.live_bytes;
            }
        }
        sum
    }

    /// Looks at one vBucket, if it is loaded. `look` must not block.
    pub fn with_vbucket(&self, vbid: Vbid, look: impl FnOnce(&Vbucket)) {
        let Some(slot) = self.0.slot(vbid) else { return };
        if let Some(vbucket) = slot.lock().as_ref() {
            look(vbucket);
        }
    }
}

impl BucketStatistics {
    /// All bytes that the bucket takes.
    pub fn used_bytes(&self) -> u64 {
        self.documents_bytes + self.log_bytes
    }

    /// Writes and syncs that failed, of the journal and of files; all of them are made up for.
    pub fn write_failures(&self) -> u64 {
        let journal = self.journal.map_or(0, |journal| journal.failure_count);
        self.commits_failed + self.applies_failed + journal
    }

    fn add(&mut self, vbucket: &Vbucket) {
        self.document_count += vbucket.document_count();
        self.ejected_count += vbucket.ejected_count();
        self.parked_count += vbucket.parked_count();
        match vbucket.state() {
            VbucketState::Active => {
                self.vbucket_counts[0] += 1;
                self.active_document_count += vbucket.document_count();
            }
            VbucketState::Replica => self.vbucket_counts[1] += 1,
            VbucketState::Pending => self.vbucket_counts[2] += 1,
            VbucketState::Dead => self.vbucket_counts[3] += 1,
        }
        self.evicted_count += vbucket.document_count() - vbucket.document_count_in_memory();
        self.lookup_count += vbucket.lookup_count();
        self.filter_key_count += vbucket.key_filter().key_count();
        self.filter_bytes += vbucket.key_filter().bytes();
        self.tombstone_count += vbucket.tombstone_count();
        self.queued_item_count += vbucket.checkpoints().unflushed_count();
        self.checkpoint_count += vbucket.checkpoints().checkpoint_count();
        self.lock_count += vbucket.lock_count();
        for (sum, count) in self.datatype_counts.iter_mut().zip(vbucket.datatype_counts()) {
            *sum += count;
        }
        let (sum, one) = (&mut self.vbuckets, vbucket.statistics());
        sum.creations += one.creations;
        sum.updates += one.updates;
        sum.deletions += one.deletions;
        sum.expirations += one.expirations;
        sum.reads += one.reads;
        sum.rejections += one.rejections;
        sum.deduplications += one.deduplications;
        sum.ejections += one.ejections;
        sum.auto_deletions += one.auto_deletions;
        sum.purged_tombstones += one.purged_tombstones;
        sum.rollback_items += one.rollback_items;
    }
}
