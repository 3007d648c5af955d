//! What operators change about compaction while the bucket is in use.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use storage::CompactionPace;

use crate::bucket::Bucket;
use crate::config::BucketConfig;

/// When files are compacted, how fast, and what leaves them.
#[derive(Debug)]
pub(crate) struct CompactionSettings {
    fragmentation_percent: AtomicU8,
    file_bytes_min: AtomicU64,
    pace: CompactionPace,
    purge_age_seconds: AtomicU64,
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

impl Bucket {
    /// The part of a file, in percent, from which on it is compacted if nothing needs it; 0 for
    /// never.
    pub fn compaction_fragmentation_percent(&self) -> u8 {
        self.0.compactions.settings.fragmentation_percent()
    }

    /// Changes from which fragmentation on files are compacted.
    pub fn set_compaction_fragmentation_percent(&self, percent: u8) {
        self.0.compactions.settings.fragmentation_percent.store(percent, Ordering::Relaxed);
        self.0.compactors.look_again();
    }

    /// Bytes below which files are not compacted on their own.
    pub fn compaction_file_bytes_min(&self) -> u64 {
        self.0.compactions.settings.file_bytes_min()
    }

    /// Changes how large a file has to be to be compacted on its own.
    pub fn set_compaction_file_bytes_min(&self, bytes: u64) {
        self.0.compactions.settings.file_bytes_min.store(bytes, Ordering::Relaxed);
        self.0.compactors.look_again();
    }

    /// Bytes a second that compactions write together, at most; 0 for no limit.
    pub fn compaction_bytes_per_second(&self) -> u64 {
        self.0.compactions.settings.pace.bytes_per_second()
    }

    /// Changes how fast compactions write from now on.
    pub fn set_compaction_bytes_per_second(&self, bytes: u64) {
        self.0.compactions.settings.pace.set_bytes_per_second(bytes);
    }

    /// Seconds for which files keep tombstones.
    pub fn persistent_purge_age_seconds(&self) -> u64 {
        self.0.compactions.settings.purge_age_seconds()
    }

    /// Changes for how many seconds files keep tombstones.
    pub fn set_persistent_purge_age_seconds(&self, seconds: u64) {
        self.0.compactions.settings.purge_age_seconds.store(seconds, Ordering::Relaxed);
    }
}
