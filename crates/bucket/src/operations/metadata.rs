//! GET_META.

use document::{Key, Vbid};
use vbucket::Found;

use crate::core::{Attempted, Bucket, Refused, Session};

impl Bucket {
    /// The newest version of `key` for its metadata: tombstones and documents whose time is over
    /// are found, too.
    pub fn get_metadata(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
    ) -> Result<Attempted<Found>, Refused> {
        let now = self.time_of(session);
        let found = self.attempt(session, vbid, |vbucket, _| vbucket.get_metadata(key, now));
        self.answer(session, vbid, found)
    }
}
