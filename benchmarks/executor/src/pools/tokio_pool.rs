//! Tokio's multi-thread runtime. It knows no kinds of tasks: all run on the same workers.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use executor::TaskKind;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};

use crate::pool_under_test::{ArmsTimers, PoolThreads, PoolUnderTest, RepeatsTasks, WakesTasks};

/// How long a shutdown waits for tasks that run; what the benchmarks leave behind has ended.
const SHUTDOWN: Duration = Duration::from_secs(10);
/// Of a timer that nobody has armed yet.
const FAR_AWAY: Duration = Duration::from_secs(365 * 24 * 3600);

/// A runtime.
#[derive(Debug)]
pub struct Tokio(Runtime);

impl PoolUnderTest for Tokio {
    const NAME: &'static str = "tokio";

    fn start(threads: PoolThreads) -> Self {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(threads.non_io).enable_time();
        Self(builder.build().expect("there is room for threads"))
    }

    fn schedule(&self, job: impl FnOnce() + Send + 'static) {
        self.0.spawn(async move { job() });
    }

    fn shutdown(self) {
        self.0.shutdown_timeout(SHUTDOWN);
    }
}

impl WakesTasks for Tokio {
    type Sleeper = Arc<Notify>;

    fn sleeper(&self, mut run: impl FnMut() + Send + 'static) -> Arc<Notify> {
        let notify = Arc::new(Notify::new());
        let woken = notify.clone();
        self.0.spawn(async move {
            loop {
                woken.notified().await;
                run();
            }
        });
        notify
    }

    fn wake(&self, sleeper: &Arc<Notify>) {
        sleeper.notify_one();
    }
}

/// The closest thing to a timer that somebody else re-arms is a [`Sleep`] that the re-arming thread
/// owns: a sleep inside of a task can be reset by that task only, which would measure a message to
/// it. `reset` registers the deadline with the runtime's wheel before it returns.
impl ArmsTimers for Tokio {
    type Timer = Pin<Box<Sleep>>;

    const TICK: Duration = Duration::from_millis(1);

    fn timer(&self) -> Self::Timer {
        let _inside = self.0.enter();
        Box::pin(sleep(FAR_AWAY))
    }

    fn arm(&self, timer: &mut Self::Timer, delay: Duration) {
        timer.as_mut().reset(Instant::now() + delay);
    }

    fn has_fired(&self, timer: &Self::Timer) -> bool {
        timer.is_elapsed()
    }
}

impl RepeatsTasks for Tokio {
    fn start_for_all_kinds(threads: PoolThreads) -> Self {
        let other_kinds = TaskKind::ALL.len() - 1;
        let non_io = threads.non_io + other_kinds * threads.others;
        Self::start(PoolThreads { non_io, others: 0 })
    }

    fn repeat(&self, _kind: TaskKind, mut run: impl FnMut() -> bool + Send + 'static) {
        self.0.spawn(async move {
            while run() {
                tokio::task::yield_now().await;
            }
        });
    }
}
