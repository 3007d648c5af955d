//! How much memory documents and their logs take, and how they leave it.

mod admission;
pub(crate) mod checkpoint_destroyer;
mod checkpoint_memory;
pub(crate) mod checkpoint_recovery;
mod compression;
pub(crate) mod defragmenter;
mod destroyers;
mod ephemeral;
mod eviction_policy;
mod expiry_pace;
pub(crate) mod expiry_pager;
pub(crate) mod frequency_decayer;
pub(crate) mod item_compressor;
pub(crate) mod item_pager;
pub(crate) mod key_loader;
mod limits;
mod page_density;
mod pager;
mod paging;
mod quota;
pub(crate) mod quota_change;
mod recovery_state;
mod rounds;
mod settings;
pub(crate) mod tombstone_purger;

use std::sync::atomic::Ordering;

use document::Vbid;
use vbucket::{Destruction, MemoryAccount};

pub use compression::inflated;
pub use limits::{MEMORY_QUOTA_BYTES_MIN, MEMORY_RATIOS_RANGE, MemoryParameter, QuotaError};

pub(crate) use checkpoint_memory::CheckpointState;
pub(crate) use compression::Compression;
pub(crate) use limits::MemoryLimits;
pub(crate) use rounds::Rounds;

use self::checkpoint_memory::CheckpointMarks;
use self::destroyers::Destroyers;
use self::ephemeral::EphemeralSettings;
use self::expiry_pace::ExpiryPace;
use self::pager::Pager;
use self::recovery_state::CheckpointRecovery;
use crate::config::BucketConfig;
use crate::core::Wakeable;

/// What a bucket knows of its memory. Which of it changes, only the files of this folder say.
pub(crate) struct Memory {
    /// What the vBuckets take of it.
    pub(crate) account: MemoryAccount,
    /// The quota and its marks.
    limits: MemoryLimits,
    /// Those of the logs.
    checkpoint_marks: CheckpointMarks,
    /// Who makes room: the pager evicts documents, the recovery has logs give back what they can,
    /// destroyers free what has left the logs.
    pager: Pager,
    checkpoint_recovery: CheckpointRecovery,
    destroyers: Destroyers,
    /// How values are kept, and who changes that behind the clients' backs.
    compression: Compression,
    compressor: Wakeable,
    /// What a bucket without files does instead, and who forgets its tombstones.
    ephemeral: EphemeralSettings,
    purger: Wakeable,
    /// When documents are deleted whose time is over.
    expiry_pace: ExpiryPace,
    /// Brings keys back that are to stay.
    key_loader: Wakeable,
    /// Keeps frequency counters comparable.
    decayer: Wakeable,
    /// Brings a smaller quota into force.
    quota_change: Wakeable,
}

/// What has left the logs, and who saw to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointCounts {
    /// Items that have left logs.
    pub(crate) items_removed: u64,
    /// Bytes of logs that they and their slots were.
    pub(crate) bytes_removed: u64,
    /// Runs of the recovery.
    pub(crate) recoveries: u64,
    /// Cursors of streams that it dropped.
    pub(crate) cursors_dropped: u64,
    /// Bytes that checkpoints may take.
    pub(crate) quota_bytes: u64,
    /// Bytes from which on memory is recovered.
    pub(crate) upper_mark_bytes: u64,
    /// Bytes down to which it is recovered.
    pub(crate) lower_mark_bytes: u64,
}

impl Memory {
    pub(crate) fn new(config: &BucketConfig, account: MemoryAccount) -> Self {
        Self {
            account,
            limits: MemoryLimits::new(config),
            checkpoint_marks: CheckpointMarks::default(),
            pager: Pager::default(),
            checkpoint_recovery: CheckpointRecovery::default(),
            destroyers: Destroyers::new(config.checkpoint_destruction_tasks),
            compression: Compression::new(config.compression, config.min_compression_ratio),
            compressor: Wakeable::default(),
            ephemeral: EphemeralSettings::new(config),
            purger: Wakeable::default(),
            expiry_pace: ExpiryPace::new(config.expiry_pager_interval),
            key_loader: Wakeable::default(),
            decayer: Wakeable::default(),
            quota_change: Wakeable::default(),
        }
    }

    /// The quota and its marks.
    pub(crate) fn limits(&self) -> &MemoryLimits {
        &self.limits
    }

    /// How values are kept.
    pub(crate) fn compression(&self) -> &Compression {
        &self.compression
    }

    /// What it means that checkpoints take `used_bytes`.
    pub(crate) fn checkpoint_state(&self, used_bytes: u64) -> CheckpointState {
        self.checkpoint_marks.state(used_bytes)
    }

    /// Whether a use of `used_bytes` by checkpoints leaves room for durable writes.
    pub(crate) fn has_checkpoint_reserve(&self, used_bytes: u64) -> bool {
        self.checkpoint_marks.has_reserve(used_bytes)
    }

    /// A frequency counter is full.
    pub(crate) fn wake_decayer(&self) {
        self.decayer.wake();
    }

    /// Frees what has left a log: a little at once, much in the background.
    pub(crate) fn destroy(&self, vbid: Vbid, destruction: Destruction) {
        self.destroyers.destroy(vbid, destruction);
    }

    /// For statistics.
    pub(crate) fn checkpoint_counts(&self) -> CheckpointCounts {
        CheckpointCounts {
            items_removed: self.destroyers.items_removed.load(Ordering::Relaxed),
            bytes_removed: self.destroyers.bytes_removed.load(Ordering::Relaxed),
            recoveries: self.checkpoint_recovery.runs.load(Ordering::Relaxed),
            cursors_dropped: self.checkpoint_recovery.cursors_dropped.load(Ordering::Relaxed),
            quota_bytes: self.checkpoint_marks.quota_bytes(),
            upper_mark_bytes: self.checkpoint_marks.upper_bytes(),
            lower_mark_bytes: self.checkpoint_marks.lower_bytes(),
        }
    }
}
