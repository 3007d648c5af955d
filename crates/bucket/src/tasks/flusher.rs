//! Brings what vBuckets have queued to disk.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext, TaskHandle};
use executor::{TaskKind, TaskName};
use storage::{CommitReport, StorageError};
use vbucket::FlushBatch;

use crate::bucket::{Bucket, BucketCore};
use crate::file_state;
use crate::vbucket_slot::VbucketSlot;

static FLUSHER: TaskName =
    TaskName::new("FlusherTask", TaskKind::Writer).priority(5).expected(Duration::from_secs(1));

/// Items that a flusher writes, at most, before it gives memory back when it has nothing to do.
const UNRELEASED_ITEMS_MAX: usize = 10_000;
/// How often a flusher tries again to flush what a failing disk refuses while the node stops.
const SHUTDOWN_ATTEMPTS_MAX: usize = 3;

/// vBuckets with something to flush, one queue for each flusher. A vBucket is queued once until
/// its flusher has come: it keeps a flag itself.
pub(crate) struct FlushQueues(Vec<FlushQueue>);

#[derive(Default)]
struct FlushQueue {
    vbids: Mutex<VecDeque<Vbid>>,
    flusher: OnceLock<TaskHandle>,
}

impl FlushQueues {
    pub(crate) fn new(count: usize) -> Self {
        Self(std::iter::repeat_with(FlushQueue::default).take(count).collect())
    }

    /// Queues a vBucket for its flusher.
    pub(crate) fn push(&self, vbid: Vbid) {
        let queue = self.queue_of(vbid);
        queue.lock().push_back(vbid);
        if let Some(flusher) = queue.flusher.get() {
            flusher.wake();
        }
    }

    /// Queues a vBucket that could not be flushed, without waking its flusher: it is the one that
    /// asks, and it pauses before it tries again.
    fn push_again(&self, vbid: Vbid) {
        self.queue_of(vbid).lock().push_back(vbid);
    }

    fn queue_of(&self, vbid: Vbid) -> &FlushQueue {
        &self.0[usize::from(vbid.0) % self.0.len()]
    }

    /// How many vBuckets wait for their flushers.
    pub(crate) fn waiting_count(&self) -> usize {
        self.0.iter().map(|queue| queue.lock().len()).sum()
    }
}

impl FlushQueue {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Vbid>> {
        self.vbids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pop_group(&self, count_max: usize) -> Vec<Vbid> {
        let mut vbids = self.lock();
        let count = vbids.len().min(count_max);
        let mut group: Vec<Vbid> = vbids.drain(..count).collect();
        // File locks are taken in the order of vBuckets, each once: a vBucket that was emptied
        // while it was queued can be queued again.
        group.sort_unstable();
        group.dedup();
        group
    }
}

struct Flusher {
    bucket: Bucket,
    index: usize,
    failed_attempts: usize,
    /// Items written since memory was given back to the system.
    unreleased_items: usize,
}

/// What became of a group of vBuckets.
pub(crate) struct Flushed {
    item_count: usize,
    all_succeeded: bool,
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    for (index, queue) in bucket.0.flush_queues.0.iter().enumerate() {
        let flusher =
            Flusher { bucket: bucket.clone(), index, failed_attempts: 0, unreleased_items: 0 };
        let handle = pool.schedule(bucket.0.owner(), &FLUSHER, flusher)?;
        queue.flusher.set(handle).expect("flushers start once");
    }
    Ok(())
}

impl Task for Flusher {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        let core = &self.bucket.0;
        let group =
            core.flush_queues.0[self.index].pop_group(core.config.flush_group_vbuckets_max.max(1));
        if group.is_empty() {
            self.release_memory();
            return Next::Sleep;
        }
        let flushed = core.flush(&group);
        self.unreleased_items += flushed.item_count;
        if flushed.all_succeeded {
            self.failed_attempts = 0;
            return Next::Again;
        }
        self.failed_attempts += 1;
        if context.is_shutting_down() && self.failed_attempts < SHUTDOWN_ATTEMPTS_MAX {
            return Next::Again;
        }
        Next::SleepFor(core.config.flush_retry_interval)
    }
}

impl Flusher {
    /// Gives back what large batches took, once there is nothing more to do.
    fn release_memory(&mut self) {
        if self.unreleased_items >= UNRELEASED_ITEMS_MAX {
            self.unreleased_items = 0;
            platform::allocator::release_unused();
        }
    }
}

