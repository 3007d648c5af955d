//! How often tasks run, how long they wait and how long they take.

use std::time::Duration;

use document::{Histogram, HistogramSnapshot};
use platform::Instant;

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::task::kind::TaskKind;
use crate::task::name::TaskName;

/// What the tasks of one name have done for one owner.
#[derive(Debug)]
pub(crate) struct TaskStatistics {
    name: &'static TaskName,
    queue_time_ns: Histogram,
    run_time_ns: Histogram,
    slow_runs: AtomicU64,
    /// How long a run takes of late; what the name expects before the first one. See
    /// [`adjusted`].
    usual_run_ns: AtomicU64,
}

/// What the tasks of one name have done.
#[derive(Clone, Debug)]
pub struct TaskStatisticsSnapshot {
    /// Whose statistics these are.
    pub name: &'static TaskName,
    /// Nanoseconds from the wake until the run began. Its count is the number of runs ended.
    pub queue_time_ns: HistogramSnapshot,
    /// Nanoseconds of each run. Its count is the number of runs ended.
    pub run_time_ns: HistogramSnapshot,
    /// Runs that took longer than [`TaskName::expected_duration`].
    pub slow_runs: u64,
}

impl TaskStatistics {
    pub(crate) fn new(name: &'static TaskName) -> Self {
        Self {
            name,
            queue_time_ns: Histogram::new(),
            run_time_ns: Histogram::new(),
            slow_runs: AtomicU64::new(0),
            usual_run_ns: AtomicU64::new(nanoseconds(name.expected_duration())),
        }
    }

    /// Counts a run that has ended: nobody waits for that any more.
    pub(crate) fn record(&self, queued: Instant, started: Instant, ended: Instant) {
        self.queue_time_ns.record(nanoseconds(started.since(queued)));
        let run_time = ended.since(started);
        let run_ns = nanoseconds(run_time);
        self.run_time_ns.record(run_ns);
        let usual = self.usual_run_ns.load(Ordering::Relaxed);
        self.usual_run_ns.store(adjusted(usual, run_ns), Ordering::Relaxed);
        if run_time > self.name.expected_duration() {
            self.slow_runs.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How long a run takes of late.
    pub(crate) fn usual_run_ns(&self) -> u64 {
        self.usual_run_ns.load(Ordering::Relaxed)
    }

    pub(crate) fn snapshot(&self) -> TaskStatisticsSnapshot {
        TaskStatisticsSnapshot {
            name: self.name,
            queue_time_ns: self.queue_time_ns.snapshot(),
            run_time_ns: self.run_time_ns.snapshot(),
            slow_runs: self.slow_runs.load(Ordering::Relaxed),
        }
    }
}

/// What is usual after a run of `run_ns`: halfway between a mean and a median. One run that takes a
/// thousand times longer, because its thread was preempted, does not count as a thousand; many that
/// take longer move it quickly all the same.
fn adjusted(usual_ns: u64, run_ns: u64) -> u64 {
    let rise_max = usual_ns / 4 + 100;
    if run_ns > usual_ns {
        usual_ns + ((run_ns - usual_ns) / 8).min(rise_max)
    } else {
        usual_ns - (usual_ns - run_ns) / 8
    }
}

impl TaskStatisticsSnapshot {
    /// Adds what tasks of the same name have done for another owner.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.queue_time_ns.merge(&other.queue_time_ns);
        self.run_time_ns.merge(&other.run_time_ns);
        self.slow_runs += other.slow_runs;
    }
}

/// The runs of one task. Written by whoever runs it, so one writer at a time.
#[derive(Debug, Default)]
pub(crate) struct TaskActivity {
    total_run_ns: AtomicU64,
    last_started_ns: AtomicU64,
    /// Wraps around.
    run_count: AtomicU32,
    /// At most 71 minutes.
    last_run_us: AtomicU32,
}

/// What one task has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskRuns {
    /// Runs that have ended, modulo 2^32.
    pub run_count: u32,
    /// All of them together.
    pub total_run_time: Duration,
    /// The last one, in whole microseconds and at most 71 minutes.
    pub last_run_time: Duration,
    /// When the last run began; the origin of time before the first one.
    pub last_started: Instant,
}

impl TaskActivity {
    pub(crate) fn begin(&self, started: Instant) {
        self.last_started_ns.store(started.0, Ordering::Relaxed);
    }

    pub(crate) fn end(&self, started: Instant, ended: Instant) {
        let run_time = ended.since(started);
        let run_count = self.run_count.load(Ordering::Relaxed).wrapping_add(1);
        let total_run_ns = self.total_run_ns.load(Ordering::Relaxed) + nanoseconds(run_time);
        let last_run_us = u32::try_from(run_time.as_micros()).unwrap_or(u32::MAX);
        self.run_count.store(run_count, Ordering::Relaxed);
        self.total_run_ns.store(total_run_ns, Ordering::Relaxed);
        self.last_run_us.store(last_run_us, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> TaskRuns {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TaskRuns {
            run_count: self.run_count.load(Ordering::Relaxed),
            total_run_time: Duration::from_nanos(load(&self.total_run_ns)),
            last_run_time: Duration::from_micros(self.last_run_us.load(Ordering::Relaxed).into()),
            last_started: Instant(load(&self.last_started_ns)),
        }
    }
}

/// One task at one moment.
#[derive(Clone, Debug)]
pub struct TaskStatus {
    /// Unique within the process.
    pub id: u64,
    /// Its name.
    pub name: &'static TaskName,
    /// "ready" (it waits for a thread), "running", "snoozed" or "dead".
    pub state: &'static str,
    /// What it says it is doing, if it says anything. Unknown while it runs.
    pub description: Option<String>,
    /// When it wakes up by itself, if it does.
    pub due: Option<Instant>,
    /// When it was woken last.
    pub queued: Instant,
    /// Its runs.
    pub runs: TaskRuns,
}

/// The threads of one kind at one moment, and what waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// The kind.
    pub kind: TaskKind,
    /// Threads that run any task of it.
    pub normal_threads: usize,
    /// Threads that run its quick tasks only.
    pub quick_threads: usize,
    /// Threads of both sorts that sleep.
    pub sleeping_threads: usize,
    /// Normal tasks that wait for a thread.
    pub normal_ready: usize,
    /// Quick tasks that wait for a thread.
    pub quick_ready: usize,
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn one_long_run_is_no_habit_and_many_are() {
        let settle = |mut usual, run: u64, count| {
            for _ in 0..count {
                usual = adjusted(usual, run);
            }
            usual
        };
        let short = settle(100_000_000, 1_000, 200);
        assert!((1_000..1_100).contains(&short), "{short}");
        assert!(adjusted(short, 3_000_000) < 1_500);
        let long = settle(short, 3_000_000, 60);
        assert!(long > 2_000_000, "{long}");
    }
}
