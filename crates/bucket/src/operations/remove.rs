//! DELETE, and EVICT_KEY, which only removes from memory.

use document::{Key, Vbid};
use vbucket::{WriteCondition, Written};

use crate::core::{Attempted, Bucket, Refused, Session};

impl Bucket {
    /// Deletes a document. Let in even when memory is short: it makes room.
    pub fn delete(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
        condition: WriteCondition,
    ) -> Result<Attempted<Written>, Refused> {
        self.check_disk(vbid, Some(key))?;
        let condition = self.as_durable_as_configured(session, condition)?;
        let now = self.time_of(session);
        let result = self.attempt(session, vbid, |vbucket, effects| {
            vbucket.delete(key, condition, now, effects)
        });
        self.answer(session, vbid, result)
    }

    /// Drops a value from memory that is on disk.
    pub fn evict(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
    ) -> Result<Attempted<()>, Refused> {
        self.check_has_disk()?;
        let now = self.time_of(session);
        let result = self.attempt(session, vbid, |vbucket, effects| {
            vbucket.check_collection(key)?;
            Ok(vbucket.eject(key, now, effects))
        });
        match self.answer(session, vbid, result)? {
            Attempted::Answered(None) => Err(Refused::NotFound),
            Attempted::Answered(Some(false)) => Err(Refused::NotPersisted),
            Attempted::Answered(Some(true)) => Ok(Attempted::Answered(())),
            Attempted::Waits => Ok(Attempted::Waits),
        }
    }
}
