//! How often documents are looked for whose time is over.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use executor::TaskHandle;

use crate::core::Wakeable;

/// When the expiry pager goes through the bucket.
pub(super) struct ExpiryPace {
    /// From the end of one round to the next.
    interval_ns: AtomicU64,
    task: Wakeable,
}

impl ExpiryPace {
    pub(super) fn new(interval: Duration) -> Self {
        let pace = Self { interval_ns: AtomicU64::default(), task: Wakeable::default() };
        pace.set_interval(interval);
        pace
    }

    pub(super) fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval_ns.load(Ordering::Relaxed))
    }

    pub(super) fn set_task(&self, task: TaskHandle) {
        task.snooze(self.interval());
        self.task.set(task);
    }

    /// The next round comes after so long from now.
    pub(super) fn set_interval(&self, interval: Duration) {
        let nanos = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        self.interval_ns.store(nanos, Ordering::Relaxed);
        self.task.snooze(interval);
    }
}
