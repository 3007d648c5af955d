//! Brings a smaller memory quota into force once the documents fit into it.

use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext, TaskKind, TaskName};

use crate::core::Bucket;

static QUOTA_CHANGE: TaskName = TaskName::new("BucketQuotaChangeTask", TaskKind::NonIo).priority(1);

struct QuotaChange(Bucket);

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let task = QuotaChange(bucket.clone());
    bucket.0.memory.quota_change.set(pool.schedule_asleep(
        &bucket.0.background.owner,
        &QUOTA_CHANGE,
        task,
    )?);
    Ok(())
}

impl Task for QuotaChange {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let core = &self.0.0;
        if core.memory.limits.shrink_to_fit(core.memory.account.used_bytes()) {
            return Next::Sleep;
        }
        Next::SleepFor(core.config.quota_poll_interval)
    }
}
