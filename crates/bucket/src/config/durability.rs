//! What an operator decides about durable writes.

use std::time::Duration;

use document::DurabilityLevel;
use vbucket::DurabilityLimits;

use super::named::Named;

/// How durable all writes are at least, by name (`durability_min_level`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurabilityMinLevel(pub Option<DurabilityLevel>);

/// Durable writes. The names are those of the original's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurabilityConfig {
    /// All writes are at least as durable (`durability_min_level`).
    pub level_min: DurabilityMinLevel,
    /// When a durable write becomes ambiguous whose client does not say.
    pub timeout_default: Duration,
    /// Replicas with which durable writes are possible, at most
    /// (`sync_writes_max_allowed_replicas`).
    pub replicas_max: usize,
    /// Whether the active node alone is enough where there are fewer nodes than a majority
    /// (`durability_impossible_fallback`).
    pub falls_back_to_master: bool,
}

impl DurabilityConfig {
    /// What of it vBuckets decide by.
    pub(crate) fn limits(&self) -> DurabilityLimits {
        let Self { replicas_max, falls_back_to_master, .. } = *self;
        DurabilityLimits { replicas_max, fallback_to_master_ack: falls_back_to_master }
    }
}

impl Default for DurabilityConfig {
    fn default() -> Self {
        Self {
            level_min: DurabilityMinLevel::default(),
            timeout_default: Duration::from_secs(30),
            replicas_max: 2,
            falls_back_to_master: false,
        }
    }
}

impl Named for DurabilityMinLevel {
    const WHAT: &str = "durability level";
    const NAMES: &[(&str, Self)] = &[
        ("none", Self(None)),
        ("majority", Self(Some(DurabilityLevel::Majority))),
        ("majority_and_persist_on_master", Self(Some(DurabilityLevel::MajorityAndPersistOnMaster))),
        ("persist_to_majority", Self(Some(DurabilityLevel::PersistToMajority))),
    ];
}