impl BucketCore {
    /// Flushes `group`, whose order is that of vBuckets. What fails is queued again.
    pub(crate) fn flush(&self, group: &[Vbid]) -> Flushed {
        let slots: Vec<_> = group.iter().filter_map(|&vbid| self.slot(vbid)).collect();
        let _files: Vec<_> = slots.iter().map(|slot| slot.lock_file()).collect();
        let mut batches: Vec<FlushBatch> =
            slots.iter().filter_map(|slot| slot.lock().as_mut()?.begin_flush()).collect();
        let mut started = self.clock.now();
        let writes = batches.iter_mut().map(|batch| self.storage_batch(batch)).collect();
        let item_count = batches.iter().map(FlushBatch::item_count).sum();
        let mut all_succeeded = true;
        self.store.commit(writes, |vbid, result| {
            let took = self.clock.now().since(started);
            let batch = batches.iter().find(|batch| batch.vbid == vbid);
            let batch = batch.expect("storage answers for what it was given");
            all_succeeded &= self.finish_flush(batch, took, result);
            started = self.clock.now();
        });
        Flushed { item_count, all_succeeded }
    }

    pub(crate) fn storage_batch(&self, batch: &mut FlushBatch) -> storage::FlushBatch {
        let mut items = Vec::new();
        if self.store.keeps_items() {
            let content = batch.take_items(self.config.flush_batch_bytes_max);
            self.counters.add(&self.counters.flusher_deduplications, content.superfluous);
            items = content.items;
        } else {
            batch.count_items();
        }
        let state = file_state::to_file(&batch.state);
        let previous_seqno = batch.previous_seqno;
        storage::FlushBatch { vbid: batch.vbid, previous_seqno, items, state }
    }

    /// Tells the vBucket how its flush went.
    fn finish_flush(
        &self,
        batch: &FlushBatch,
        took: Duration,
        result: Result<CommitReport, StorageError>,
    ) -> bool {
        let slot = self.slot(batch.vbid).expect("a flushed vBucket has a place");
        match result {
            Ok(report) => {
                self.note_commit(batch, took, &report);
                self.tell_of_success(batch, slot);
                self.note_disk(batch.vbid, None);
                // What is on disk now can leave memory.
                self.page_if_full();
                true
            }
            Err(error) => {
                self.counters.add(&self.counters.commits_failed, 1);
                if let Some(vbucket) = slot.lock().as_mut() {
                    vbucket.flush_failed();
                }
                if matches!(error, StorageError::Corrupt { .. } | StorageError::OutOfOrder { .. }) {
                    self.give_up_file(batch.vbid, slot, &error);
                    return true;
                }
                self.note_disk(batch.vbid, Some(&error));
                self.flush_queues.push_again(batch.vbid);
                false
            }
        }
    }

    /// Tells the vBucket that `batch` is durable. Of many tombstones most leave memory with pauses
    /// for others who want the lock.
    fn tell_of_success(&self, batch: &FlushBatch, slot: &VbucketSlot) {
        let mut effects = Vec::new();
        let mut next_tombstone = slot.lock().as_mut().and_then(|vbucket| {
            vbucket.flush_succeeded(batch, &mut effects);
            vbucket.forget_tombstones(batch, 0, &mut effects)
        });
        self.carry_out(batch.vbid, &mut effects);
        while let Some(from) = next_tombstone {
            let mut place = slot.lock();
            let vbucket = place.as_mut();
            next_tombstone =
                vbucket.and_then(|vbucket| vbucket.forget_tombstones(batch, from, &mut effects));
            drop(place);
            self.carry_out(batch.vbid, &mut effects);
        }
    }

    /// The file of one vBucket is damaged. Another try would not help; the others go on.
    fn give_up_file(&self, vbid: Vbid, slot: &VbucketSlot, error: &StorageError) {
        self.note_disk(vbid, None);
        if !slot.set_file_is_damaged(true) {
            tracing::error!(
                %error,
                vbucket = vbid.0,
                "the vBucket cannot be flushed and refuses writes; restore its file from a backup \
                 and start the node again"
            );
        }
    }

    fn note_commit(&self, batch: &FlushBatch, took: Duration, report: &CommitReport) {
        let age = self.clock.now().since(batch.queued_since);
        self.timings.storage_age.record(micros(age));
        self.timings.disk_commit.record(micros(took));
        self.counters.add(&self.counters.commits, 1);
        let item_count = report.inserts + report.updates + report.deletes;
        self.counters.items_persisted.fetch_add(item_count, Ordering::Relaxed);
    }
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
