//! GET and GET_REPLICA.

use document::{Key, Vbid};
use vbucket::Found;

use crate::core::{Attempted, Bucket, Refused, Session};

impl Bucket {
    /// The live document `key`.
    pub fn get(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
    ) -> Result<Attempted<Found>, Refused> {
        let now = self.time_of(session);
        let found = self.attempt(session, vbid, |vbucket, effects| vbucket.get(key, now, effects));
        self.answer(session, vbid, found)
    }

    /// The live document `key` of a vBucket that is a replica here.
    pub fn get_replica(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
    ) -> Result<Attempted<Found>, Refused> {
        let now = self.time_of(session);
        let found =
            self.attempt(session, vbid, |vbucket, effects| vbucket.get_replica(key, now, effects));
        self.answer(session, vbid, found)
    }
}
