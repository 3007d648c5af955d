//! What a thread of the pool does, and what happens to a task that leaves its queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use platform::Instant;

use crate::pool_core::PoolCore;
use crate::queue::Idle;
use crate::queue::priority_queue::Waiting;
use crate::task::cell::{TaskCell, TaskHandle};
use crate::task::state::{Ended, Then};
use crate::task::{Next, TaskContext};
use crate::threads::worker::Worker;
use crate::timers::Earlier;
use crate::timers::deadline::Timed;

/// Runs tasks on the calling thread, which is that of `worker`, until the pool stops or the worker
/// retires.
pub(crate) fn work(worker: &Arc<Worker>, pool: &PoolCore) {
    worker.begin();
    let queue = pool.queue(worker.kind());
    let mut idle = Idle { since: pool.clock.now(), expects_task: false };
    let mut is_since_now = true;
    while let Some(taken) = queue.pop(worker, &mut idle) {
        // Without a wait that is when the task before ended, or when this one was pushed since.
        let is_known = is_since_now && !taken.has_waited;
        let started = if is_known { idle.since } else { pool.clock.now() };
        let started = started.max(taken.task.queued_at());
        if taken.must_watch {
            pool.timers.watch(started);
        }
        let processed = process(taken.task, started);
        worker.note_run();
        (idle.since, is_since_now) = (processed.run_ended, !processed.has_destroyed);
    }
}

/// What [`process`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Processed {
    /// When the run ended; when it was to begin, if there was none.
    run_ended: Instant,
    /// Whether a body was destroyed after that which may have taken long for it.
    has_destroyed: bool,
}

/// Runs a task once, or destroys it when it is dead, and does what follows.
pub(crate) fn process(task: Arc<TaskCell>, started: Instant) -> Processed {
    task.deadline().clear();
    let is_alive = task.state().begin_run();
    // After the run has begun: an owner that ends its tasks from here on wakes it for another run.
    let orders = task.owner().orders();
    if !is_alive || orders.forbids_run_of(&task) {
        let has_destroyed = task.body().has_destructor();
        task.destroy();
        return Processed { run_ended: started, has_destroyed };
    }
    let handle = TaskHandle(task);
    let (next, run_ended) = run(&handle, started, orders.is_draining());
    let task = handle.0;
    let ended = match next {
        Next::Finished => Ended::Done,
        Next::Again => Ended::MoreToDo,
        Next::Sleep | Next::SleepFor(_) if orders.is_draining() => Ended::DoneUnlessNotified,
        Next::Sleep => go_to_sleep(&task),
        Next::SleepFor(duration) => {
            task.snooze(duration, Earlier::Kept);
            go_to_sleep(&task)
        }
    };
    let then = task.state().end_run(ended);
    let has_destroyed = then == Then::Destroy && task.body().has_destructor();
    match then {
        Then::Nothing => {}
        Then::Push => {
            let owner = task.owner().clone();
            TaskCell::push(task, &owner);
        }
        Then::Destroy => task.destroy(),
    }
    Processed { run_ended, has_destroyed }
}

/// A task that sleeps is known to its owner, who may have to end it. An owner that ends its tasks
/// already lets none fall asleep: it would not be woken.
fn go_to_sleep(task: &Arc<TaskCell>) -> Ended {
    if task.is_known_to_owner() || task.owner().admit_sleeper(task) {
        Ended::Asleep
    } else {
        Ended::MoreToDo
    }
}

fn run(handle: &TaskHandle, started: Instant, is_shutting_down: bool) -> (Next, Instant) {
    let task = &handle.0;
    let queued = task.queued_at();
    task.begin_statistics(started);
    let context = TaskContext { handle, started, is_shutting_down };
    // A panic ends the process in release builds (decision 0008). Where it unwinds, in tests, it
    // is carried to whoever waits for the owner or the pool.
    let outcome =
        catch_unwind(AssertUnwindSafe(|| task.owner().within(|| task.body().run(&context))));
    let ended = task.pool().clock.now();
    task.end_statistics(queued, started, ended);
    let next = outcome.unwrap_or_else(|panic| {
        task.pool().record_panic(panic);
        Next::Finished
    });
    (next, ended)
}
