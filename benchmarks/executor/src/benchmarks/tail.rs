//! How long a task waits for its run when the pool is half loaded: with nothing else, and with one
//! long task of every kind that runs at the same time.
//!
//! An open loop: tasks of 20 us of CPU are scheduled every 40 us, half of one CPU, whether or not
//! earlier ones have run. A latency is from before the call of `schedule` to the first statement of
//! the run. When the machine keeps the scheduling thread from its CPU, it schedules what is overdue
//! when it comes back; that delay is not part of the latencies.
//!
//! The long tasks take 100 ms a run and begin again at once. Those of the kinds that work with
//! files block, as a slow disk lets them; the one that computes computes, on the kind's threads
//! that the short tasks use as well.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use executor::TaskKind;
use hdrhistogram::Histogram;
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

use crate::pool_under_test::{PoolThreads, RepeatsTasks};

/// CPU time of a short task.
const SHORT: Duration = Duration::from_micros(20);
/// Between two short tasks.
const PERIOD: Duration = Duration::from_micros(40);
/// How long a run of a long task takes.
const LONG: Duration = Duration::from_millis(100);
/// Scheduling the tasks of a time may take so many times longer.
const OVERTIME_FACTOR: u32 = 3;
/// How long what has been scheduled may take to run, or the pool has lost it.
const PATIENCE: Duration = Duration::from_secs(60);
/// Significant digits of a latency.
const DIGITS: u8 = 3;
/// Threads of the pool.
pub const THREADS: PoolThreads = PoolThreads { non_io: 2, others: 2 };

/// Nanoseconds that all tasks of one measurement took.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// From schedule to run.
    waited: Histogram<u64>,
    /// From the time at which a task was to be scheduled until it was: what comes late comes in
    /// bursts, in which each task waits for those before it.
    late: Histogram<u64>,
}

impl Latencies {
    /// The latency in microseconds that a share of all tasks did not exceed.
    pub fn micros_at(&self, quantile: f64) -> f64 {
        self.waited.value_at_quantile(quantile) as f64 / 1e3
    }

    /// By how many microseconds a share of all tasks was scheduled late, at most.
    pub fn late_micros_at(&self, quantile: f64) -> f64 {
        self.late.value_at_quantile(quantile) as f64 / 1e3
    }

    /// How many tasks there were.
    pub fn count(&self) -> u64 {
        self.waited.len()
    }
}

/// What else runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongTasks {
    /// Nothing.
    None,
    /// One task of every kind.
    OneOfEachKind,
}

impl LongTasks {
    /// Both settings.
    pub const ALL: [Self; 2] = [Self::None, Self::OneOfEachKind];

    /// Kinds with a long task.
    pub fn kinds(self) -> &'static [TaskKind] {
        match self {
            Self::None => &[],
            Self::OneOfEachKind => &TaskKind::ALL,
        }
    }
}

/// Measures one pool for `duration`.
pub fn measure<P: RepeatsTasks>(long_tasks: LongTasks, duration: Duration) -> Latencies {
    let pool = P::start_for_all_kinds(THREADS);
    let is_over = Arc::new(AtomicBool::new(false));
    for &kind in long_tasks.kinds() {
        let is_over = is_over.clone();
        pool.repeat(kind, move || {
            run_long(kind);
            !is_over.load(Ordering::Relaxed)
        });
    }
    let (slots, late) = schedule_for(&pool, duration);
    let count = usize::try_from(late.len()).unwrap_or(usize::MAX).min(slots.len());
    let waited = collect(&slots[..count], P::NAME);
    is_over.store(true, Ordering::Relaxed);
    pool.shutdown();
    Latencies { waited, late }
}

fn run_long(kind: TaskKind) {
    match kind {
        TaskKind::NonIo => burn(LONG),
        TaskKind::Reader | TaskKind::Writer | TaskKind::AuxIo => std::thread::sleep(LONG),
    }
}

/// Schedules the short tasks of `duration`, each with a slot for its latency in nanoseconds; 0
/// until it has run. A pool that takes much longer to schedule them gets fewer. Returns how late
/// each of them was scheduled as well.
fn schedule_for<P: RepeatsTasks>(
    pool: &P,
    duration: Duration,
) -> (Arc<[AtomicU64]>, Histogram<u64>) {
    // Without it the kernel adds 50 us to each sleep. Where it is forbidden, bursts are the price.
    set_current_timer_slack(NonZeroU64::new(1)).ok();
    let count = usize::try_from(duration.as_nanos() / PERIOD.as_nanos()).unwrap_or(usize::MAX);
    let slots: Arc<[AtomicU64]> = (0..count.max(1)).map(|_| AtomicU64::new(0)).collect();
    let mut due = Instant::now();
    let end = due + duration * OVERTIME_FACTOR;
    let mut late = histogram();
    for index in 0..slots.len() {
        if Instant::now() >= end {
            break;
        }
        due += PERIOD;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let slots = slots.clone();
        let scheduled = Instant::now();
        late.saturating_record(nanos(scheduled.saturating_duration_since(due)));
        pool.schedule(move || {
            slots[index].store(nanos(scheduled.elapsed()).max(1), Ordering::Release);
            burn(SHORT);
        });
    }
    (slots, late)
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(nanos(PATIENCE), DIGITS).expect("three digits are permitted")
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn collect(slots: &[AtomicU64], name: &str) -> Histogram<u64> {
    let started = Instant::now();
    let mut histogram = histogram();
    for slot in slots {
        let nanos = loop {
            let nanos = slot.load(Ordering::Acquire);
            if nanos != 0 {
                break nanos;
            }
            assert!(started.elapsed() < PATIENCE, "{name}: a scheduled task has not run");
            std::thread::sleep(Duration::from_millis(1));
        };
        histogram.saturating_record(nanos);
    }
    histogram
}

/// Uses CPU time of the calling thread.
fn burn(cpu: Duration) {
    let until = thread_cpu_time() + cpu;
    while thread_cpu_time() < until {
        std::hint::spin_loop();
    }
}

/// CPU time of the calling thread until now.
pub(super) fn thread_cpu_time() -> Duration {
    cpu_time(ClockId::ThreadCPUTime)
}

/// CPU time of all threads of the process until now.
pub(super) fn process_cpu_time() -> Duration {
    cpu_time(ClockId::ProcessCPUTime)
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burning_uses_cpu_time() {
        let before = thread_cpu_time();
        burn(Duration::from_millis(3));
        assert!(thread_cpu_time() - before >= Duration::from_millis(3));
        assert!(process_cpu_time() >= thread_cpu_time());
    }

    #[test]
    fn quantiles_are_of_all_slots() {
        let slots: Vec<AtomicU64> = (1..=1_000).map(|us| AtomicU64::new(us * 1_000)).collect();
        let latencies = Latencies { waited: collect(&slots, "nobody"), late: histogram() };
        assert_eq!(latencies.count(), 1_000);
        assert!((latencies.micros_at(0.5) - 500.0).abs() < 1.0);
        assert!((latencies.micros_at(0.999) - 999.0).abs() < 1.0);
    }
}
