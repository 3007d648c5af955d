//! What a pool costs when it has nothing to do: CPU after a burst, and wakeups in an idle second.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::tail::{process_cpu_time, thread_cpu_time};
use crate::harness::Usage;
use crate::pool_under_test::{PoolThreads, PoolUnderTest};

/// Threads of the pool.
pub const THREADS: PoolThreads = PoolThreads { non_io: 4, others: 1 };
/// Tasks of a burst, each of no length.
const BURST: usize = 1_000;
/// The last task of a burst blocks for so long, so that all other workers have parked before.
const LAST_BLOCKS: Duration = Duration::from_millis(20);
/// After which every worker has parked, or never will.
const AFTER: Duration = Duration::from_millis(50);

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct IdleTimes {
    /// Bursts in a measurement.
    pub bursts: usize,
    /// The time in which nothing is scheduled.
    pub idle: Duration,
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct Idle {
    /// Of each burst: CPU in microseconds that the worker of the last task used after it, until it
    /// parked.
    pub worker_micros: Vec<f64>,
    /// Of each burst: the same of all threads of the pool together.
    pub pool_micros: Vec<f64>,
    /// Voluntary context switches of all threads of the pool while idle.
    pub switches: u64,
    /// What the pool itself counted meanwhile, if it counts.
    pub wakeups: Option<u64>,
}

/// What the last task of a burst leaves behind at its end.
#[derive(Clone, Copy, Debug)]
struct LastRun {
    thread: i32,
    thread_cpu: Duration,
    process_cpu: Duration,
}

/// Measures one pool.
pub fn measure<P: PoolUnderTest>(times: IdleTimes) -> Idle {
    let pool = P::start(THREADS);
    let (worker_micros, pool_micros) = (0..times.bursts).map(|_| burst(&pool)).unzip();
    let wakeups = pool.wakeups();
    let others = || Usage::now().voluntary_switches - Usage::of_this_thread().voluntary_switches;
    let before = others();
    std::thread::sleep(times.idle);
    let switches = others().saturating_sub(before);
    let wakeups = pool.wakeups().zip(wakeups).map(|(now, then)| now - then);
    pool.shutdown();
    Idle { worker_micros, pool_micros, switches, wakeups }
}

/// CPU after one burst: of the last worker, and of the whole pool.
fn burst<P: PoolUnderTest>(pool: &P) -> (f64, f64) {
    let last = Arc::new(OnceLock::new());
    for _ in 1..BURST {
        pool.schedule(|| {});
    }
    let slot = last.clone();
    pool.schedule(move || {
        std::thread::sleep(LAST_BLOCKS);
        let run = LastRun {
            thread: rustix::thread::gettid().as_raw_nonzero().get(),
            thread_cpu: thread_cpu_time(),
            process_cpu: process_cpu_time(),
        };
        assert!(slot.set(run).is_ok(), "a task runs once");
    });
    // Sleeps rather than waits: to wake somebody would be part of what the worker uses.
    let (run, own_cpu) = loop {
        let own_cpu = thread_cpu_time();
        std::thread::sleep(LAST_BLOCKS);
        if let Some(&run) = last.get() {
            break (run, own_cpu);
        }
    };
    std::thread::sleep(AFTER);
    let own = thread_cpu_time() - own_cpu;
    let pool = process_cpu_time().saturating_sub(run.process_cpu).saturating_sub(own);
    let worker = cpu_time_of(run.thread).saturating_sub(run.thread_cpu);
    (worker.as_secs_f64() * 1e6, pool.as_secs_f64() * 1e6)
}

/// CPU time of a thread of this process; exact when it does not run at the moment.
fn cpu_time_of(thread: i32) -> Duration {
    let path = format!("/proc/self/task/{thread}/schedstat");
    let text = std::fs::read_to_string(path).expect("threads of the pool live as long as it");
    let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.expect("the first field is the time on a CPU"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pools::settee::Settee;

    #[test]
    fn cpu_time_of_the_own_thread_is_what_its_clock_says() {
        let before = thread_cpu_time();
        // The kernel counts when a thread leaves its CPU.
        std::thread::sleep(Duration::from_millis(1));
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        assert!(cpu_time_of(thread) >= before);
    }

    #[test]
    fn every_burst_is_measured() {
        let idle = measure::<Settee>(IdleTimes { bursts: 2, idle: Duration::from_millis(10) });
        assert_eq!(idle.worker_micros.len(), 2);
        assert_eq!(idle.pool_micros.len(), 2);
        assert!(idle.wakeups.is_some());
    }
}
