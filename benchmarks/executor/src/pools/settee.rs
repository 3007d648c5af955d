//! Our pool: the whole of it with all statistics, and its interface for closures.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use executor::{
    ExecutorPool, Next, Owner, PoolOptions, Shutdown, TaskContext, TaskHandle, TaskKind,
    ThreadCounts,
};
use platform::Clock;

use super::task_names;
use crate::pool_under_test::{ArmsTimers, PoolThreads, PoolUnderTest, RepeatsTasks, WakesTasks};

const GONE: &str = "the owner is there until the pool shuts down";

/// [`ExecutorPool::schedule_detached`] with a new task object for each run, all statistics on.
#[derive(Debug)]
pub struct Settee {
    pool: ExecutorPool,
    owner: Owner,
}

/// [`ExecutorPool::add`].
#[derive(Debug)]
pub struct SetteeAdd(Settee);

/// A task that is never woken, only snoozed.
#[derive(Debug)]
pub struct SetteeTimer {
    handle: TaskHandle,
    has_fired: Arc<AtomicBool>,
}

impl PoolUnderTest for Settee {
    const NAME: &'static str = "settee";

    fn start(threads: PoolThreads) -> Self {
        let normal = |threads| ThreadCounts { normal: threads, quick: 0 };
        let options = PoolOptions {
            reader: normal(threads.others),
            writer: normal(threads.others),
            aux_io: normal(threads.others),
            non_io: normal(threads.non_io),
            cpus: None,
            gives_memory_back: false,
        };
        let pool = ExecutorPool::start(Clock::real(), options).expect("there is room for threads");
        let owner = pool.register_owner("benchmark");
        Self { pool, owner }
    }

    fn schedule(&self, job: impl FnOnce() + Send + 'static) {
        let mut job = Some(job);
        let task = move |_: &TaskContext<'_>| {
            if let Some(job) = job.take() {
                job();
            }
            Next::Finished
        };
        let name = &task_names::ITEM_PAGER;
        self.pool.schedule_detached(&self.owner, name, task).expect(GONE);
    }

    fn wakeups(&self) -> Option<u64> {
        Some(self.pool.wakeups())
    }

    fn shutdown(self) {
        self.owner.unregister(Shutdown::Force);
        self.pool.shutdown();
    }
}

impl WakesTasks for Settee {
    type Sleeper = TaskHandle;

    fn sleeper(&self, mut run: impl FnMut() + Send + 'static) -> TaskHandle {
        let task = move |_: &TaskContext<'_>| {
            run();
            Next::Sleep
        };
        self.pool.schedule_asleep(&self.owner, &task_names::ITEM_PAGER, task).expect(GONE)
    }

    fn wake(&self, sleeper: &TaskHandle) {
        sleeper.wake();
    }
}

impl ArmsTimers for Settee {
    type Timer = SetteeTimer;

    const TICK: Duration = Duration::from_millis(10);

    fn timer(&self) -> SetteeTimer {
        let has_fired = Arc::new(AtomicBool::new(false));
        let fired = has_fired.clone();
        let task = move |_: &TaskContext<'_>| {
            fired.store(true, Ordering::Release);
            Next::Sleep
        };
        let name = &task_names::DURABILITY_TIMEOUT;
        let handle = self.pool.schedule_asleep(&self.owner, name, task).expect(GONE);
        SetteeTimer { handle, has_fired }
    }

    fn arm(&self, timer: &mut SetteeTimer, delay: Duration) {
        timer.handle.snooze(delay);
    }

    fn has_fired(&self, timer: &SetteeTimer) -> bool {
        timer.has_fired.load(Ordering::Acquire)
    }
}

impl RepeatsTasks for Settee {
    fn repeat(&self, kind: TaskKind, mut run: impl FnMut() -> bool + Send + 'static) {
        let task = move |_: &TaskContext<'_>| if run() { Next::Again } else { Next::Finished };
        self.pool.schedule(&self.owner, task_names::long(kind), task).expect(GONE);
    }
}

impl PoolUnderTest for SetteeAdd {
    const NAME: &'static str = "settee-add";

    fn start(threads: PoolThreads) -> Self {
        Self(Settee::start(threads))
    }

    fn schedule(&self, job: impl FnOnce() + Send + 'static) {
        self.0.pool.add(&self.0.owner, TaskKind::NonIo, job).expect(GONE);
    }

    fn wakeups(&self) -> Option<u64> {
        self.0.wakeups()
    }

    fn shutdown(self) {
        self.0.shutdown();
    }
}
