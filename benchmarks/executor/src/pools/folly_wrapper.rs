//! The original's present design: a wrapper around Folly in which one scheduler thread owns
//! everything, re-created from a description of its structure.
//!
//! To schedule or cancel is a closure that is posted to the scheduler thread and waited for; to
//! wake or snooze is one that is not waited for. The thread finds the task by its number, arms its
//! timer in a hashed hierarchical wheel, and hands tasks that are due to the CPU pool of their
//! kind. After each run the CPU pool posts another closure, which decides what comes next. A task
//! that has ended goes through its CPU pool once more, to be destroyed there.

mod cpu_pool;
mod inbox;
mod scheduler;
mod throttled_semaphore;
mod wheel;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use executor::TaskKind;
use platform::{Clock, Instant, threads};

use super::original_task::{NEVER, OriginalTask};
use crate::pool_under_test::{ArmsTimers, PoolThreads, PoolUnderTest, RepeatsTasks, WakesTasks};
use cpu_pool::CpuPools;
use inbox::Inbox;
use scheduler::Scheduler;

/// The pool as upstream runs it: nobody waits for the backlog of the scheduler thread.
#[derive(Debug)]
pub struct FollyWrapper {
    clock: Clock,
    inbox: Arc<Inbox>,
    cpu_pools: Arc<CpuPools>,
    cpu_threads: Vec<JoinHandle<()>>,
    scheduler_thread: JoinHandle<()>,
    next_id: AtomicU64,
}

/// The same pool, with the backlog of timers waited for inside of the measured time.
#[derive(Debug)]
pub struct FollyWrapperDrained(FollyWrapper);

/// A timer: the task's number, and what it does when it runs.
#[derive(Debug)]
pub struct WrapperTimer {
    id: u64,
    has_fired: Arc<AtomicBool>,
}

impl FollyWrapper {
    fn add(
        &self,
        kind: TaskKind,
        wake_time: Instant,
        body: impl FnMut(&OriginalTask) -> bool + Send + 'static,
    ) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let task = Arc::new(OriginalTask::new(id, kind, wake_time, body));
        self.inbox.post_and_wait(move |scheduler| scheduler.schedule(task));
        id
    }

    fn snooze(&self, id: u64, delay: Duration) {
        self.inbox.post(move |scheduler| scheduler.snooze(id, delay));
    }

    /// Waits until the scheduler thread has done everything that was posted so far.
    fn drain(&self) {
        self.inbox.post_and_wait(|_| {});
    }
}

impl PoolUnderTest for FollyWrapper {
    const NAME: &'static str = "folly-wrapper";

    fn start(threads: PoolThreads) -> Self {
        let clock = Clock::real();
        let inbox = Arc::new(Inbox::default());
        let cpu_pools = Arc::new(CpuPools::new(clock.clone(), inbox.clone(), threads));
        let scheduler = Scheduler::new(clock.clone(), cpu_pools.clone());
        let own_inbox = inbox.clone();
        let scheduler_thread = threads::spawn("SchedulerPool0", move || scheduler.run(&own_inbox));
        Self {
            clock,
            inbox,
            cpu_threads: CpuPools::start_threads(&cpu_pools),
            cpu_pools,
            scheduler_thread: scheduler_thread.expect("there is room for a thread"),
            next_id: AtomicU64::new(1),
        }
    }

    fn schedule(&self, job: impl FnOnce() + Send + 'static) {
        let mut job = Some(job);
        self.add(TaskKind::NonIo, self.clock.now(), move |_| {
            if let Some(job) = job.take() {
                job();
            }
            false
        });
    }

    fn shutdown(self) {
        self.inbox.post_and_wait(Scheduler::kill_all);
        self.cpu_pools.stop();
        for thread in self.cpu_threads {
            thread.join().expect("tasks of benchmarks do not panic");
        }
        self.inbox.stop();
        self.scheduler_thread.join().expect("the scheduler does not panic");
    }
}

impl WakesTasks for FollyWrapper {
    type Sleeper = u64;

    fn sleeper(&self, mut run: impl FnMut() + Send + 'static) -> u64 {
        self.add(TaskKind::NonIo, NEVER, move |task| {
            task.set_wake_time(NEVER);
            run();
            true
        })
    }

    fn wake(&self, &id: &u64) {
        self.inbox.post(move |scheduler| scheduler.wake(id));
    }
}

impl ArmsTimers for FollyWrapper {
    type Timer = WrapperTimer;

    const TICK: Duration = wheel::TICK;

    fn timer(&self) -> WrapperTimer {
        let has_fired = Arc::new(AtomicBool::new(false));
        let fired = has_fired.clone();
        let id = self.add(TaskKind::NonIo, NEVER, move |task| {
            task.set_wake_time(NEVER);
            fired.store(true, Ordering::Release);
            true
        });
        WrapperTimer { id, has_fired }
    }

    fn arm(&self, timer: &mut WrapperTimer, delay: Duration) {
        self.snooze(timer.id, delay);
    }

    fn has_fired(&self, timer: &WrapperTimer) -> bool {
        timer.has_fired.load(Ordering::Acquire)
    }
}

impl RepeatsTasks for FollyWrapper {
    fn repeat(&self, kind: TaskKind, mut run: impl FnMut() -> bool + Send + 'static) {
        self.add(kind, self.clock.now(), move |_| run());
    }
}

impl PoolUnderTest for FollyWrapperDrained {
    const NAME: &'static str = "folly-wrapper-drained";

    fn start(threads: PoolThreads) -> Self {
        Self(FollyWrapper::start(threads))
    }

    fn schedule(&self, job: impl FnOnce() + Send + 'static) {
        self.0.schedule(job);
    }

    fn shutdown(self) {
        self.0.shutdown();
    }
}

impl ArmsTimers for FollyWrapperDrained {
    type Timer = WrapperTimer;

    const TICK: Duration = wheel::TICK;

    fn timer(&self) -> WrapperTimer {
        self.0.timer()
    }

    fn arm(&self, timer: &mut WrapperTimer, delay: Duration) {
        self.0.arm(timer, delay);
    }

    fn has_fired(&self, timer: &WrapperTimer) -> bool {
        self.0.has_fired(timer)
    }

    fn settle(&self) {
        self.0.drain();
    }
}
