//! vBuckets that wait for the one task that serves them, each at most once.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use document::Vbid;

use crate::task::cell::TaskHandle;

const WORD_BITS: usize = 64;

/// vBuckets in the order in which they became ready. Any number of threads push; one task at a
/// time pops, usually a [`crate::VbucketReadyTask`]. All memory is taken by [`new`].
///
/// [`new`]: VbucketReadyQueue::new
pub struct VbucketReadyQueue {
    vbucket_count: u16,
    /// A bit for each vBucket that is queued. Set before the vBucket enters the ring, cleared after
    /// it has left, so that the ring never holds one twice and never overflows.
    queued: Box<[AtomicU64]>,
    state: Mutex<State>,
}

struct State {
    ring: Box<[Vbid]>,
    first: usize,
    count: usize,
    /// A push has told its caller to wake the task, and no run has begun to serve since.
    is_wake_pending: bool,
}

impl VbucketReadyQueue {
    /// An empty queue for the vBuckets below `vbucket_count`.
    pub fn new(vbucket_count: u16) -> Self {
        let word_count = usize::from(vbucket_count).div_ceil(WORD_BITS);
        let ring = vec![Vbid(0); usize::from(vbucket_count)].into_boxed_slice();
        Self {
            vbucket_count,
            queued: std::iter::repeat_with(AtomicU64::default).take(word_count).collect(),
            state: Mutex::new(State { ring, first: 0, count: 0, is_wake_pending: false }),
        }
    }

    /// Queues `vbid` unless it is queued. True when the caller must wake the task; nobody else
    /// will. What the caller wrote before is seen by the service that follows. A vBucket that is
    /// pushed while it is being served is served once more.
    #[must_use = "the task sleeps on unless it is woken"]
    pub fn push(&self, vbid: Vbid) -> bool {
        let (word, bit) = self.word_and_bit(vbid);
        if word.fetch_or(bit, Ordering::AcqRel) & bit != 0 {
            return false;
        }
        let mut state = self.lock();
        state.push(vbid);
        !std::mem::replace(&mut state.is_wake_pending, true)
    }

    /// [`VbucketReadyQueue::push`], and wakes `task` if that is necessary.
    pub fn push_and_wake(&self, vbid: Vbid, task: &TaskHandle) {
        if self.push(vbid) {
            task.wake();
        }
    }

    /// A run of the task begins: a push from here on wakes it again. To be called before the first
    /// [`VbucketReadyQueue::pop`] of each run.
    pub fn begin_serving(&self) {
        self.lock().is_wake_pending = false;
    }

    /// The vBucket to serve next, which can be queued again from here on.
    pub fn pop(&self) -> Option<Vbid> {
        let vbid = self.lock().pop()?;
        let (word, bit) = self.word_and_bit(vbid);
        let before = word.fetch_and(!bit, Ordering::AcqRel);
        assert!(before & bit != 0, "a vBucket in the ring is marked as queued");
        Some(vbid)
    }

    /// How many vBuckets wait.
    pub fn len(&self) -> usize {
        self.lock().count
    }

    /// Whether no vBucket waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `vbid` waits.
    pub fn contains(&self, vbid: Vbid) -> bool {
        let (word, bit) = self.word_and_bit(vbid);
        word.load(Ordering::Acquire) & bit != 0
    }

    fn word_and_bit(&self, vbid: Vbid) -> (&AtomicU64, u64) {
        assert!(
            vbid.0 < self.vbucket_count,
            "the queue was made for as many vBuckets as there are"
        );
        let index = usize::from(vbid.0);
        (&self.queued[index / WORD_BITS], 1 << (index % WORD_BITS))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, vbid: Vbid) {
        assert!(self.count < self.ring.len(), "each vBucket is queued at most once");
        let end = (self.first + self.count) % self.ring.len();
        self.ring[end] = vbid;
        self.count += 1;
    }

    fn pop(&mut self) -> Option<Vbid> {
        if self.count == 0 {
            return None;
        }
        let vbid = self.ring[self.first];
        self.first = (self.first + 1) % self.ring.len();
        self.count -= 1;
        Some(vbid)
    }
}

impl fmt::Debug for VbucketReadyQueue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("VbucketReadyQueue")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}
