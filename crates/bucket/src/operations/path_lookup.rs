//! SUBDOC_GET and its kin: the version that paths are followed in, outside its vBucket's lock.

use document::{Key, Vbid};
use vbucket::Visibility;

use super::version::{Copies, Version};
use crate::core::{Attempted, Bucket, Refused, Session};

impl Bucket {
    /// The version of `key` that a request looks into.
    pub fn find_version(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
        copies: Copies,
        visibility: Visibility,
    ) -> Result<Attempted<Version>, Refused> {
        let now = self.time_of(session);
        let fetched = session.fetched.clone();
        let fetched = fetched.as_ref();
        let found = self.attempt(session, vbid, |vbucket, effects| {
            let found = match copies {
                Copies::Active => vbucket.get_version(key, visibility, fetched, now, effects),
                Copies::Replica => {
                    vbucket.get_replica_version(key, visibility, fetched, now, effects)
                }
            }?;
            Ok(Version::of(found, vbucket, now))
        });
        self.answer(session, vbid, found)
    }
}
