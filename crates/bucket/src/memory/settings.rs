//! What operators change while the bucket is in use about how it keeps its values, and about what a
//! bucket without files does.

use std::time::Duration;

use crate::config::CompressionMode;
use crate::config::{BucketType, FullPolicy};
use crate::core::Bucket;

impl Bucket {
    /// What happens to compressed values now.
    pub fn compression_mode(&self) -> CompressionMode {
        self.0.memory.compression.mode()
    }

    /// Changes what happens to compressed values. Those in memory stay as they are until the
    /// compressor or a writer comes to them.
    pub fn set_compression_mode(&self, mode: CompressionMode) {
        self.0.memory.compression.set_mode(mode);
        self.0.memory.compressor.wake();
    }

    /// How many times its bytes a compressed value has to take inflated to be kept.
    pub fn min_compression_ratio(&self) -> f64 {
        self.0.memory.compression.ratio_min()
    }

    /// Changes how much a value has to save to be kept compressed. Values that were tried before
    /// are not tried again.
    pub fn set_min_compression_ratio(&self, ratio: f64) {
        self.0.memory.compression.set_ratio_min(ratio);
    }

    /// What the bucket does when its memory is full, if it is an ephemeral one.
    pub fn full_policy(&self) -> FullPolicy {
        self.0.memory.ephemeral.full_policy()
    }

    /// Changes what an ephemeral bucket does when its memory is full.
    pub fn set_full_policy(&self, policy: FullPolicy) {
        self.0.memory.ephemeral.set_full_policy(policy);
    }

    /// Seconds for which an ephemeral bucket keeps tombstones.
    pub fn tombstone_purge_age_seconds(&self) -> u64 {
        self.0.memory.ephemeral.purge_age_seconds()
    }

    /// Changes for how many seconds an ephemeral bucket keeps tombstones.
    pub fn set_tombstone_purge_age_seconds(&self, seconds: u64) {
        self.0.memory.ephemeral.set_purge_age_seconds(seconds);
    }

    /// Seconds between two searches for old tombstones in an ephemeral bucket.
    pub fn tombstone_purge_interval_seconds(&self) -> u64 {
        self.0.memory.ephemeral.purge_interval_seconds()
    }

    /// Changes how many seconds there are between two searches for old tombstones; the next one
    /// comes after so many from now.
    pub fn set_tombstone_purge_interval_seconds(&self, seconds: u64) {
        self.0.memory.ephemeral.set_purge_interval_seconds(seconds);
        self.0.memory.purger.snooze(self.0.memory.ephemeral.purge_interval());
    }

    /// Seconds between two searches for documents whose time is over.
    pub fn expiry_pager_interval_seconds(&self) -> u64 {
        self.0.memory.expiry_pace.interval().as_secs()
    }

    /// Changes how many seconds there are between two searches for documents whose time is over, at
    /// least one; the next one comes after so many from now.
    pub fn set_expiry_pager_interval_seconds(&self, seconds: u64) {
        self.0.memory.expiry_pace.set_interval(Duration::from_secs(seconds.max(1)));
    }

    /// Whether the bucket refuses new documents for good when its memory is full.
    pub(crate) fn fails_new_data(&self) -> bool {
        self.bucket_type() == BucketType::Ephemeral && self.full_policy() == FullPolicy::FailNewData
    }
}
