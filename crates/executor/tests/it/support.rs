//! Names, pools and patience for the tests.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use executor::{ExecutorPool, PoolOptions, TaskClass, TaskKind, TaskName, ThreadCounts};
use platform::Clock;

/// Longer than anything here takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) static COMPUTE: TaskName = named("Compute", TaskKind::NonIo, TaskClass::Normal);
pub(crate) static NOTIFY: TaskName = named("Notify", TaskKind::NonIo, TaskClass::Quick);
pub(crate) static FLUSH: TaskName = named("Flush", TaskKind::Writer, TaskClass::Normal);

const fn named(name: &'static str, kind: TaskKind, class: TaskClass) -> TaskName {
    TaskName { name, kind, class, priority: 0, expected_duration: Duration::from_millis(20) }
}

/// A pool with `normal` threads of each kind and one for quick non-I/O tasks.
pub(crate) fn pool(normal: usize) -> ExecutorPool {
    let counts = ThreadCounts { normal, quick: 0 };
    let options = PoolOptions {
        reader: counts,
        writer: counts,
        aux_io: counts,
        non_io: ThreadCounts { normal, quick: 1 },
    };
    ExecutorPool::start(Clock::real(), options).expect("the machine has room for some threads")
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
