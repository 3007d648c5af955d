//! A thread of the pool as its queue sees it: it sleeps, is called, and shall end.

use std::sync::OnceLock;
use std::time::Duration;

#[cfg(not(feature = "model"))]
use platform::Clock;

use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread;
use crate::task::kind::{TaskClass, TaskKind};
use crate::threads::upkeep::Upkeep;

/// A thread that runs tasks of one kind.
#[derive(Debug)]
pub(crate) struct Worker {
    kind: TaskKind,
    class: TaskClass,
    thread: OnceLock<thread::Thread>,
    /// Somebody has woken the thread.
    is_called: AtomicBool,
    /// The thread shall end after the present task.
    is_retiring: AtomicBool,
    /// Its task is believed to be short; used under the lock of its queue.
    runs_short: AtomicBool,
    /// If it is to look after its memory.
    upkeep: Option<Upkeep>,
}

impl Worker {
    /// `class` quick: it runs quick tasks only.
    pub(crate) fn new(kind: TaskKind, class: TaskClass, gives_memory_back: bool) -> Self {
        Self {
            kind,
            class,
            thread: OnceLock::new(),
            is_called: AtomicBool::new(false),
            is_retiring: AtomicBool::new(false),
            runs_short: AtomicBool::new(false),
            upkeep: gives_memory_back.then(Upkeep::new),
        }
    }

    pub(crate) fn class(&self) -> TaskClass {
        self.class
    }

    pub(crate) fn is_retiring(&self) -> bool {
        self.is_retiring.load(Ordering::Acquire)
    }

    /// Ends the thread after the present task; the queue must still be told.
    pub(crate) fn retire(&self) {
        self.is_retiring.store(true, Ordering::Release);
    }

    /// Notes what its queue believes of its task. The caller holds the lock of the queue.
    pub(crate) fn set_runs_short(&self, runs_short: bool) {
        self.runs_short.store(runs_short, Ordering::Relaxed);
    }

    /// Forgets that, and answers it. The caller holds the lock of the queue.
    pub(crate) fn take_runs_short(&self) -> bool {
        let runs_short = self.runs_short.load(Ordering::Relaxed);
        self.runs_short.store(false, Ordering::Relaxed);
        runs_short
    }

    /// Wakes the thread, which has said under its queue's lock that it sleeps.
    pub(crate) fn call(&self) {
        self.is_called.store(true, Ordering::Release);
        self.thread.get().expect("who sleeps has a thread").unpark();
    }

    /// Waits for a call, and looks after memory meanwhile. Only the worker's own thread does.
    pub(crate) fn sleep(&self) {
        while let Some(upkeep) = &self.upkeep
            && let Some(pause) = upkeep.pause()
        {
            if self.sleep_for(pause) {
                return;
            }
            upkeep.look();
        }
        self.sleep_on();
    }

    fn sleep_on(&self) {
        while !self.is_called.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }

    /// Waits for a call, at most for `duration`; whether it has come.
    #[cfg(not(feature = "model"))]
    fn sleep_for(&self, duration: Duration) -> bool {
        let clock = Clock::real();
        let end = clock.now().after(duration);
        while !self.is_called.swap(false, Ordering::Acquire) {
            let left = end.since(clock.now());
            if left.is_zero() {
                return false;
            }
            thread::park_timeout(left);
        }
        true
    }

    /// A model has no time.
    #[cfg(feature = "model")]
    fn sleep_for(&self, _: Duration) -> bool {
        self.sleep_on();
        true
    }

    pub(crate) fn kind(&self) -> TaskKind {
        self.kind
    }

    /// The calling thread is the worker's.
    pub(crate) fn begin(&self) {
        self.thread.set(thread::current()).expect("a worker has one thread");
    }

    /// The worker has run a task.
    pub(crate) fn note_run(&self) {
        if let Some(upkeep) = &self.upkeep {
            upkeep.note_run();
        }
    }
}
