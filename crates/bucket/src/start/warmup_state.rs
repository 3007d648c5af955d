//! How far loading has come, and what is to be loaded next.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use document::{Seqno, Vbid};
use executor::TaskHandle;
use platform::Instant;
use storage::FoundVbucket;

/// How far loading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmupPhase {
    /// Loading metadata. vBuckets that are done serve already.
    Metadata,
    /// All vBuckets serve; values follow.
    Values,
    /// Everything that fits is in memory.
    Done,
}

impl WarmupPhase {
    /// The name in statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Metadata => "loading metadata",
            Self::Values => "loading values",
            Self::Done => "done",
        }
    }
}

/// Warmup at one moment.
#[derive(Clone, Copy, Debug)]
pub struct WarmupProgress {
    /// What is being loaded.
    pub phase: WarmupPhase,
    /// Whether the last stop was a clean one.
    pub was_clean: bool,
    /// vBuckets that have files.
    pub vbuckets_total: usize,
    /// vBuckets whose metadata is loaded.
    pub vbuckets_loaded: usize,
    /// vBuckets whose files cannot be read.
    pub vbuckets_failed: usize,
    /// Documents that the files hold.
    pub documents_total: u64,
    /// Documents whose metadata is loaded.
    pub documents_loaded: u64,
    /// Values that are loaded.
    pub values_loaded: u64,
    /// Time until every vBucket served; until now while that is not so.
    pub metadata_took: Duration,
    /// Time until everything was loaded; until now while that is not so.
    pub took: Duration,
}

/// What the warmup tasks share.
pub(crate) struct WarmupState {
    inner: Mutex<Inner>,
    /// The phase has changed.
    pub(super) changed: Condvar,
    started: Instant,
    pub(super) was_clean: bool,
    documents_total: AtomicU64,
    pub(super) documents_loaded: AtomicU64,
    pub(super) values_loaded: AtomicU64,
}

pub(super) struct Inner {
    pub(super) phase: WarmupPhase,
    metadata_queue: VecDeque<FoundVbucket>,
    metadata_left: usize,
    /// vBuckets whose values are to be loaded, and from which seqno on.
    values_queue: VecDeque<(Vbid, Seqno)>,
    values_left: usize,
    vbuckets_total: usize,
    vbuckets_failed: usize,
    pub(super) tasks: Vec<TaskHandle>,
    metadata_finished: Option<Instant>,
    finished: Option<Instant>,
}

impl WarmupState {
    pub(crate) fn new(started: Instant, was_clean: bool) -> Self {
        let inner = Inner {
            phase: WarmupPhase::Metadata,
            metadata_queue: VecDeque::new(),
            metadata_left: 0,
            values_queue: VecDeque::new(),
            values_left: 0,
            vbuckets_total: 0,
            vbuckets_failed: 0,
            tasks: Vec::new(),
            metadata_finished: None,
            finished: None,
        };
        Self {
            inner: Mutex::new(inner),
            changed: Condvar::new(),
            started,
            was_clean,
            documents_total: AtomicU64::new(0),
            documents_loaded: AtomicU64::new(0),
            values_loaded: AtomicU64::new(0),
        }
    }

    pub(crate) fn progress(&self, now: Instant) -> WarmupProgress {
        let inner = self.lock();
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let until = |end: Option<Instant>| end.unwrap_or(now).since(self.started);
        WarmupProgress {
            phase: inner.phase,
            was_clean: self.was_clean,
            vbuckets_total: inner.vbuckets_total,
            vbuckets_loaded: inner.vbuckets_total - inner.metadata_left - inner.vbuckets_failed,
            vbuckets_failed: inner.vbuckets_failed,
            documents_total: load(&self.documents_total),
            documents_loaded: load(&self.documents_loaded),
            values_loaded: load(&self.values_loaded),
            metadata_took: until(inner.metadata_finished),
            took: until(inner.finished),
        }
    }

    /// Whether there are vBuckets whose metadata is not loaded yet.
    pub(crate) fn is_loading_metadata(&self) -> bool {
        self.lock().phase == WarmupPhase::Metadata
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills the queues before the tasks start.
    pub(super) fn begin(&self, found: Vec<FoundVbucket>, now: Instant) {
        let mut inner = self.lock();
        let documents = found.iter().map(|found| found.item_count).sum();
        self.documents_total.store(documents, Ordering::Relaxed);
        inner.vbuckets_total = found.len();
        inner.metadata_left = found.len();
        inner.values_left = found.len();
        inner.metadata_queue = found.into();
        self.advance(&mut inner, now);
    }

    /// Moves on to the next phase when nothing is left of this one.
    fn advance(&self, inner: &mut Inner, now: Instant) {
        let before = inner.phase;
        if inner.phase == WarmupPhase::Metadata && inner.metadata_left == 0 {
            inner.phase = WarmupPhase::Values;
            inner.metadata_finished = Some(now);
        }
        if inner.phase == WarmupPhase::Values && inner.values_left == 0 {
            inner.phase = WarmupPhase::Done;
            inner.finished = Some(now);
        }
        if inner.phase != before {
            self.changed.notify_all();
            inner.tasks.iter().for_each(TaskHandle::wake);
        }
    }

    pub(super) fn finish_metadata(&self, vbid: Vbid, loaded: Loaded, now: Instant) {
        let mut inner = self.lock();
        assert!(inner.metadata_left > 0, "each vBucket is loaded once");
        inner.metadata_left -= 1;
        inner.vbuckets_failed += usize::from(loaded == Loaded::Failed);
        if loaded == Loaded::ValuesToo {
            inner.values_queue.push_back((vbid, Seqno(0)));
        } else {
            inner.values_left -= 1;
        }
        self.advance(&mut inner, now);
    }

    pub(super) fn finish_values(&self, vbid: Vbid, continue_at: Option<Seqno>, now: Instant) {
        let mut inner = self.lock();
        match continue_at {
            Some(seqno) => inner.values_queue.push_front((vbid, seqno)),
            None => {
                assert!(inner.values_left > 0, "the values of each vBucket are loaded once");
                inner.values_left -= 1;
            }
        }
        self.advance(&mut inner, now);
    }

    /// Loads no more values: memory is as full as it should get.
    pub(super) fn give_up_values(&self, now: Instant) {
        let mut inner = self.lock();
        // What other tasks are loading has left the queue, and is counted out by them.
        inner.values_left -= inner.values_queue.len();
        inner.values_queue.clear();
        self.advance(&mut inner, now);
    }
}

/// How loading the metadata of a vBucket went.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Loaded {
    /// There are no values to load.
    MetadataOnly,
    /// There are values to load, too.
    ValuesToo,
    /// The file cannot be read.
    Failed,
}

/// What a run is to do.
pub(super) enum Step {
    Metadata(Box<FoundVbucket>),
    Values(Vbid, Seqno),
    Wait,
    Finish,
}

impl WarmupState {
    pub(super) fn next_step(&self) -> Step {
        let mut inner = self.lock();
        match inner.phase {
            WarmupPhase::Metadata => {
                let found = inner.metadata_queue.pop_front();
                found.map_or(Step::Wait, |found| Step::Metadata(Box::new(found)))
            }
            WarmupPhase::Values => inner
                .values_queue
                .pop_front()
                .map_or(Step::Finish, |(vbid, from)| Step::Values(vbid, from)),
            WarmupPhase::Done => Step::Finish,
        }
    }
}
