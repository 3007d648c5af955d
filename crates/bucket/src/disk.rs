//! What becomes durable, and what is read back: flushes, files that follow the journal, fetches,
//! and the files of one moment.

pub(crate) mod applier;
mod appliers;
mod apply;
mod apply_pace;
mod backfill;
pub(crate) mod background_fetcher;
mod backing_store;
mod disk_errors;
mod fetch_queue;
pub(crate) mod file_state;
mod flush;
mod flush_order;
mod flush_queues;
pub(crate) mod flusher;
mod frozen;
mod full_journal;
mod write_gate;

pub use backfill::{Backfill, BackfillFacts, BackfillOrder};
pub use frozen::{FreezeError, FrozenBucket, FrozenEntry};

pub(crate) use backing_store::BackingStore;
pub(crate) use fetch_queue::Wanted;
pub(crate) use write_gate::WriteGate;

use self::appliers::Appliers;
use self::fetch_queue::FetchQueue;
use self::flush_queues::FlushQueues;
use crate::config::BucketConfig;

/// What a bucket knows of its way to the disk and back. Which of it changes, only the files of this
/// folder say; what is on the disk is the [`BackingStore`]'s.
pub(crate) struct Disk {
    /// What waits to become durable.
    flush_queues: FlushQueues,
    /// Who brings files up to date with the journal.
    appliers: Appliers,
    /// What waits to be read.
    fetch_queue: FetchQueue,
    /// Whether the disk takes what is written.
    gate: WriteGate,
}

impl Disk {
    pub(crate) fn new(config: &BucketConfig) -> Self {
        Self {
            flush_queues: FlushQueues::new(config.persistence, config.flush_interval),
            appliers: Appliers::default(),
            fetch_queue: FetchQueue::new(config.vbucket_count, config.fetches_waiting_max),
            gate: WriteGate::default(),
        }
    }

    /// What nobody waits for is flushed now, too: logs take memory that is short. Says whether
    /// there is anything that waits or is being flushed.
    pub(crate) fn hurry_flushes(&self) -> bool {
        self.flush_queues.hurry()
    }

    /// How many vBuckets wait for their flushers.
    pub(crate) fn flushes_waiting_count(&self) -> usize {
        self.flush_queues.waiting_count()
    }

    /// How many requests wait for what is only in files.
    pub(crate) fn fetches_waiting_count(&self) -> usize {
        self.fetch_queue.waiting_count()
    }

    /// Whether the disk takes what is written.
    pub(crate) fn gate(&self) -> &WriteGate {
        &self.gate
    }
}
