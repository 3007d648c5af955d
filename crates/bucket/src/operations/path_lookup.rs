//! SUBDOC_GET and its kin: the version that paths are followed in, outside its vBucket's lock.

use document::{Key, Vbid};
use vbucket::Visibility;

use super::version::{CopyRole, Version};
use crate::core::{Attempted, Bucket, Refused, Session};

impl Bucket {
    /// The version of `key` that a request looks into.
    pub fn find_version(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
        role: CopyRole,
        visibility: Visibility,
    ) -> Result<Attempted<Version>, Refused> {
        let now = self.time_of(session);
        let fetched = session.fetched.clone();
        let fetched = fetched.as_ref();
        let found = self.attempt(session, vbid, |vbucket, effects| {
            let found = match role {
                CopyRole::Active => vbucket.get_version(key, visibility, fetched, now, effects),
                CopyRole::Replica => {
                    vbucket.get_replica_version(key, visibility, fetched, now, effects)
                }
            }?;
            Ok(Version::of(found, vbucket, now))
        });
        self.answer(session, vbid, found)
    }
}
