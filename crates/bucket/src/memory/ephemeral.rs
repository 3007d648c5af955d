//! What a bucket without files does when its memory is full, and for how long it keeps tombstones.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use crate::config::{BucketConfig, FullPolicy};

/// What can be changed about an ephemeral bucket while it is in use.
#[derive(Debug)]
pub(crate) struct EphemeralSettings {
    full_policy: AtomicU8,
    purge_age_seconds: AtomicU64,
    purge_interval_seconds: AtomicU64,
}

impl EphemeralSettings {
    pub(super) fn new(config: &BucketConfig) -> Self {
        Self {
            full_policy: AtomicU8::new(config.ephemeral_full_policy as u8),
            purge_age_seconds: AtomicU64::new(config.ephemeral_metadata_purge_age_seconds),
            purge_interval_seconds: AtomicU64::new(
                config.ephemeral_metadata_purge_interval_seconds,
            ),
        }
    }

    pub(crate) fn full_policy(&self) -> FullPolicy {
        match self.full_policy.load(Ordering::Relaxed) {
            policy if policy == FullPolicy::FailNewData as u8 => FullPolicy::FailNewData,
            _ => FullPolicy::AutoDelete,
        }
    }

    pub(super) fn set_full_policy(&self, policy: FullPolicy) {
        self.full_policy.store(policy as u8, Ordering::Relaxed);
    }

    /// How long tombstones stay in memory.
    pub(crate) fn purge_age_seconds(&self) -> u64 {
        self.purge_age_seconds.load(Ordering::Relaxed)
    }

    pub(super) fn set_purge_age_seconds(&self, seconds: u64) {
        self.purge_age_seconds.store(seconds, Ordering::Relaxed);
    }

    /// How often old tombstones are looked for.
    pub(crate) fn purge_interval_seconds(&self) -> u64 {
        self.purge_interval_seconds.load(Ordering::Relaxed)
    }

    /// From one round of the purger to the next: at least a second.
    pub(super) fn purge_interval(&self) -> Duration {
        Duration::from_secs(self.purge_interval_seconds().max(1))
    }

    pub(super) fn set_purge_interval_seconds(&self, seconds: u64) {
        self.purge_interval_seconds.store(seconds, Ordering::Relaxed);
    }
}
