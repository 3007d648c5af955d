//! Names, pools and patience for the tests.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use executor::{DeterministicPool, ExecutorPool, PoolOptions};
use executor::{TaskKind, TaskName, ThreadCounts};
use platform::{Clock, WallTime};

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

const EXPECTED: Duration = Duration::from_millis(20);

pub(crate) static COMPUTE: TaskName = TaskName::new("Compute", TaskKind::NonIo).expected(EXPECTED);
pub(crate) static NOTIFY: TaskName = TaskName::new("Notify", TaskKind::NonIo).quick();
pub(crate) static FLUSH: TaskName = TaskName::new("Flush", TaskKind::Writer);

/// A pool with `normal` threads of each kind and one for quick non-I/O tasks.
pub(crate) fn pool(normal: usize) -> ExecutorPool {
    let counts = ThreadCounts { normal, quick: 0 };
    let mut options = options(ThreadCounts { normal, quick: 1 });
    for kind in [TaskKind::Reader, TaskKind::Writer, TaskKind::AuxIo] {
        options.set_threads(kind, counts);
    }
    start(options)
}

/// One thread of each kind, and of non-I/O tasks so many.
pub(crate) fn options(non_io: ThreadCounts) -> PoolOptions {
    let one = ThreadCounts { normal: 1, quick: 0 };
    PoolOptions {
        reader: one,
        writer: one,
        aux_io: one,
        non_io,
        cpus: None,
        gives_memory_back: false,
    }
}

/// Starts a pool on the real clock.
pub(crate) fn start(options: PoolOptions) -> ExecutorPool {
    ExecutorPool::start(Clock::real(), options).expect("the machine has room for some threads")
}

/// More runs than any test without threads needs at one point of time.
pub(crate) const RUNS_MAX: usize = 10_000;

/// A pool without threads, and its clock.
pub(crate) fn simulated_pool() -> (DeterministicPool, Clock) {
    let clock = Clock::simulated(WallTime(0));
    (DeterministicPool::new(clock.clone(), 1), clock)
}

/// A door that a task waits at and the test opens.
pub(crate) fn gate() -> (Sender<()>, Gate) {
    let (open, wait) = channel();
    (open, Gate(wait))
}

/// The task's side of [`gate`].
pub(crate) struct Gate(Receiver<()>);

impl Gate {
    /// Waits for the next opening.
    pub(crate) fn pass(&self) {
        self.0.recv_timeout(PATIENCE).expect("the test opens the gate");
    }
}

/// Locks what a task of the test shares with it; also after a failed assertion, when tasks are
/// destroyed while the test unwinds.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Receives, with patience.
pub(crate) fn next<T>(receiver: &Receiver<T>) -> T {
    receiver.recv_timeout(PATIENCE).expect("it happens in time")
}

/// Lets `duration` of real time pass.
pub(crate) fn pause(duration: Duration) {
    let (_silent, receiver) = channel::<()>();
    assert!(receiver.recv_timeout(duration).is_err());
}

/// Counts a drop into a channel: the task that owns it has been destroyed.
pub(crate) struct Tombstone(pub(crate) Sender<String>);

impl Drop for Tombstone {
    fn drop(&mut self) {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        // The test may have ended without asking.
        self.0.send(thread).ok();
    }
}

/// Names the seed of a random test that fails.
pub(crate) struct TellOnPanic(pub(crate) u64);

impl Drop for TellOnPanic {
    #[expect(clippy::print_stderr, reason = "who repeats the failure needs the seed")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the test failed with SEED={}", self.0);
        }
    }
}
