//! Has a connection look at the time now and then, for its NOOPs among others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bucket::Bucket;
use executor::{ExecutorPool, Next, TaskContext, TaskHandle, TaskKind, TaskName};

static TICKER: TaskName =
    TaskName::new("DcpNoopTask", TaskKind::NonIo).priority(5).expected(Duration::from_millis(1));

/// Wakes a connection's owner at intervals. Sleeps while there are none.
#[derive(Default)]
pub(crate) struct Ticker {
    interval_ms: Arc<AtomicU64>,
    task: Option<TaskHandle>,
}

impl Ticker {
    /// From now on the owner is woken at this interval, or not at all.
    pub(crate) fn set_interval(
        &mut self,
        interval: Option<Duration>,
        bucket: &Bucket,
        pool: &ExecutorPool,
        wake: impl Fn() + Send + 'static,
    ) {
        let millis = interval.map_or(0, |interval| interval.as_millis().max(1));
        self.interval_ms.store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Relaxed);
        if self.task.is_none() {
            let interval_ms = Arc::clone(&self.interval_ms);
            let tick = move |_: &TaskContext<'_>| {
                wake();
                match interval_ms.load(Ordering::Relaxed) {
                    0 => Next::Sleep,
                    millis => Next::SleepFor(Duration::from_millis(millis)),
                }
            };
            // A bucket that is closing has no more connections soon.
            self.task = pool.schedule_asleep(bucket.task_owner(), &TICKER, tick).ok();
        }
        if let Some(task) = &self.task {
            task.wake();
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.cancel();
        }
    }
}
