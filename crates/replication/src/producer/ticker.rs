//! Has a producer look at the time now and then, for its NOOPs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bucket::Bucket;
use executor::{ExecutorPool, Next, TaskContext, TaskHandle, TaskKind, TaskName};

use super::shared::ProducerShared;

static TICKER: TaskName =
    TaskName::new("DcpNoopTask", TaskKind::NonIo).priority(5).expected(Duration::from_millis(1));

/// Wakes the producer's owner at intervals. Sleeps while there are none.
#[derive(Default)]
pub(super) struct Ticker {
    interval_ms: Arc<AtomicU64>,
    task: Option<TaskHandle>,
}

impl Ticker {
    /// From now on the owner is woken at this interval, or not at all.
    pub(super) fn set_interval(
        &mut self,
        interval: Option<Duration>,
        bucket: &Bucket,
        pool: &ExecutorPool,
        shared: &Arc<ProducerShared>,
    ) {
        let millis = interval.map_or(0, |interval| interval.as_millis().max(1));
        self.interval_ms.store(u64::try_from(millis).unwrap_or(u64::MAX), Ordering::Relaxed);
        if self.task.is_none() {
            let (interval_ms, shared) = (Arc::clone(&self.interval_ms), Arc::clone(shared));
            let tick = move |_: &TaskContext<'_>| {
                shared.wake();
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
