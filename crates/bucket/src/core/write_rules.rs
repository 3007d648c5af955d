//! What every write of a bucket obeys, and what may change while it is open.

use std::sync::atomic::AtomicU32;

use crate::config::{BucketConfig, LevelMin};

/// The rules of one bucket.
pub(crate) struct WriteRules {
    /// How durable all writes are at least.
    pub(crate) level_min: LevelMin,
    /// The longest life of a document whose collection says nothing of it, in seconds; 0: none.
    pub(crate) max_ttl_seconds: AtomicU32,
}

impl WriteRules {
    pub(crate) fn new(config: &BucketConfig) -> Self {
        Self {
            level_min: LevelMin::new(config.durability.level_min),
            max_ttl_seconds: AtomicU32::new(config.max_ttl_seconds),
        }
    }
}
