//! What every write of a bucket obeys, and what may change while it is open.

use crate::config::{BucketConfig, LevelMin};

/// The rules of one bucket.
pub(crate) struct WriteRules {
    /// How durable all writes are at least.
    pub(crate) level_min: LevelMin,
}

impl WriteRules {
    pub(crate) fn new(config: &BucketConfig) -> Self {
        Self { level_min: LevelMin::new(config.durability.level_min) }
    }
}
