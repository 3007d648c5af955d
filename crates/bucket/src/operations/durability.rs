//! Which writes are durable.

use document::DurabilityLevel;
use vbucket::{SyncWriteRequest, WriteCondition};

use crate::bucket::Bucket;
use crate::bucket_type::BucketType;
use crate::refused::Refused;
use crate::session::Session;

impl Bucket {
    /// The condition of a write that is as durable as the bucket demands, at least (source: engine
    /// facts, section 5.1).
    pub(super) fn as_durable_as_configured(
        &self,
        session: &Session,
        mut condition: WriteCondition,
    ) -> Result<WriteCondition, Refused> {
        let config = self.config().durability;
        let level_min = config.level_min.0;
        match &mut condition.sync_write {
            Some(request) => request.level = request.level.max(level_min.unwrap_or(request.level)),
            None => {
                let deadline = self.time_of(session).monotonic.after(config.timeout_default);
                let waiter = session.waiter;
                condition.sync_write =
                    level_min.map(|level| SyncWriteRequest { level, deadline, waiter });
            }
        }
        let level = condition.sync_write.map(|request| request.level);
        let persists = level.is_some_and(|level| level != DurabilityLevel::Majority);
        if persists && self.bucket_type() == BucketType::Ephemeral {
            return Err(Refused::InvalidDurabilityLevel);
        }
        Ok(condition)
    }
}
