//! Tasks that know whether somebody has notified them or their time to sleep has passed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::owner::Owner;
use crate::owner::terms::OwnerIsGone;
use crate::pool::ExecutorPool;
use crate::task::cell::TaskHandle;
use crate::task::name::TaskName;
use crate::task::{Next, Task, TaskContext};

/// The work of a task that sleeps until it is notified or its time has passed. Closures that take
/// a `bool` and a context and answer [`Next`] are such work.
pub trait NotifiableTask: Send {
    /// As [`Task::run`]. `is_notified`: somebody has called [`Notifier::notify`] since the previous
    /// run looked. Otherwise its time to sleep has passed, or it was woken through its handle, or,
    /// at most once a notification, a run for another reason has met the notification already.
    fn run(&mut self, is_notified: bool, context: &TaskContext<'_>) -> Next;
}

impl<F: FnMut(bool, &TaskContext<'_>) -> Next + Send> NotifiableTask for F {
    fn run(&mut self, is_notified: bool, context: &TaskContext<'_>) -> Next {
        self(is_notified, context)
    }
}

/// Notifies one task, from any thread. A handle: clones notify the same task.
#[derive(Clone, Debug)]
pub struct Notifier {
    /// A notification that no run has seen yet. Whoever sets it wakes the task.
    is_pending: Arc<AtomicBool>,
    task: TaskHandle,
}

impl Notifier {
    /// Adds a task that runs when it is notified, or woken through [`Notifier::task`], for the
    /// first time.
    pub fn schedule_asleep(
        pool: &ExecutorPool,
        owner: &Owner,
        name: &'static TaskName,
        work: impl NotifiableTask + 'static,
    ) -> Result<Self, OwnerIsGone> {
        let is_pending = Arc::new(AtomicBool::new(false));
        let notified = Notified { is_pending: is_pending.clone(), work };
        let task = pool.schedule_asleep(owner, name, notified)?;
        Ok(Self { is_pending, task })
    }

    /// A run that begins after this call is told that it was notified, and what the caller wrote
    /// before is seen by it. Costs one atomic swap while a notification is pending, and answers
    /// false then.
    pub fn notify(&self) -> bool {
        // A plain load would not do: it could be overtaken by the run that clears the flag and
        // misses what the caller has written just before.
        let is_first = !self.is_pending.swap(true, Ordering::AcqRel);
        if is_first {
            self.task.wake();
        }
        is_first
    }

    /// The task, for snoozing and cancelling it. Waking it is no notification.
    pub fn task(&self) -> &TaskHandle {
        &self.task
    }
}

struct Notified<W> {
    is_pending: Arc<AtomicBool>,
    work: W,
}

impl<W: NotifiableTask> Task for Notified<W> {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        // Before the work: a notification that comes during it causes another run.
        let is_notified = self.is_pending.swap(false, Ordering::AcqRel);
        self.work.run(is_notified, context)
    }
}
