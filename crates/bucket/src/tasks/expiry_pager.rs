//! Deletes documents whose time is over and that nobody reads.

use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskClass, TaskContext};
use executor::{TaskKind, TaskName};

use crate::bucket::Bucket;

static EXPIRY_PAGER: TaskName = TaskName {
    name: "ExpiredItemPager",
    kind: TaskKind::NonIo,
    class: TaskClass::Normal,
    priority: 1,
    expected_duration: Duration::from_millis(55),
};

/// A run ends after this long, between two vBuckets or two portions of one.
const RUN_DURATION_MAX: Duration = Duration::from_millis(25);
/// Documents deleted while one vBucket's lock is held.
const PORTION_MAX: usize = 100;

struct ExpiryPager {
    bucket: Bucket,
    /// Where the round goes on; `None` between rounds.
    position: Option<Vbid>,
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let task = ExpiryPager { bucket: bucket.clone(), position: None };
    let handle = pool.schedule_asleep(bucket.0.owner(), &EXPIRY_PAGER, task)?;
    handle.snooze(bucket.0.config.expiry_pager_interval);
    Ok(())
}

impl Task for ExpiryPager {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let core = &self.bucket.0;
        let deadline = context.started().after(RUN_DURATION_MAX);
        let mut effects = Vec::new();
        let mut position = self.position.take().unwrap_or_default();
        while let Some(slot) = core.slot(position) {
            let now = core.now();
            if now.monotonic >= deadline {
                self.position = Some(position);
                return Next::Again;
            }
            let count = match slot.lock().as_mut() {
                Some(vbucket) => vbucket.delete_all_expired(PORTION_MAX, now, &mut effects),
                None => 0,
            };
            core.carry_out(position, &mut effects);
            if count < PORTION_MAX {
                position = Vbid(position.0 + 1);
            }
        }
        core.counters.add(&core.counters.expiry_pager_rounds, 1);
        Next::SleepFor(core.config.expiry_pager_interval)
    }
}
