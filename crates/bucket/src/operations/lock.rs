//! GET_LOCKED and UNLOCK_KEY.

use std::time::Duration;

use document::limits::{LOCK_SECONDS_DEFAULT, LOCK_SECONDS_MAX};
use document::{Cas, Key, Vbid};
use vbucket::Found;

use crate::core::{Attempted, Bucket, Refused, Session};

impl Bucket {
    /// Locks a document for `seconds` (0 or too many: the default) and returns it with the CAS
    /// that its holder must present.
    pub fn lock(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
        seconds: u32,
    ) -> Result<Attempted<Found>, Refused> {
        let seconds = match seconds {
            1..=LOCK_SECONDS_MAX => seconds,
            _ => LOCK_SECONDS_DEFAULT,
        };
        let duration = Duration::from_secs(seconds.into());
        let now = self.time_of(session);
        let result = self
            .attempt(session, vbid, |vbucket, effects| vbucket.lock(key, duration, now, effects));
        self.answer(session, vbid, result)
    }

    /// Ends the lock that `cas` names.
    pub fn unlock(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
        cas: Cas,
    ) -> Result<Attempted<()>, Refused> {
        let now = self.time_of(session);
        let result = self.attempt(session, vbid, |vbucket, _| vbucket.unlock(key, cas, now));
        self.answer(session, vbid, result)
    }
}
