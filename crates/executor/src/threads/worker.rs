//! A thread of the pool, and what happens to a task that leaves its queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

#[cfg(not(feature = "model"))]
use platform::Clock;
use platform::Instant;

use crate::pool::PoolCore;
use crate::queue::Idle;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread;
use crate::task::cell::{TaskCell, TaskHandle};
use crate::task::state::{Ended, Then};
use crate::task::{Next, TaskClass, TaskContext, TaskKind};
use crate::threads::upkeep::Upkeep;
use crate::timers::Earlier;
use crate::timers::deadline::Timed;

/// A thread that runs tasks of one kind.
#[derive(Debug)]
pub(crate) struct Worker {
    kind: TaskKind,
    class: TaskClass,
    thread: OnceLock<thread::Thread>,
    /// Somebody has woken the thread.
    is_called: AtomicBool,
    /// The thread shall end after the present task.
    is_retiring: AtomicBool,
    /// Its task is believed to be short; used under the lock of its queue.
    runs_short: AtomicBool,
    /// If it is to look after its memory.
    upkeep: Option<Upkeep>,
}

impl Worker {
    /// `class` quick: it runs quick tasks only.
    pub(crate) fn new(kind: TaskKind, class: TaskClass, gives_memory_back: bool) -> Self {
        Self {
            kind,
            class,
            thread: OnceLock::new(),
            is_called: AtomicBool::new(false),
            is_retiring: AtomicBool::new(false),
            runs_short: AtomicBool::new(false),
            upkeep: gives_memory_back.then(Upkeep::new),
        }
    }

    pub(crate) fn class(&self) -> TaskClass {
        self.class
    }

    pub(crate) fn is_retiring(&self) -> bool {
        self.is_retiring.load(Ordering::Acquire)
    }

    /// Ends the thread after the present task; the queue must still be told.
    pub(crate) fn retire(&self) {
        self.is_retiring.store(true, Ordering::Release);
    }

    /// Notes what its queue believes of its task. The caller holds the lock of the queue.
    pub(crate) fn set_runs_short(&self, runs_short: bool) {
        self.runs_short.store(runs_short, Ordering::Relaxed);
    }

    /// Forgets that, and answers it. The caller holds the lock of the queue.
    pub(crate) fn take_runs_short(&self) -> bool {
        let runs_short = self.runs_short.load(Ordering::Relaxed);
        self.runs_short.store(false, Ordering::Relaxed);
        runs_short
    }

    /// Wakes the thread, which has said under its queue's lock that it sleeps.
    pub(crate) fn call(&self) {
        self.is_called.store(true, Ordering::Release);
        self.thread.get().expect("who sleeps has a thread").unpark();
    }

    /// Waits for a call, and looks after memory meanwhile. Only the worker's own thread does.
    pub(crate) fn sleep(&self) {
        while let Some(upkeep) = &self.upkeep
            && let Some(pause) = upkeep.pause()
        {
            if self.sleep_for(pause) {
                return;
            }
            upkeep.look();
        }
        self.sleep_on();
    }

    fn sleep_on(&self) {
        while !self.is_called.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }

    /// Waits for a call, at most for `duration`; whether it has come.
    #[cfg(not(feature = "model"))]
    fn sleep_for(&self, duration: Duration) -> bool {
        let clock = Clock::real();
        let end = clock.now().after(duration);
        while !self.is_called.swap(false, Ordering::Acquire) {
            let left = end.since(clock.now());
            if left.is_zero() {
                return false;
            }
            thread::park_timeout(left);
        }
        true
    }

    /// A model has no time.
    #[cfg(feature = "model")]
    fn sleep_for(&self, _: Duration) -> bool {
        self.sleep_on();
        true
    }

    /// Runs tasks on the calling thread until the pool stops or the worker retires.
    pub(crate) fn work(self: &Arc<Self>, pool: &PoolCore) {
        self.thread.set(thread::current()).expect("a worker has one thread");
        let queue = pool.queue(self.kind);
        let mut idle = Idle { since: pool.clock.now(), expects_task: false };
        let mut is_since_now = true;
        while let Some(taken) = queue.pop(self, &mut idle) {
            // Without a wait that is when the task before ended, or when this one was pushed since.
            let is_known = is_since_now && !taken.has_waited;
            let started = if is_known { idle.since } else { pool.clock.now() };
            let started = started.max(taken.task.queued_at());
            if taken.must_watch {
                pool.timers.watch(started);
            }
            let processed = process(taken.task, started);
            if let Some(upkeep) = &self.upkeep {
                upkeep.note_run();
            }
            (idle.since, is_since_now) = (processed.run_ended, !processed.has_destroyed);
        }
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
