//! OBSERVE and OBSERVE_SEQNO.

use document::{Cas, Key, VbUuid, Vbid, VbucketState};
use vbucket::{Refusal, SeqnoStatus};

use crate::bucket::Bucket;
use crate::refused::Refused;
use crate::session::Session;

/// Where a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservedState {
    /// In memory only.
    NotPersisted,
    /// In memory and on disk.
    Persisted,
    /// Nowhere.
    NotFound,
    /// Deleted, the tombstone not on disk yet.
    Deleted,
}

/// The answer for one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Where it is.
    pub state: ObservedState,
    /// Its version; [`Cas::ANY`] for none.
    pub cas: Cas,
}

impl Bucket {
    /// Where the document `key` is.
    pub fn observe(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
    ) -> Result<Observed, Refused> {
        let now = self.time_of(session);
        let seen = self.attempt(session, vbid, |vbucket, effects| {
            let seen = vbucket.observe(key, now)?;
            if seen.as_ref().is_some_and(|(_, is_persisted)| !is_persisted) {
                vbucket.hurry_flush(effects);
            }
            Ok(seen)
        });
        let Some((item, is_persisted)) = self.answer(session, vbid, seen)? else {
            return Ok(Observed { state: ObservedState::NotFound, cas: Cas::ANY });
        };
        let state = match (item.is_deleted(), is_persisted) {
            (true, true) => ObservedState::NotFound,
            (true, false) => ObservedState::Deleted,
            (false, true) => ObservedState::Persisted,
            (false, false) => ObservedState::NotPersisted,
        };
        Ok(Observed { state, cas: item.cas() })
    }

    /// How far the branch `uuid` of the vBucket's history has come; not found when it never ran
    /// through that branch.
    pub fn observe_seqno(
        &self,
        session: &mut Session,
        vbid: Vbid,
        uuid: VbUuid,
    ) -> Result<SeqnoStatus, Refused> {
        let status = self.attempt(session, vbid, |vbucket, effects| {
            if vbucket.state() == VbucketState::Dead {
                return Err(Refusal::NotActive);
            }
            let status = vbucket.seqno_status(uuid).ok_or(Refusal::NotFound)?;
            if status.persisted < status.high {
                vbucket.hurry_flush(effects);
            }
            Ok(status)
        });
        self.answer(session, vbid, status)
    }
}
