//! What a task is: a body, what it knows while it runs, and what it answers then.

pub(crate) mod cell;
pub(crate) mod id;
pub(crate) mod kind;
pub(crate) mod name;
pub(crate) mod state;

use std::time::Duration;

use platform::Instant;

use crate::task::cell::TaskHandle;

/// What happens to a task after a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is done: the task is destroyed.
    Finished,
    /// It has more to do and queues up behind the others of its kind.
    Again,
    /// It sleeps until it is woken. A deadline that was set by a snooze during the run stays.
    Sleep,
    /// It sleeps until it is woken or the time has passed, whichever comes first. Of this deadline
    /// and one that was set by a snooze during the run, the earlier one holds.
    SleepFor(Duration),
}

/// The work of a background task. Closures that take a context and answer [`Next`] are tasks.
pub trait Task: Send {
    /// Does a bounded amount of work and says what comes next.
    fn run(&mut self, context: &TaskContext<'_>) -> Next;

    /// What it is doing, for statistics and logs; its name when there is nothing to add. Asked
    /// between runs.
    fn describe(&self) -> Option<String> {
        None
    }
}

impl<F: FnMut(&TaskContext<'_>) -> Next + Send> Task for F {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        self(context)
    }
}

/// What a task knows while it runs.
#[derive(Debug)]
pub struct TaskContext<'a> {
    pub(crate) handle: &'a TaskHandle,
    pub(crate) started: Instant,
    pub(crate) is_shutting_down: bool,
}

impl TaskContext<'_> {
    /// The running task, for waking it later.
    pub fn handle(&self) -> &TaskHandle {
        self.handle
    }

    /// When this run began.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// Whether the owner is being drained. Unless it answers [`Next::Again`], the task is destroyed
    /// after this run.
    pub fn is_shutting_down(&self) -> bool {
        self.is_shutting_down
    }
}
