//! The memory quota, and what follows when it changes.

use vbucket::checkpoint::CheckpointLimits;

use super::limits::{MemoryParameter, QuotaError};
use crate::core::{Bucket, BucketCore};

/// What writes see of the memory in use is off by one part in so many of the quota, at most.
/// Source: docs/specification/engine.md, section 2.5.
const ESTIMATE_PARTS: u64 = 200;

impl Bucket {
    /// Memory that the bucket may use, in bytes.
    pub fn memory_quota_bytes(&self) -> u64 {
        self.0.memory.limits.quota_bytes()
    }

    /// Gives the bucket another memory quota. More memory is there at once. Less comes into force
    /// when the pager has made the documents fit; until then the old quota decides which writes are
    /// refused.
    pub fn set_memory_quota(&self, bytes: u64) -> Result<(), QuotaError> {
        let core = &self.0;
        core.memory.limits.set_quota(bytes)?;
        core.follow_quota();
        tracing::info!(bytes, "the memory quota was set");
        if !core.memory.limits.shrink_to_fit(core.memory.account.used_bytes()) {
            core.memory.pager.wake();
            core.memory.quota_change.wake();
        }
        Ok(())
    }

    /// A part of the quota, from 0 to 1.
    pub fn memory_ratio(&self, parameter: MemoryParameter) -> f64 {
        let [low, high, mutation] = self.0.memory.limits.ratios();
        match parameter {
            MemoryParameter::LowWatermark => low,
            MemoryParameter::HighWatermark => high,
            MemoryParameter::MutationRatio => mutation,
        }
    }

    /// Sets a part of the quota, from 0 to 1.
    pub fn set_memory_ratio(
        &self,
        parameter: MemoryParameter,
        ratio: f64,
    ) -> Result<(), QuotaError> {
        self.0.memory.limits.set_ratio(parameter, ratio)?;
        self.0.page_if_full();
        Ok(())
    }
}

impl BucketCore {
    /// Sets the marks that depend on the quota: at once those of a smaller quota that waits.
    pub(crate) fn follow_quota(&self) {
        let size_max =
            self.memory.checkpoint_marks.follow(self.memory.limits.wanted_bytes(), &self.config);
        let batch_bytes_max = self.config.batch_bytes_max();
        self.memory.account.set_checkpoint_limits(CheckpointLimits {
            with_streams_bytes: size_max.min(self.config.persistence.batch_bytes_max()),
            // What a flush takes at a time.
            alone_bytes: size_max
                .max(batch_bytes_max)
                .min(self.config.persistence.batch_bytes_max()),
        });
        let wanted_bytes = self.memory.limits.wanted_bytes();
        self.memory.account.set_estimate_drift_max(wanted_bytes / ESTIMATE_PARTS);
        self.memory.account.set_quota_bytes(wanted_bytes);
    }
}
