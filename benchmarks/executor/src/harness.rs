//! Fixed time: all threads start together and run until they are told to stop.
//!
//! Wall time is from one common start to the end of the last thread, divided by the operations of
//! all threads. The mean of the threads' own clocks, and fixed numbers of operations, flatter
//! whoever lets its threads run one after the other.

use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

/// What a measurement gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Of all threads.
    pub operations: u64,
    /// From the common start to the end of the last thread.
    pub wall: Duration,
    /// User and system time of the whole process.
    pub cpu: Duration,
    /// Of all threads of the process, those of the pool included.
    pub voluntary_switches: u64,
}

/// Tells the threads of a measurement when to stop.
#[derive(Debug, Default)]
pub struct Stop(AtomicBool);

impl Stop {
    /// Whether time is up.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The part of a benchmark that one thread does.
pub trait Load {
    /// Repeats the operation until `stop` is set, at least once. Returns how often.
    fn run(&mut self, stop: &Stop) -> u64;

    /// Checks, after the measurement, that what was measured did what it should.
    fn check(&mut self) {}
}

/// Runs a load on each of `threads` threads for `duration`. `prepare` is called on the thread that
/// runs the load, and not measured.
pub fn measure<L: Load>(
    threads: usize,
    duration: Duration,
    prepare: impl Fn(usize) -> L + Sync,
) -> Measured {
    let stop = Stop::default();
    let (start_gate, end_gate) = (RwLock::new(()), RwLock::new(()));
    std::thread::scope(|scope| {
        let closed = (start_gate.write(), end_gate.write());
        let (ready, all_ready) = mpsc::channel();
        let (done, all_done) = mpsc::channel();
        for index in 0..threads {
            let (ready, done) = (ready.clone(), done.clone());
            let (stop, start_gate, end_gate) = (&stop, &start_gate, &end_gate);
            let prepare = &prepare;
            scope.spawn(move || {
                let mut load = prepare(index);
                ready.send(()).expect("the measurement waits for its threads");
                drop(start_gate.read());
                let operations = load.run(stop);
                done.send((operations, Instant::now())).expect("and for their ends");
                drop(end_gate.read());
                load.check();
            });
        }
        // A thread that panics drops its ends of the channels: nobody waits for it for ever.
        drop((ready, done));
        assert_eq!(all_ready.iter().take(threads).count(), threads, "all threads are prepared");
        let usage = Usage::now();
        let started = Instant::now();
        drop(closed.0);
        std::thread::sleep(duration);
        stop.0.store(true, Ordering::Relaxed);
        let ends: Vec<(u64, Instant)> = all_done.iter().take(threads).collect();
        let used = Usage::now().since(usage);
        drop(closed.1);
        let last = ends.iter().map(|&(_, ended)| ended).max().unwrap_or(started);
        Measured {
            operations: ends.iter().map(|&(operations, _)| operations).sum(),
            wall: last - started,
            cpu: used.cpu,
            voluntary_switches: used.voluntary_switches,
        }
    })
}

impl Measured {
    /// Wall time of an operation in nanoseconds.
    pub fn nanos_per_operation(&self) -> f64 {
        self.wall.as_secs_f64() * 1e9 / self.operations.max(1) as f64
    }

    /// CPU time of an operation in nanoseconds.
    pub fn cpu_nanos_per_operation(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e9 / self.operations.max(1) as f64
    }

    /// Voluntary context switches of an operation.
    pub fn switches_per_operation(&self) -> f64 {
        self.voluntary_switches as f64 / self.operations.max(1) as f64
    }
}

/// What the process, threads that have ended included, has used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// User and system time.
    pub cpu: Duration,
    /// How often a thread has gone to sleep by itself.
    pub voluntary_switches: u64,
}

impl Usage {
    /// Until now.
    pub fn now() -> Self {
        Self::of(UsageWho::RUSAGE_SELF)
    }

    /// Of the calling thread until now.
    pub fn of_this_thread() -> Self {
        Self::of(UsageWho::RUSAGE_THREAD)
    }

    /// Of child processes that have ended.
    pub fn of_children() -> Self {
        Self::of(UsageWho::RUSAGE_CHILDREN)
    }

    fn of(who: UsageWho) -> Self {
        let usage = getrusage(who).expect("a process may ask for its own usage");
        let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
        Self {
            cpu: Duration::from_micros(u64::try_from(micros).unwrap_or(0)),
            voluntary_switches: u64::try_from(usage.voluntary_context_switches()).unwrap_or(0),
        }
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts, and sleeps where told.
    struct Counting {
        sleep: Duration,
        checked: mpsc::Sender<u64>,
    }

    impl Load for Counting {
        fn run(&mut self, stop: &Stop) -> u64 {
            let mut operations = 0;
            loop {
                std::thread::sleep(self.sleep);
                operations += 1;
                if stop.is_set() {
                    return operations;
                }
            }
        }

        fn check(&mut self) {
            self.checked.send(1).expect("the test listens");
        }
    }

    #[test]
    fn all_threads_run_for_the_whole_time_and_are_checked() {
        let (sender, receiver) = mpsc::channel();
        let duration = Duration::from_millis(50);
        let measured = measure(4, duration, |_| Counting {
            sleep: Duration::from_millis(1),
            checked: sender.clone(),
        });
        drop(sender);
        assert_eq!(receiver.iter().sum::<u64>(), 4);
        assert!(measured.wall >= duration, "{measured:?}");
        assert!(measured.operations >= 4, "{measured:?}");
        assert!(measured.operations <= 4 * 60_000, "{measured:?}");
        assert!(measured.voluntary_switches >= measured.operations, "{measured:?}");
    }

    #[test]
    fn an_operation_that_outlasts_the_time_is_inside_of_it() {
        let (sender, _receiver) = mpsc::channel();
        let sleep = Duration::from_millis(40);
        let measured =
            measure(1, Duration::from_millis(1), |_| Counting { sleep, checked: sender.clone() });
        assert_eq!(measured.operations, 1);
        assert!(measured.wall >= sleep, "{measured:?}");
    }

    #[test]
    fn figures_are_of_one_operation() {
        let measured = Measured {
            operations: 1_000,
            wall: Duration::from_micros(500),
            cpu: Duration::from_micros(900),
            voluntary_switches: 250,
        };
        assert_eq!(measured.nanos_per_operation(), 500.0);
        assert_eq!(measured.cpu_nanos_per_operation(), 900.0);
        assert_eq!(measured.switches_per_operation(), 0.25);
    }
}
