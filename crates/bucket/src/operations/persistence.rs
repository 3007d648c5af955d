//! SEQNO_PERSISTENCE.

use document::{Seqno, Vbid, VbucketState};
use vbucket::Refusal;

use crate::core::{Attempted, Bucket, Refused, Session};

impl Bucket {
    /// Answers once everything up to `seqno` is on disk: at once, or later through the session's
    /// waiter.
    pub fn wait_for_persistence(
        &self,
        session: &mut Session,
        vbid: Vbid,
        seqno: Seqno,
    ) -> Result<Attempted<()>, Refused> {
        self.check_has_disk()?;
        let timeout = self.config().seqno_persistence_timeout;
        let deadline = self.time_of(session).monotonic.after(timeout);
        let waiter = session.waiter;
        let result = self.attempt(session, vbid, |vbucket, effects| {
            if vbucket.state() == VbucketState::Dead {
                return Err(Refusal::NotActive);
            }
            Ok(vbucket.wait_for_persistence(seqno, deadline, waiter, effects))
        });
        match self.answer(session, vbid, result)? {
            Attempted::Answered(true) => return Ok(Attempted::Answered(())),
            Attempted::Answered(false) => self.expect_timeout(deadline),
            Attempted::Waits => {}
        }
        Ok(Attempted::Waits)
    }
}
