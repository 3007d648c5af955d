//! How an operation of a client comes to its vBucket, and what is answered when that refuses.

use document::Vbid;
use platform::Instant;
use vbucket::{Effect, Now, Refusal, Vbucket};

use crate::core::{Attempted, Bucket, Refused, Session};
use crate::disk::Wanted;

impl Bucket {
    /// The time of an operation.
    pub(crate) fn time_of(&self, session: &Session) -> Now {
        session.now.unwrap_or_else(|| self.0.now())
    }

    /// Runs `operation` on the vBucket under its lock and carries out the effects after it.
    pub(crate) fn attempt<T>(
        &self,
        session: &mut Session,
        vbid: Vbid,
        operation: impl FnOnce(&mut Vbucket, &mut Vec<Effect>) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        let Session { waiter, fetched, lock_waited, effects, .. } = session;
        // What is not run is dropped behind the lock, with the value that it may hold.
        let mut operation = Some(operation);
        self.0.enter(vbid, effects, lock_waited, |entered, effects| {
            let vbucket = entered?;
            let operation = operation.take().expect("a vBucket is entered once");
            if let Some(item) = fetched.take() {
                effects.extend(vbucket.restore_value(item).map(Effect::Release));
            }
            match operation(vbucket, effects) {
                Err(Refusal::NotYetActive) if !vbucket.park(*waiter) => Err(Refusal::TooManyParked),
                result => result,
            }
        })
    }

    /// Turns a vBucket's refusal into the bucket's, or has the request wait: what is only in the
    /// file is fetched.
    pub(crate) fn answer<T>(
        &self,
        session: &Session,
        vbid: Vbid,
        result: Result<T, Refusal>,
    ) -> Result<Attempted<T>, Refused> {
        let wanted = match result {
            Ok(answer) => return Ok(Attempted::Answered(answer)),
            Err(Refusal::NotYetActive) => return Ok(Attempted::Waits),
            Err(Refusal::Ejected(metadata)) => Wanted::Value(metadata),
            Err(Refusal::Absent(lookup)) => Wanted::Document(lookup),
            Err(refusal) => return Err(Refused::from_refusal(&refusal)),
        };
        self.0.begin_fetch(vbid, wanted, session.waiter)?;
        Ok(Attempted::Waits)
    }

    /// Sees to it that a wait for persistence ends at `deadline`.
    pub(crate) fn expect_timeout(&self, deadline: Instant) {
        self.0.background.timeouts.expect_persistence_by(deadline);
    }
}
