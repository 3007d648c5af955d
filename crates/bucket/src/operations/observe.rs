//! OBSERVE and OBSERVE_SEQNO.

use document::{Cas, Key, VbUuid, Vbid, VbucketState};
use vbucket::{Refusal, SeqnoStatus};

use crate::core::{Attempted, Bucket, Refused, Session};

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
    ) -> Result<Attempted<Observed>, Refused> {
        let now = self.time_of(session);
        let seen = self.attempt(session, vbid, |vbucket, effects| {
            let seen = vbucket.observe(key, now)?;
            if seen.as_ref().is_some_and(|(_, is_persisted)| !is_persisted) {
                vbucket.hurry_flush(effects);
            }
            Ok(seen)
        });
        let (item, is_persisted) = match self.answer(session, vbid, seen)? {
            Attempted::Answered(Some(seen)) => seen,
            Attempted::Answered(None) => {
                let nowhere = Observed { state: ObservedState::NotFound, cas: Cas::ANY };
                return Ok(Attempted::Answered(nowhere));
            }
            Attempted::Waits => return Ok(Attempted::Waits),
        };
        let state = match (item.is_deleted(), is_persisted) {
            (true, true) => ObservedState::NotFound,
            (true, false) => ObservedState::Deleted,
            (false, true) => ObservedState::Persisted,
            (false, false) => ObservedState::NotPersisted,
        };
        Ok(Attempted::Answered(Observed { state, cas: item.cas() }))
    }

    /// How far the branch `uuid` of the vBucket's history has come; not found when it never ran
    /// through that branch.
    pub fn observe_seqno(
        &self,
        session: &mut Session,
        vbid: Vbid,
        uuid: VbUuid,
    ) -> Result<Attempted<SeqnoStatus>, Refused> {
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
