//! A task that others wake, as they know it: whoever has one knows nothing of what it does.

use std::sync::OnceLock;
use std::time::Duration;

use executor::TaskHandle;

/// A task that others wake, from before it is scheduled.
#[derive(Default)]
pub(crate) struct Wakeable(OnceLock<TaskHandle>);

impl Wakeable {
    /// Wakes the task if there is one by now.
    pub(crate) fn wake(&self) {
        if let Some(task) = self.0.get() {
            task.wake();
        }
    }

    /// The task runs after `pause` if there is one by now, unless it is woken before.
    pub(crate) fn snooze(&self, pause: Duration) {
        if let Some(task) = self.0.get() {
            task.snooze(pause);
        }
    }

    /// From now on `task` is woken.
    pub(crate) fn set(&self, task: TaskHandle) {
        assert!(self.0.set(task).is_ok(), "a task starts once");
    }
}
