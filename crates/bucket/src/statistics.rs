//! What a bucket has done and how it is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use document::{CollectionId, Vbid, VbucketState};
use platform::Instant;
use storage::{BacklogUsage, FileSizes, JournalUsage};
use vbucket::eviction::Watermarks;
use vbucket::{DatatypeCounts, Drift, VbucketFigures, VbucketStatistics};

use crate::core::{Bucket, VbucketSlot, WriteBlock};
use crate::start::WarmupProgress;
use crate::state_statistics::{StateStatistics, place_of};

/// A bucket at one moment. Sums over vBuckets are of what each has published, and take no lock that
/// a request waits for.
#[derive(Clone, Debug)]
pub struct BucketStatistics {
    // vBuckets, and how far they are loaded.
    /// vBuckets by their role: active, replica, pending, dead.
    pub by_state: [StateStatistics; 4],
    /// vBuckets whose files are damaged: out of service, refusing writes, or in part.
    pub damaged_vbucket_count: usize,
    /// Copies that do not have yet what the active ones held when these were first heard.
    pub incomplete_count: usize,
    /// Requests that wait for pending vBuckets to take up another role.
    pub parked_count: usize,
    /// How far loading has come.
    pub warmup: WarmupProgress,
    /// Sums of what the vBuckets have done.
    pub vbuckets: VbucketStatistics,
    /// How far the clocks of others were from this node's, in active vBuckets.
    pub active_drift: Drift,
    /// The same in replicas.
    pub replica_drift: Drift,

    // Documents.
    /// Documents.
    pub document_count: usize,
    /// Documents of active vBuckets.
    pub active_document_count: usize,
    /// Documents whose value is only in a file.
    pub ejected_count: usize,
    /// Documents of which nothing is in memory.
    pub evicted_count: usize,
    /// vBuckets whose keys are to stay in memory and are not all there yet.
    pub loading_keys_count: usize,
    /// Tombstones not flushed yet, or not purged.
    pub tombstone_count: usize,
    /// Locked documents.
    pub lock_count: usize,
    /// Documents by the bits of their datatype.
    pub datatype_counts: DatatypeCounts,
    /// Look-ups of keys in files, and their results, that are in memory.
    pub lookup_count: usize,
    /// Keys in the filters of what is on disk and may not be in memory.
    pub filter_key_count: usize,
    /// Bytes of these filters.
    pub filter_bytes: usize,

    // Memory: what is in use, and what may be.
    /// Bytes of documents in memory, and of the tables that find them.
    pub documents_bytes: u64,
    /// The part of them that the tables are.
    pub tables_bytes: u64,
    /// Bytes of the structure of logs.
    pub log_bytes: u64,
    /// Bytes that documents may take.
    pub memory_quota_bytes: u64,
    /// Bytes in use at which the pager stops, and above which it begins.
    pub watermarks: Watermarks,
    /// Parts of the quota: the low watermark, the high one, the one above which writes are refused.
    pub memory_ratios: [f64; 3],
    /// Bytes above which writes are refused.
    pub used_bytes_max: u64,

    // Logs: their memory, and its recovery.
    /// Checkpoints of all vBuckets.
    pub checkpoint_count: u64,
    /// Bytes of checkpoints as their quota counts them: items in full although tables hold
    /// them, too.
    pub checkpoints_bytes: u64,
    /// Bytes of checkpoints that have left their logs and wait to be freed.
    pub checkpoints_pending_bytes: u64,
    /// Bytes that checkpoints may take.
    pub checkpoints_quota_bytes: u64,
    /// Bytes of checkpoints from which on memory is recovered.
    pub checkpoints_upper_mark_bytes: u64,
    /// Bytes of checkpoints down to which it is recovered.
    pub checkpoints_lower_mark_bytes: u64,
    /// Bytes above which an open checkpoint is closed while there are streams.
    pub checkpoint_bytes_max: usize,
    /// Items that have left logs.
    pub checkpoint_items_removed: u64,
    /// Bytes of logs that they and their slots were.
    pub checkpoint_bytes_removed: u64,
    /// Runs of the recovery.
    pub checkpoint_recoveries: u64,
    /// Cursors of streams that it dropped.
    pub cursors_dropped: u64,

