//! Ends waits for persistence whose time is over.

use std::sync::OnceLock;
use std::time::Duration;

use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskClass, TaskContext, TaskHandle};
use executor::{TaskKind, TaskName};

use crate::bucket::Bucket;

static TIMEOUTS: TaskName = TaskName {
    name: "SeqnoPersistenceNotifyTask",
    kind: TaskKind::NonIo,
    class: TaskClass::Quick,
    priority: 1,
    expected_duration: Duration::from_millis(100),
};

/// Wakes the task when the first wait may be over.
#[derive(Default)]
pub(crate) struct PersistenceTimeouts(OnceLock<TaskHandle>);

impl PersistenceTimeouts {
    /// A wait of `timeout` has begun. All waits are of the same length, so the first to begin is
    /// the first to end, and the task finds the next one itself.
    pub(crate) fn expect(&self, timeout: Duration) {
        if let Some(task) = self.0.get() {
            task.snooze(timeout);
        }
    }
}

struct EndOverdueWaits(Bucket);

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let task = EndOverdueWaits(bucket.clone());
    let handle = pool.schedule_asleep(bucket.0.owner(), &TIMEOUTS, task)?;
    bucket.0.persistence_timeouts.0.set(handle).expect("the task starts once");
    Ok(())
}

impl Task for EndOverdueWaits {
    fn run(&mut self, _context: &TaskContext<'_>) -> Next {
        let core = &self.0.0;
        let now = core.clock.now();
        let mut next_deadline = None;
        let mut effects = Vec::new();
        for (vbid, slot) in core.slots() {
            let deadline = match slot.lock().as_mut() {
                Some(vbucket) => vbucket.end_overdue_waits(now, &mut effects),
                None => None,
            };
            core.carry_out(vbid, &mut effects);
            next_deadline = next_deadline.into_iter().chain(deadline).min();
        }
        next_deadline.map_or(Next::Sleep, |deadline| Next::SleepFor(deadline.since(now)))
    }
}
