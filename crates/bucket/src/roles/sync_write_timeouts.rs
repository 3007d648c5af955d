//! Ends durable writes whose time is over: one timeout a vBucket, on the executor's wheel.

use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, HeadTimeout, OwnerIsGone, TaskKind, TaskName};
use platform::Instant;

use crate::core::{Bucket, BucketCore};

static TIMEOUTS: TaskName = TaskName::new("DurabilityTimeoutTask", TaskKind::NonIo)
    .quick()
    .priority(1)
    .expected(Duration::from_millis(25));

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    for (timeout, vbid) in bucket.0.background.timeouts.sync_writes.0.iter().zip(0..) {
        let ended = bucket.clone();
        let on_due = move |now| ended.0.end_overdue_sync_writes(Vbid(vbid), now);
        let scheduled = HeadTimeout::schedule(pool, &bucket.0.background.owner, &TIMEOUTS, on_due)?;
        timeout.set(scheduled).expect("the task starts once");
    }
    Ok(())
}

impl BucketCore {
    /// Ends the vBucket's durable writes that are over at `now` and answers when the next one will
    /// be.
    fn end_overdue_sync_writes(&self, vbid: Vbid, now: Instant) -> Option<Instant> {
        let times = vbucket::Now { monotonic: now, ..self.now() };
        let next = self.on_vbucket(vbid, &mut Vec::new(), |vbucket, effects| {
            vbucket.end_overdue_sync_writes(times, effects)
        });
        next.ok().flatten()
    }
}
