//! Ends waits for persistence whose time is over.

use std::sync::OnceLock;
use std::time::Duration;

use executor::{ExecutorPool, HeadTimeout, OwnerIsGone, TaskKind, TaskName};
use platform::Instant;

use crate::bucket::{Bucket, BucketCore};

static TIMEOUTS: TaskName = TaskName::new("SeqnoPersistenceNotifyTask", TaskKind::NonIo)
    .quick()
    .priority(1)
    .expected(Duration::from_millis(100));

/// Knows when the first wait may be over.
#[derive(Default)]
pub(crate) struct PersistenceTimeouts(OnceLock<HeadTimeout>);

impl PersistenceTimeouts {
    /// A wait has begun that is over at `deadline`.
    pub(crate) fn expect_by(&self, deadline: Instant) {
        if let Some(timeout) = self.0.get() {
            timeout.expect_by(deadline);
        }
    }
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let ended = bucket.clone();
    let on_due = move |now| ended.0.end_overdue_waits(now);
    let timeout = HeadTimeout::schedule(pool, bucket.0.owner(), &TIMEOUTS, on_due)?;
    bucket.0.persistence_timeouts.0.set(timeout).expect("the task starts once");
    Ok(())
}

impl BucketCore {
    /// Ends the waits that are over at `now` and answers when the next one will be. A wait that
    /// begins meanwhile expects its deadline itself.
    fn end_overdue_waits(&self, now: Instant) -> Option<Instant> {
        let mut next_deadline = None;
        let mut effects = Vec::new();
        for (vbid, slot) in self.slots() {
            let deadline = match slot.lock().as_mut() {
                Some(vbucket) => vbucket.end_overdue_waits(now, &mut effects),
                None => None,
            };
            self.carry_out(vbid, &mut effects);
            next_deadline = next_deadline.into_iter().chain(deadline).min();
        }
        next_deadline
    }
}
