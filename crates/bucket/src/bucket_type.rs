//! Whether a bucket keeps documents on disk, and what it does without one when memory is full.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::config::BucketConfig;
use crate::named::Named;

/// Where a bucket keeps its documents. Fixed when the bucket is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BucketType {
    /// In memory and on disk.
    #[default]
    Couchbase,
    /// In memory alone: a bucket that is started again is empty.
    Ephemeral,
}

impl Named for BucketType {
    const WHAT: &str = "bucket type";
    const NAMES: &[(&str, Self)] =
        &[("couchbase", Self::Couchbase), ("ephemeral", Self::Ephemeral)];
}

/// What an ephemeral bucket does when its memory is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullPolicy {
    /// It deletes the documents that are used least.
    AutoDelete,
    /// It refuses new ones.
    FailNewData,
}

impl Named for FullPolicy {
    const WHAT: &str = "policy of a full ephemeral bucket";
    const NAMES: &[(&str, Self)] =
        &[("auto_delete", Self::AutoDelete), ("fail_new_data", Self::FailNewData)];
}

/// What can be changed about an ephemeral bucket while it is in use.
#[derive(Debug)]
pub(crate) struct EphemeralSettings {
    full_policy: AtomicU8,
    purge_age_seconds: AtomicU64,
    purge_interval_seconds: AtomicU64,
}

impl EphemeralSettings {
    pub(crate) fn new(config: &BucketConfig) -> Self {
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

    pub(crate) fn set_full_policy(&self, policy: FullPolicy) {
        self.full_policy.store(policy as u8, Ordering::Relaxed);
    }

    /// How long tombstones stay in memory.
    pub(crate) fn purge_age_seconds(&self) -> u64 {
        self.purge_age_seconds.load(Ordering::Relaxed)
    }

    pub(crate) fn set_purge_age_seconds(&self, seconds: u64) {
        self.purge_age_seconds.store(seconds, Ordering::Relaxed);
    }

    /// How often old tombstones are looked for.
    pub(crate) fn purge_interval_seconds(&self) -> u64 {
        self.purge_interval_seconds.load(Ordering::Relaxed)
    }

    pub(crate) fn set_purge_interval_seconds(&self, seconds: u64) {
        self.purge_interval_seconds.store(seconds, Ordering::Relaxed);
    }
}
