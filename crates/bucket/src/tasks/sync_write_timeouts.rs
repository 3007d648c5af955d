//! Ends durable writes whose time is over: one timeout a vBucket, on the executor's wheel.

use std::sync::OnceLock;
use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, HeadTimeout, OwnerIsGone, TaskKind, TaskName};
use platform::Instant;

use crate::bucket::{Bucket, BucketCore};

static TIMEOUTS: TaskName = TaskName::new("DurabilityTimeoutTask", TaskKind::NonIo)
    .quick()
    .priority(1)
    .expected(Duration::from_millis(25));

/// For each vBucket, when the durable write that waits first becomes ambiguous.
pub(crate) struct SyncWriteTimeouts(Box<[OnceLock<HeadTimeout>]>);

impl SyncWriteTimeouts {
    pub(crate) fn new(vbucket_count: u16) -> Self {
        Self(std::iter::repeat_with(OnceLock::new).take(usize::from(vbucket_count)).collect())
    }

    /// The first durable write of the vBucket that waits is over at `deadline`, unless one is
    /// before that. Never waits for a timeout that is being dealt with.
    pub(crate) fn expect_by(&self, vbid: Vbid, deadline: Instant) {
        if let Some(timeout) = self.0.get(usize::from(vbid.0)).and_then(OnceLock::get) {
            timeout.expect_by(deadline);
        }
    }
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    for (timeout, vbid) in bucket.0.sync_write_timeouts.0.iter().zip(0..) {
        let ended = bucket.clone();
        let on_due = move |now| ended.0.end_overdue_sync_writes(Vbid(vbid), now);
        let scheduled = HeadTimeout::schedule(pool, bucket.0.owner(), &TIMEOUTS, on_due)?;
        timeout.set(scheduled).expect("the task starts once");
    }
    Ok(())
}

impl BucketCore {
    /// Ends the vBucket's durable writes that are over at `now` and answers when the next one will
    /// be.
    fn end_overdue_sync_writes(&self, vbid: Vbid, now: Instant) -> Option<Instant> {
        let slot = self.slot(vbid)?;
        let mut effects = Vec::new();
        let times = vbucket::Now { monotonic: now, ..self.now() };
        let next = match slot.lock().as_mut() {
            Some(vbucket) => vbucket.end_overdue_sync_writes(times, &mut effects),
            None => None,
        };
        self.carry_out(vbid, &mut effects);
        next
    }
}
