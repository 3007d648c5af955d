//! What a pool must offer to be measured.

use std::time::Duration;

use executor::TaskKind;

/// How many threads a pool under test has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolThreads {
    /// For tasks that only compute; those are what the benchmarks schedule.
    pub non_io: usize,
    /// Of each other kind, in pools that tell kinds apart.
    pub others: usize,
}

impl PoolThreads {
    /// Threads of one kind.
    pub fn of(self, kind: TaskKind) -> usize {
        if kind == TaskKind::NonIo { self.non_io } else { self.others }
    }
}

/// A pool that runs one-shot tasks. What else it can do, it says by the other traits here; each
/// benchmark asks for what it needs.
pub trait PoolUnderTest: Send + Sync + Sized + 'static {
    /// As reports name it.
    const NAME: &'static str;

    /// Starts the pool. Panics when the machine has no room for its threads.
    fn start(threads: PoolThreads) -> Self;

    /// Runs `job` once, as soon as possible, on a thread of the pool, in the way that the pool
    /// intends for a task that is made for one run.
    fn schedule(&self, job: impl FnOnce() + Send + 'static);

    /// How often threads of the pool have returned from waiting, where the pool counts that.
    fn wakeups(&self) -> Option<u64> {
        None
    }

    /// Drops what has not run and ends all threads.
    fn shutdown(self);
}

/// A pool with tasks that live long and sleep between runs.
pub trait WakesTasks: PoolUnderTest {
    /// How callers address a sleeping task.
    type Sleeper: Send;

    /// Adds a task that sleeps until it is woken, runs, and sleeps again.
    fn sleeper(&self, run: impl FnMut() + Send + 'static) -> Self::Sleeper;

    /// Lets the task run once more.
    fn wake(&self, sleeper: &Self::Sleeper);
}

/// A pool with timers that can be armed again before they fire.
pub trait ArmsTimers: PoolUnderTest {
    /// How callers address a timer.
    type Timer: Send;

    /// The resolution that the pool's design promises: how late a timer may be on an idle machine,
    /// and how early if the design permits it.
    const TICK: Duration;

    /// Adds a timer that is not armed.
    fn timer(&self) -> Self::Timer;

    /// Lets the timer fire when `delay` has passed, and not when it would have fired before.
    fn arm(&self, timer: &mut Self::Timer, delay: Duration);

    /// Whether the timer has fired since it was made.
    fn has_fired(&self, timer: &Self::Timer) -> bool;

    /// Waits until every call of [`ArmsTimers::arm`] by this thread has had its effect. For pools
    /// in which it has when it returns, there is nothing to do.
    fn settle(&self) {}
}

/// A pool with tasks of all kinds that run again and again.
pub trait RepeatsTasks: PoolUnderTest {
    /// Starts the pool for tasks of all kinds, each with threads of its own. A pool that does not
    /// tell kinds apart is started once for each.
    fn start_for_all_kinds(threads: PoolThreads) -> Self {
        Self::start(threads)
    }

    /// Adds a task that runs, and queues up again as long as `run` answers true.
    fn repeat(&self, kind: TaskKind, run: impl FnMut() -> bool + Send + 'static);
}