    // Writes that were refused, and why some are now.
    /// Writes refused because of memory.
    pub memory_refusals: u64,
    /// Writes refused because of checkpoints.
    pub checkpoint_refusals: u64,
    /// Writes refused because of the disk.
    pub disk_refusals: u64,
    /// Why writes are refused now, if they are.
    pub disk_block: Option<WriteBlock>,

    // The way to the disk.
    /// Items that wait for a flusher.
    pub queued_item_count: usize,
    /// vBuckets that wait for a flusher.
    pub queued_vbucket_count: usize,
    /// How long the oldest write has waited that is not durable; zero when all are.
    pub oldest_unflushed: Duration,
    /// Commits of vBucket files.
    pub commits: u64,
    /// Commits that failed (and are tried again).
    pub commits_failed: u64,
    /// Items that became durable.
    pub items_persisted: u64,
    /// Queued versions that a newer one in the same flush made superfluous.
    pub flusher_deduplications: u64,
    /// The journal; `None` without one.
    pub journal: Option<JournalUsage>,
    /// Flushes that waited for room in it.
    pub journal_full_waits: u64,
    /// How far files are behind it.
    pub backlog: BacklogUsage,
    /// Files brought up to date with it.
    pub applies: u64,
    /// Files that could not be (which is tried again).
    pub applies_failed: u64,
    /// Rollbacks of vBuckets.
    pub rollbacks: u64,

    // The way back.
    /// Values fetched for requests.
    pub values_fetched: u64,
    /// Keys that were not in memory and were looked up in files.
    pub documents_fetched: u64,
    /// Requests that wait for values.
    pub fetches_waiting: usize,
    /// Fetches that failed.
    pub reads_failed: u64,

    // Work on documents in memory.
    /// Rounds of the item pager.
    pub pager_rounds: u64,
    /// Rounds of the expiry pager.
    pub expiry_pager_rounds: u64,
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
}

impl Bucket {
    /// The bucket as it is now.
    pub fn statistics(&self) -> BucketStatistics {
        let core = &self.0;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (limits, gate) = (core.memory.limits(), core.disk.gate());
        let checkpoints = core.memory.checkpoint_counts();
        let refusals = gate.refusal_counts();
        let mut statistics = BucketStatistics {
            document_count: 0,
            ejected_count: 0,
            evicted_count: 0,
            loading_keys_count: 0,
            lookup_count: 0,
            filter_key_count: 0,
            filter_bytes: 0,
            tombstone_count: 0,
            queued_item_count: 0,
            queued_vbucket_count: core.disk.flushes_waiting_count(),
            oldest_unflushed: Duration::ZERO,
            checkpoint_count: 0,
            datatype_counts: DatatypeCounts::default(),
            lock_count: 0,
            documents_bytes: core.memory.account.items_bytes() + core.memory.account.tables_bytes(),
            tables_bytes: core.memory.account.tables_bytes(),
            log_bytes: core.memory.account.log_bytes(),
            checkpoints_bytes: core.memory.account.checkpoints_bytes(),
            checkpoints_pending_bytes: core.memory.account.pending_destruction_bytes(),
            checkpoint_items_removed: checkpoints.items_removed,
            checkpoint_bytes_removed: checkpoints.bytes_removed,
            checkpoint_bytes_max: core.memory.account.checkpoint_limits().with_streams_bytes,
            checkpoints_quota_bytes: checkpoints.quota_bytes,
            checkpoints_upper_mark_bytes: checkpoints.upper_mark_bytes,
            checkpoints_lower_mark_bytes: checkpoints.lower_mark_bytes,
            checkpoint_recoveries: checkpoints.recoveries,
            cursors_dropped: checkpoints.cursors_dropped,
            checkpoint_refusals: refusals.checkpoints,
            memory_quota_bytes: limits.quota_bytes(),
            watermarks: limits.watermarks(),
            memory_ratios: limits.ratios(),
            used_bytes_max: limits.mutation_bytes_max(),
            vbuckets: VbucketStatistics::default(),
            active_drift: Drift::default(),
            replica_drift: Drift::default(),
            by_state: [StateStatistics::default(); 4],
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
            fetches_waiting: core.disk.fetches_waiting_count(),
            reads_failed: load(&core.counters.reads_failed),
            expiry_pager_rounds: load(&core.counters.expiry_pager_rounds),
            pager_rounds: load(&core.counters.pager_rounds),
            decayer_rounds: load(&core.counters.decayer_rounds),
            compressor_visited: load(&core.counters.compressor_visited),
            compressor_compressed: load(&core.counters.compressor_compressed),
            defragmenter_rounds: load(&core.counters.defragmenter_rounds),
            defragmenter_moved: load(&core.counters.defragmenter_moved),
            memory_refusals: refusals.memory,
            disk_refusals: refusals.disk,
            disk_block: gate.disk_block(),
            damaged_vbucket_count: core.damaged_count(),
            incomplete_count: 0,
            warmup: core.background.warmup.progress(core.clock.now()),
        };
        let now = core.clock.now();
        self.for_each_figures(|_, vbucket| statistics.add(vbucket, now));
        statistics
    }

