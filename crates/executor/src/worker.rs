//! What happens to a task that leaves its queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::task::{Next, TaskClass, TaskContext, TaskKind};
use crate::task_cell::{AfterRun, TaskCell, TaskHandle};
use crate::timers::Earlier;

/// Runs tasks of `kind` on the calling thread until the pool stops.
pub(crate) fn work(pool: &crate::pool::PoolCore, kind: TaskKind, class: TaskClass) {
    while let Some(task) = pool.queue(kind).pop(class) {
        process(task);
    }
}

/// Runs a task once, or destroys it when it is dead, and does what follows.
pub(crate) fn process(task: Arc<TaskCell>) {
    if !task.begin_run() {
        task.destroy();
        return;
    }
    let handle = TaskHandle(task);
    // Asked before the run: only a run that begins after the order to drain can be the last one.
    let is_draining = handle.0.owner().is_draining();
    let next = run(&handle, is_draining);
    let task = handle.0;
    let after_run = match next {
        Next::Finished => AfterRun::Dead,
        Next::Again => task.end_run_with_more_to_do(),
        Next::Sleep | Next::SleepFor(_) if is_draining => task.end_last_run(),
        Next::Sleep => task.end_run(),
        Next::SleepFor(duration) => {
            task.snooze(duration, Earlier::Kept);
            task.end_run()
        }
    };
    match after_run {
        AfterRun::Idle => {}
        AfterRun::Queued => task.push(),
        AfterRun::Dead => task.destroy(),
    }
}

fn run(handle: &TaskHandle, is_shutting_down: bool) -> Next {
    let task = &handle.0;
    let clock = &task.pool().clock;
    let started = clock.now();
    task.statistics().record_start(task.queued_at(), started);
    let context = TaskContext { handle, started, is_shutting_down };
    let mut body = task.body();
    let body = body.as_mut().expect("a task that is not dead has a body");
    // A panic ends the process in release builds (decision 0008). Where it unwinds, in tests, it
    // is carried to whoever waits for the owner or the pool.
    let outcome = catch_unwind(AssertUnwindSafe(|| body.run(&context)));
    task.statistics().record_end(started, clock.now());
    outcome.unwrap_or_else(|panic| {
        task.pool().record_panic(panic);
        Next::Finished
    })
}
