//! What operators change about compaction while the bucket is in use.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use storage::CompactionPace;

use crate::config::BucketConfig;

/// When files are compacted, how fast, and what leaves them.
#[derive(Debug)]
pub(crate) struct CompactionSettings {
    pub(super) fragmentation_percent: AtomicU8,
    pub(super) file_bytes_min: AtomicU64,
    pub(super) pace: CompactionPace,
    pub(super) purge_age_seconds: AtomicU64,
}

impl CompactionSettings {
    pub(crate) fn new(config: &BucketConfig) -> Self {
        Self {
            fragmentation_percent: AtomicU8::new(config.compaction_fragmentation_percent),
            file_bytes_min: AtomicU64::new(config.compaction_file_bytes_min),
            pace: CompactionPace::new(config.compaction_bytes_per_second),
            purge_age_seconds: AtomicU64::new(config.persistent_metadata_purge_age_seconds),
        }
    }

    pub(crate) fn fragmentation_percent(&self) -> u8 {
        self.fragmentation_percent.load(Ordering::Relaxed)
    }

    pub(crate) fn file_bytes_min(&self) -> u64 {
        self.file_bytes_min.load(Ordering::Relaxed)
    }

    pub(crate) fn pace(&self) -> &CompactionPace {
        &self.pace
    }

    pub(crate) fn purge_age_seconds(&self) -> u64 {
        self.purge_age_seconds.load(Ordering::Relaxed)
    }
}
