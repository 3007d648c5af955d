//! Which writes are durable.

use document::{DurabilityLevel, Operation};
use vbucket::{SyncWriteRequest, WriteCondition};

use crate::config::{BucketType, DurabilityMinLevel};
use crate::core::{Bucket, Refused, Session};

impl Bucket {
    /// The condition of a write that is as durable as the bucket demands, at least (source:
    /// docs/specification/engine.md, section 5.1).
    pub(super) fn as_durable_as_configured(
        &self,
        session: &Session,
        mut condition: WriteCondition,
    ) -> Result<WriteCondition, Refused> {
        let level = self.level_of(condition.sync_write.map(|request| request.level));
        condition.sync_write = level.map(|level| match condition.sync_write {
            Some(asked) => SyncWriteRequest { level, ..asked },
            None => {
                let timeout = self.config().durability.timeout_default;
                let deadline = self.time_of(session).monotonic.after(timeout);
                SyncWriteRequest { level, deadline, waiter: session.waiter }
            }
        });
        let persists = level.is_some_and(|level| level != DurabilityLevel::Majority);
        if persists && self.bucket_type() == BucketType::Ephemeral {
            return Err(Refused::InvalidDurabilityLevel);
        }
        Ok(condition)
    }

    /// What a write whose client asks for `level` is best built as.
    pub fn operation_of(&self, level: Option<DurabilityLevel>) -> Operation {
        self.level_of(level).map_or(Operation::Mutation, Operation::Prepare)
    }

    /// How durable all writes are at least.
    pub fn durability_min_level(&self) -> DurabilityMinLevel {
        self.0.rules.level_min.get()
    }

    /// Changes it, for writes from now on.
    pub fn set_durability_min_level(&self, level: DurabilityMinLevel) {
        self.0.rules.level_min.set(level);
    }

    /// The level of a write whose client asks for `level`.
    fn level_of(&self, level: Option<DurabilityLevel>) -> Option<DurabilityLevel> {
        level.max(self.durability_min_level().0)
    }
}
