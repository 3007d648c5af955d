//! Ends waits for persistence whose time is over.

use std::time::Duration;

use executor::{ExecutorPool, HeadTimeout, OwnerIsGone, TaskKind, TaskName};
use platform::Instant;

use crate::core::{Bucket, BucketCore};

static TIMEOUTS: TaskName = TaskName::new("SeqnoPersistenceNotifyTask", TaskKind::NonIo)
    .quick()
    .priority(1)
    .expected(Duration::from_millis(100));

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let ended = bucket.clone();
    let on_due = move |now| ended.0.end_overdue_waits(now);
    let timeout = HeadTimeout::schedule(pool, &bucket.0.background.owner, &TIMEOUTS, on_due)?;
    bucket.0.background.timeouts.persistence.0.set(timeout).expect("the task starts once");
    Ok(())
}

impl BucketCore {
    /// Ends the waits that are over at `now` and answers when the next one will be. A wait that
    /// begins meanwhile expects its deadline itself.
    fn end_overdue_waits(&self, now: Instant) -> Option<Instant> {
        let mut next_deadline = None;
        let mut effects = Vec::new();
        for (vbid, _) in self.slots() {
            let deadline = self.on_vbucket(vbid, &mut effects, |vbucket, effects| {
                vbucket.end_overdue_waits(now, effects)
            });
            next_deadline = next_deadline.into_iter().chain(deadline.ok().flatten()).min();
        }
        next_deadline
    }
}
