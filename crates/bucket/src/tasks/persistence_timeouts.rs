//! Ends waits for persistence whose time is over.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
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
pub(crate) struct PersistenceTimeouts {
    task: OnceLock<TaskHandle>,
    /// Whether the task sleeps until a deadline, which a later one must not replace.
    has_deadline: AtomicBool,
}

impl PersistenceTimeouts {
    /// A wait of `timeout` has begun. All waits are of the same length, so the first to begin is
    /// the first to end, and the task finds the next one itself.
    pub(crate) fn expect(&self, timeout: Duration) {
        if let Some(task) = self.task.get()
            && !self.has_deadline.swap(true, Ordering::AcqRel)
        {
            task.snooze(timeout);
        }
    }
}

struct EndOverdueWaits(Bucket);

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let task = EndOverdueWaits(bucket.clone());
    let handle = pool.schedule_asleep(bucket.0.owner(), &TIMEOUTS, task)?;
    bucket.0.persistence_timeouts.task.set(handle).expect("the task starts once");
    Ok(())
}

impl Task for EndOverdueWaits {
    fn run(&mut self, _context: &TaskContext<'_>) -> Next {
        let core = &self.0.0;
        let has_deadline = &core.persistence_timeouts.has_deadline;
        // Before the search: a wait that it misses sets a deadline of its own.
        has_deadline.store(false, Ordering::Release);
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
        let Some(deadline) = next_deadline else { return Next::Sleep };
        has_deadline.store(true, Ordering::Release);
        Next::SleepFor(deadline.since(now))
    }
}
