//! Which vBuckets have something to flush, and how soon.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use document::Vbid;
use executor::TaskHandle;
use platform::Instant;

use crate::config::Persistence;

/// How long a vBucket waits at most for whose flush nobody waits, so that what comes next goes with
/// it: each vBucket in a group costs about as much as its items.
const DEFERRED_FLUSH_PAUSE: Duration = Duration::from_millis(50);

/// vBuckets with something to flush, one queue for each flusher. A vBucket is queued once until
/// its flusher has come: it keeps a flag itself.
pub(crate) struct FlushQueues {
    pub(super) queues: Vec<FlushQueue>,
    /// Bytes of the journal that were in use when it was full for the flusher, which waits until
    /// there are fewer; 0 when it does not wait.
    pub(super) full_journal_bytes: AtomicU64,
    /// Whether anything is deferred: not where each flush is the commit of a file.
    defers: bool,
}

#[derive(Default)]
pub(super) struct FlushQueue {
    waiting: Mutex<WaitingVbuckets>,
    pub(super) flusher: OnceLock<TaskHandle>,
}

#[derive(Default)]
struct WaitingVbuckets {
    urgent: VecDeque<Vbid>,
    /// And when their time comes, the earliest first. One that has become urgent since is in both.
    deferred: VecDeque<(Instant, Vbid)>,
}

impl FlushQueues {
    pub(crate) fn new(persistence: Persistence) -> Self {
        let count = persistence.flusher_count();
        let queues = std::iter::repeat_with(FlushQueue::default).take(count).collect();
        let defers = persistence.journal().is_some();
        Self { queues, full_journal_bytes: AtomicU64::new(0), defers }
    }

    /// So many bytes of the journal are in use: if they were more when it was full, whoever waits
    /// for room goes on.
    pub(crate) fn wake_if_journal_has_room(&self, used_bytes: u64) {
        let full_bytes = self.full_journal_bytes.load(Ordering::Relaxed);
        if used_bytes < full_bytes
            && self.full_journal_bytes.swap(0, Ordering::Relaxed) == full_bytes
        {
            self.queues.iter().filter_map(|queue| queue.flusher.get()).for_each(TaskHandle::wake);
        }
    }

    /// Queues a vBucket for its flusher.
    pub(crate) fn push(&self, vbid: Vbid) {
        let queue = self.queue_of(vbid);
        queue.lock().urgent.push_back(vbid);
        queue.wake();
    }

    /// Queues a vBucket for whose flush nobody waits.
    pub(crate) fn defer(&self, vbid: Vbid, now: Instant) {
        if !self.defers {
            return self.push(vbid);
        }
        let queue = self.queue_of(vbid);
        let mut waiting = queue.lock();
        let is_first = waiting.deferred.is_empty();
        waiting.deferred.push_back((now.after(DEFERRED_FLUSH_PAUSE), vbid));
        drop(waiting);
        // To look when the first one's time comes.
        if is_first {
            queue.wake();
        }
    }

    /// Queues a vBucket that could not be flushed, without waking its flusher: it is the one that
    /// asks, and it pauses before it tries again.
    pub(super) fn push_again(&self, vbid: Vbid) {
        self.queue_of(vbid).lock().urgent.push_back(vbid);
    }

    fn queue_of(&self, vbid: Vbid) -> &FlushQueue {
        &self.queues[usize::from(vbid.0) % self.queues.len()]
    }

    /// How many vBuckets wait for their flushers.
    pub(crate) fn waiting_count(&self) -> usize {
        let count = |waiting: &WaitingVbuckets| waiting.urgent.len() + waiting.deferred.len();
        self.queues.iter().map(|queue| count(&queue.lock())).sum()
    }
}

impl FlushQueue {
    fn lock(&self) -> MutexGuard<'_, WaitingVbuckets> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        if let Some(flusher) = self.flusher.get() {
            flusher.wake();
        }
    }

    /// When the time of the first deferred vBucket comes.
    pub(super) fn next_deferred(&self) -> Option<Instant> {
        self.lock().deferred.front().map(|(due, _)| *due)
    }

    /// The vBuckets to flush at `now`; all that wait, if that is `None`.
    pub(super) fn pop_group(&self, count_max: usize, now: Option<Instant>) -> Vec<Vbid> {
        let mut waiting = self.lock();
        let WaitingVbuckets { urgent, deferred } = &mut *waiting;
        let count = urgent.len().min(count_max);
        let mut group: Vec<Vbid> = urgent.drain(..count).collect();
        while group.len() < count_max
            && let Some((due, vbid)) = deferred.front()
            && now.is_none_or(|now| *due <= now)
        {
            group.push(*vbid);
            deferred.pop_front();
        }
        // File locks are taken in the order of vBuckets, each once: a vBucket that was emptied
        // while it was queued can be queued again.
        group.sort_unstable();
        group.dedup();
        group
    }
}