    /// The copies that do not have yet what the active ones held when these were first heard, in
    /// order.
    pub fn incomplete_vbuckets(&self) -> Vec<Vbid> {
        let mut incomplete = Vec::new();
        self.for_each_figures(|vbid, vbucket| {
            incomplete.extend((vbucket.gauges().incomplete > 0).then_some(vbid));
        });
        incomplete
    }

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

    /// Bytes that a collection takes in the files of active vBuckets. Reads a little of every file:
    /// not for front-end workers.
    pub fn collection_disk_bytes(&self, collection: CollectionId) -> u64 {
        let is_active = |slot: &VbucketSlot| {
            slot.figures().is_some_and(|figures| figures.state() == VbucketState::Active)
        };
        let active = self.0.slots().filter(|(_, slot)| is_active(slot));
        // One that cannot be read is told of elsewhere.
        active.filter_map(|(vbid, _)| self.0.store.collection_bytes(vbid, collection).ok()).sum()
    }
}

impl BucketStatistics {
    /// vBuckets of all roles.
    pub fn vbucket_count(&self) -> u64 {
        let count: usize = self.by_state.iter().map(|of_state| of_state.vbucket_count).sum();
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// All bytes that the bucket takes.
    pub fn used_bytes(&self) -> u64 {
        self.documents_bytes + self.log_bytes
    }

    /// Writes and syncs that failed, of the journal and of files; all of them are made up for.
    pub fn write_failures(&self) -> u64 {
        let journal = self.journal.map_or(0, |journal| journal.failure_count);
        self.commits_failed + self.applies_failed + journal
    }

    /// Bytes of documents in memory, without the tables that find them.
    pub fn items_bytes(&self) -> u64 {
        self.documents_bytes - self.tables_bytes
    }

    /// Bytes in use that are no documents: the tables that find those, logs and filters.
    pub fn overhead_bytes(&self) -> u64 {
        self.tables_bytes + self.log_bytes + u64::try_from(self.filter_bytes).unwrap_or(u64::MAX)
    }

    fn add(&mut self, vbucket: &VbucketFigures, now: Instant) {
        let (state, gauges) = (vbucket.state(), vbucket.gauges());
        self.by_state[place_of(state)].add(vbucket, &gauges, now);
        let waited = vbucket.unflushed_since().map(|since| now.since(since));
        self.oldest_unflushed = self.oldest_unflushed.max(waited.unwrap_or_default());
        self.document_count += narrow(vbucket.document_count());
        self.ejected_count += narrow(vbucket.ejected_count());
        self.parked_count += narrow(gauges.parked);
        self.incomplete_count += narrow(gauges.incomplete);
        match state {
            VbucketState::Active => {
                self.active_document_count += narrow(vbucket.document_count());
                self.active_drift.add(vbucket.drift());
            }
            VbucketState::Replica => self.replica_drift.add(vbucket.drift()),
            VbucketState::Pending | VbucketState::Dead => {}
        }
        self.evicted_count += narrow(gauges.evicted);
        self.loading_keys_count += narrow(gauges.loading_keys);
        self.lookup_count += narrow(gauges.lookups);
        self.filter_key_count += narrow(gauges.filter_keys);
        self.filter_bytes += narrow(gauges.filter_bytes);
        self.tombstone_count += narrow(vbucket.tombstone_count());
        self.queued_item_count += narrow(gauges.queued);
        self.checkpoint_count += gauges.checkpoints;
        self.lock_count += narrow(gauges.locks);
        for (sum, count) in self.datatype_counts.iter_mut().zip(vbucket.datatype_counts()) {
            *sum += count;
        }
        self.vbuckets += vbucket.statistics();
    }
}

/// A count of what is in memory.
pub(crate) fn narrow(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
