//! DELETE, and EVICT_KEY, which only removes from memory.

use document::{Key, Vbid};
use vbucket::{Mutation, WriteCondition};

use crate::bucket::Bucket;
use crate::refused::Refused;
use crate::session::Session;

impl Bucket {
    /// Deletes a document. Let in even when memory is short: it makes room.
    pub fn delete(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
        condition: WriteCondition,
    ) -> Result<Mutation, Refused> {
        self.check_disk(vbid)?;
        let condition = self.as_durable_as_configured(session, condition)?;
        let now = self.time_of(session);
        let result = self.attempt(session, vbid, |vbucket, effects| {
            vbucket.delete(key, condition, now, effects)
        });
        self.answer(session, vbid, result)
    }

    /// Drops a value from memory that is on disk.
    pub fn evict(&self, session: &mut Session, vbid: Vbid, key: Key<'_>) -> Result<(), Refused> {
        self.check_has_disk()?;
        let now = self.time_of(session);
        let result =
            self.attempt(session, vbid, |vbucket, effects| Ok(vbucket.eject(key, now, effects)));
        match self.answer(session, vbid, result)? {
            None => Err(Refused::NotFound),
            Some(false) => Err(Refused::NotPersisted),
            Some(true) => Ok(()),
        }
    }
}
