//! The background tasks of a bucket, and how they start.

mod applier;
mod background_fetcher;
mod checkpoint_destroyer;
mod checkpoint_recovery;
mod compactor;
mod defragmenter;
mod expiry_pager;
mod flush_queues;
mod flusher;
mod frequency_decayer;
mod full_journal;
mod item_compressor;
mod item_pager;
mod persistence_timeouts;
mod quota_change;
mod sync_write_timeouts;
mod tombstone_purger;
mod warmup;

use std::sync::OnceLock;

use executor::{ExecutorPool, OwnerIsGone, TaskHandle};
use storage::FoundVbucket;

pub(crate) use applier::Appliers;
pub(crate) use background_fetcher::{FetchQueue, Wanted};
pub(crate) use checkpoint_destroyer::Destroyers;
pub(crate) use checkpoint_recovery::CheckpointRecovery;
pub(crate) use compactor::Compactors;
pub(crate) use flush_queues::FlushQueues;
pub(crate) use flusher::micros;
pub(crate) use item_compressor::CompressorHandle;
pub(crate) use item_pager::Pager;
pub(crate) use persistence_timeouts::PersistenceTimeouts;
pub(crate) use sync_write_timeouts::SyncWriteTimeouts;
pub(crate) use tombstone_purger::{PurgerHandle, interval as purge_interval};
pub(crate) use warmup::WarmupState;
pub use warmup::{WarmupPhase, WarmupProgress};

use crate::bucket::Bucket;

/// A task that others wake, from before it is scheduled.
#[derive(Default)]
pub(crate) struct Wakeable(OnceLock<TaskHandle>);

impl Wakeable {
    /// Wakes the task if there is one by now.
    pub(crate) fn wake(&self) {
        if let Some(task) = self.0.get() {
            task.wake();
        }
    }

    /// From now on `task` is woken.
    fn set(&self, task: TaskHandle) {
        assert!(self.0.set(task).is_ok(), "a task starts once");
    }
}

/// Schedules all tasks of `bucket`; warmup loads the vBuckets in `found`.
pub(crate) fn start(
    bucket: &Bucket,
    pool: &ExecutorPool,
    found: Vec<FoundVbucket>,
) -> Result<(), OwnerIsGone> {
    checkpoint_destroyer::start(bucket, pool)?;
    checkpoint_recovery::start(bucket, pool)?;
    flusher::start(bucket, pool)?;
    applier::start(bucket, pool)?;
    background_fetcher::start(bucket, pool)?;
    persistence_timeouts::start(bucket, pool)?;
    sync_write_timeouts::start(bucket, pool)?;
    expiry_pager::start(bucket, pool)?;
    item_pager::start(bucket, pool)?;
    frequency_decayer::start(bucket, pool)?;
    quota_change::start(bucket, pool)?;
    item_compressor::start(bucket, pool)?;
    defragmenter::start(bucket, pool)?;
    tombstone_purger::start(bucket, pool)?;
    compactor::start(bucket, pool)?;
    warmup::start(bucket, pool, found)
}
