//! How far a compaction is, for those who watch it, and how they stop it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use document::Item;

/// What a compaction is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionPhase {
    /// It waits, or has not looked at the file yet.
    Waiting,
    /// Copies the state that it found.
    Copying,
    /// Copies what was committed meanwhile; entered anew for each round.
    CatchingUp,
    /// The same, for the last time and with commits kept out; then the new file comes into force.
    Switching,
    /// It has ended.
    Ended,
}

impl CompactionPhase {
    const ALL: [Self; 5] =
        [Self::Waiting, Self::Copying, Self::CatchingUp, Self::Switching, Self::Ended];

    /// One word for operators.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Copying => "copying",
            Self::CatchingUp => "catching_up",
            Self::Switching => "switching",
            Self::Ended => "ended",
        }
    }
}

/// One compaction, seen from outside. A handle: clones are about the same compaction.
#[derive(Clone, Debug, Default)]
pub struct CompactionProgress(Arc<State>);

#[derive(Debug, Default)]
struct State {
    is_aborted: AtomicBool,
    /// An index into [`CompactionPhase::ALL`].
    phase: AtomicU8,
    bytes_done: AtomicU64,
    bytes_total: AtomicU64,
    waiting: Mutex<()>,
    aborted: Condvar,
}

impl CompactionProgress {
    /// Of a compaction that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has the compaction stop soon. Nothing happens to one that has put its file into force.
    pub fn abort(&self) {
        self.0.is_aborted.store(true, Ordering::Release);
        // Under the lock: a pause that has looked already and does not wait yet would miss the
        // call.
        let _waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.aborted.notify_all();
    }

    /// Whether it was told to stop.
    pub fn is_aborted(&self) -> bool {
        self.0.is_aborted.load(Ordering::Acquire)
    }

    /// What it is doing.
    pub fn phase(&self) -> CompactionPhase {
        let index = usize::from(self.0.phase.load(Ordering::Relaxed));
        CompactionPhase::ALL[index.min(CompactionPhase::ALL.len() - 1)]
    }

    /// Bytes of the new file so far.
    pub fn bytes_done(&self) -> u64 {
        self.0.bytes_done.load(Ordering::Relaxed)
    }

    /// Bytes that the new file will have, about: what is purged makes it smaller, what is committed
    /// meanwhile larger.
    pub fn bytes_total(&self) -> u64 {
        self.0.bytes_total.load(Ordering::Relaxed)
    }

    pub(super) fn set_phase(&self, phase: CompactionPhase) {
        self.0.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub(super) fn expect_bytes(&self, bytes: u64) {
        self.0.bytes_total.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn note_written(&self, bytes: u64) {
        let done = self.0.bytes_done.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.0.bytes_total.fetch_max(done, Ordering::Relaxed);
    }

    /// Lets `duration` pass, less if the compaction is aborted.
    pub(super) fn pause(&self, duration: Duration) {
        let waiting = self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_on = |(): &mut ()| !self.is_aborted();
        drop(self.0.aborted.wait_timeout_while(waiting, duration, is_on));
    }
}

/// Hears of a compaction while it runs, on its thread.
pub trait CompactionObserver: Sync {
    /// The compaction is about to enter a phase. No lock is held.
    fn entered(&self, _phase: CompactionPhase) {}

    /// Another document of the state that is copied is looked at: as often as there are documents,
    /// so it may cost next to nothing. No lock is held.
    fn goes_on(&self) {}

    /// These documents were past their time in the state that is copied; there may be newer
    /// versions of them. They stay in the file: whoever wants them gone deletes them. They are
    /// without their values. No lock is held.
    fn expired(&self, _documents: Vec<Item>) {}
}

/// Nobody listens.
impl CompactionObserver for () {}
