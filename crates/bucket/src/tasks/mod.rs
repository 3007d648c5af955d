//! The background tasks of a bucket, and how they start.

mod auto_delete_pager;
mod background_fetcher;
mod checkpoint_destroyer;
mod checkpoint_recovery;
mod defragmenter;
mod expiry_pager;
mod flusher;
mod item_compressor;
mod persistence_timeouts;
mod tombstone_purger;
mod warmup;

use executor::{ExecutorPool, OwnerIsGone};
use storage::FoundVbucket;

pub(crate) use auto_delete_pager::AutoDeletePager;
pub(crate) use background_fetcher::FetchQueue;
pub(crate) use checkpoint_destroyer::Destroyers;
pub(crate) use checkpoint_recovery::CheckpointRecovery;
pub(crate) use flusher::FlushQueues;
pub(crate) use item_compressor::CompressorHandle;
pub(crate) use persistence_timeouts::PersistenceTimeouts;
pub(crate) use tombstone_purger::{PurgerHandle, interval as purge_interval};
pub(crate) use warmup::WarmupState;
pub use warmup::{WarmupPhase, WarmupProgress};

use crate::bucket::Bucket;

/// Schedules all tasks of `bucket`; warmup loads the vBuckets in `found`.
pub(crate) fn start(
    bucket: &Bucket,
    pool: &ExecutorPool,
    found: Vec<FoundVbucket>,
) -> Result<(), OwnerIsGone> {
    checkpoint_destroyer::start(bucket, pool)?;
    checkpoint_recovery::start(bucket, pool)?;
    flusher::start(bucket, pool)?;
    background_fetcher::start(bucket, pool)?;
    persistence_timeouts::start(bucket, pool)?;
    expiry_pager::start(bucket, pool)?;
    item_compressor::start(bucket, pool)?;
    defragmenter::start(bucket, pool)?;
    tombstone_purger::start(bucket, pool)?;
    auto_delete_pager::start(bucket, pool)?;
    warmup::start(bucket, pool, found)
}
