//! How often tasks run, how long they wait and how long they take, by name.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use document::{Histogram, HistogramSnapshot};
use platform::Instant;

use crate::task::TaskName;

/// What the tasks of one name have done since the pool began.
#[derive(Debug)]
pub struct TaskStatistics {
    name: &'static TaskName,
    queue_time_ns: Histogram,
    run_time_ns: Histogram,
    slow_runs: AtomicU64,
}

/// A copy of [`TaskStatistics`].
#[derive(Clone, Debug)]
pub struct TaskStatisticsSnapshot {
    /// Whose statistics these are.
    pub name: &'static TaskName,
    /// Nanoseconds from the wake until the run began. Its count is the number of runs begun.
    pub queue_time_ns: HistogramSnapshot,
    /// Nanoseconds of each run. Its count is the number of runs ended.
    pub run_time_ns: HistogramSnapshot,
    /// Runs that took longer than [`TaskName::expected_duration`].
    pub slow_runs: u64,
}

impl TaskStatistics {
    fn new(name: &'static TaskName) -> Self {
        Self {
            name,
            queue_time_ns: Histogram::new(),
            run_time_ns: Histogram::new(),
            slow_runs: AtomicU64::new(0),
        }
    }

    pub(crate) fn record_start(&self, queued: Instant, started: Instant) {
        self.queue_time_ns.record(nanoseconds(queued, started));
    }

    pub(crate) fn record_end(&self, started: Instant, ended: Instant) {
        self.run_time_ns.record(nanoseconds(started, ended));
        if ended.since(started) > self.name.expected_duration {
            self.slow_runs.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn snapshot(&self) -> TaskStatisticsSnapshot {
        TaskStatisticsSnapshot {
            name: self.name,
            queue_time_ns: self.queue_time_ns.snapshot(),
            run_time_ns: self.run_time_ns.snapshot(),
            slow_runs: self.slow_runs.load(Ordering::Relaxed),
        }
    }
}

fn nanoseconds(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.since(from).as_nanos()).unwrap_or(u64::MAX)
}

/// The statistics of all names that the pool has seen.
#[derive(Debug, Default)]
pub(crate) struct StatisticsByName(Mutex<BTreeMap<&'static str, Arc<TaskStatistics>>>);

impl StatisticsByName {
    /// The statistics of `name`, begun when it is new.
    pub(crate) fn of(&self, name: &'static TaskName) -> Arc<TaskStatistics> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let statistics =
            all.entry(name.name).or_insert_with(|| Arc::new(TaskStatistics::new(name)));
        assert_eq!(*statistics.name, *name, "one name means one kind of task");
        statistics.clone()
    }

    /// All of them, by name.
    pub(crate) fn snapshot(&self) -> Vec<TaskStatisticsSnapshot> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().map(|statistics| statistics.snapshot()).collect()
    }
}
