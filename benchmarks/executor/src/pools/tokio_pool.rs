//! Tokio's multi-thread runtime. It knows no kinds of tasks: where tasks of all kinds run, each
//! kind has a runtime of its own here.

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

/// A runtime for tasks that compute, and one for each other kind where there are such tasks.
#[derive(Debug)]
pub struct Tokio {
    non_io: Runtime,
    others: Vec<(TaskKind, Runtime)>,
}

fn runtime(threads: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads).enable_time();
    builder.build().expect("there is room for threads")
}

impl PoolUnderTest for Tokio {
    const NAME: &'static str = "tokio";

    fn start(threads: PoolThreads) -> Self {
        Self { non_io: runtime(threads.non_io), others: Vec::new() }
    }

    fn schedule(&self, job: impl FnOnce() + Send + 'static) {
        self.non_io.spawn(async move { job() });
    }

    fn shutdown(self) {
        self.non_io.shutdown_timeout(SHUTDOWN);
        for (_, runtime) in self.others {
            runtime.shutdown_timeout(SHUTDOWN);
        }
    }
}

impl WakesTasks for Tokio {
    type Sleeper = Arc<Notify>;

    fn sleeper(&self, mut run: impl FnMut() + Send + 'static) -> Arc<Notify> {
        let notify = Arc::new(Notify::new());
        let woken = notify.clone();
        self.non_io.spawn(async move {
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
        let _inside = self.non_io.enter();
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
        let others = TaskKind::ALL.into_iter().filter(|kind| *kind != TaskKind::NonIo);
        let others = others.map(|kind| (kind, runtime(threads.others))).collect();
        Self { others, ..Self::start(threads) }
    }

    fn repeat(&self, kind: TaskKind, mut run: impl FnMut() -> bool + Send + 'static) {
        let other = self.others.iter().find(|(other, _)| *other == kind);
        let runtime = other.map_or(&self.non_io, |(_, runtime)| runtime);
        runtime.spawn(async move {
            while run() {
                tokio::task::yield_now().await;
            }
        });
    }
}
