//! Ends scans that nobody goes on with: each holds a file, and what of it was let go of since.

use std::time::Duration;

use executor::{ExecutorPool, HeadTimeout, OwnerIsGone, TaskKind, TaskName};

use crate::core::Bucket;

static TIMEOUTS: TaskName = TaskName::new("RangeScanTimeout", TaskKind::NonIo)
    .priority(1)
    .expected(Duration::from_millis(100));

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let ended = bucket.clone();
    let on_due = move |now| ended.0.range_scans.cancel_overdue(now);
    let timeout = HeadTimeout::schedule(pool, &bucket.0.background.owner, &TIMEOUTS, on_due)?;
    bucket.0.range_scans.timeout.set(timeout).expect("the task starts once");
    Ok(())
}
