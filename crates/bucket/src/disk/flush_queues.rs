//! Which vBuckets have something to flush, and how soon.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use document::Vbid;
use executor::TaskHandle;
use platform::Instant;
use vbucket::FlushUrgency;

use crate::config::Persistence;

/// vBuckets for whose flush nobody waits that go in one group, at most: who does wait meanwhile
/// waits for an eighth of 1024, and not for all.
const DEFERRED_PORTION_MAX: usize = 128;

/// vBuckets with something to flush, one queue for each flusher. A vBucket is queued once until
/// its flusher has come: it keeps a flag itself.
pub(crate) struct FlushQueues {
    pub(super) queues: Vec<FlushQueue>,
    /// Bytes of the journal that were in use when it was full for the flusher, which waits until
    /// there are fewer; 0 when it does not wait.
    full_journal_bytes: AtomicU64,
    /// Whether anything is deferred: not where each flush is the commit of a file.
    defers: bool,
}

pub(super) struct FlushQueue {
    waiting: Mutex<WaitingVbuckets>,
    pub(super) flusher: OnceLock<TaskHandle>,
}

struct WaitingVbuckets {
    /// Somebody waits for their flush.
    awaited: VecDeque<Vbid>,
    /// One that is awaited since is in both, and so on.
    urgent: VecDeque<Vbid>,
    deferred: VecDeque<Vbid>,
    /// Of those in front, so many have their turn.
    round_left: usize,
    /// So many were popped last: they are being flushed until their flusher asks for more.
    popped_count: usize,
    /// Otherwise the next round begins then.
    next_round: Instant,
    /// Time from one round to the next. What comes meanwhile goes with it: a group costs a sync,
    /// and each vBucket in it about as much as its items.
    round_interval: Duration,
}

impl FlushQueues {
    pub(crate) fn new(persistence: Persistence, round_interval: Duration) -> Self {
        let count = persistence.flusher_count();
        let queues = (0..count).map(|_| FlushQueue::new(round_interval)).collect();
        let defers = persistence.journal().is_some();
        Self { queues, full_journal_bytes: AtomicU64::new(0), defers }
    }

    /// So many bytes of the journal are in use: if they were more when it was full, whoever waits
    /// for room goes on.
    pub(crate) fn wake_if_journal_has_room(&self, used_bytes: u64) {
        let full = &self.full_journal_bytes;
        let full_bytes = full.load(Ordering::Relaxed);
        // A mark that has come meanwhile stays. Relaxed is enough: who misses a wake looks again
        // after a pause.
        let is_cleared =
            || full.compare_exchange(full_bytes, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if used_bytes < full_bytes && is_cleared() {
            self.queues.iter().filter_map(|queue| queue.flusher.get()).for_each(TaskHandle::wake);
        }
    }

    /// The journal had no room when `used_bytes` of it were in use.
    pub(super) fn note_full_journal(&self, used_bytes: u64) {
        self.full_journal_bytes.store(used_bytes, Ordering::Relaxed);
    }

    /// Whether the flusher waits for room in the journal.
    pub(super) fn is_journal_full(&self) -> bool {
        self.full_journal_bytes.load(Ordering::Relaxed) != 0
    }

    /// Queues a vBucket for its flusher. One whose flush is deferred has its turn at once when
    /// there was nothing of the kind for as long as a round takes, otherwise with the next round.
    pub(crate) fn push(&self, vbid: Vbid, urgency: FlushUrgency) {
        let queue = self.queue_of(vbid);
        // Of the deferred ones the first has its flusher look when its time comes.
        if queue.lock().push(vbid, urgency, self.defers) {
            queue.wake();
        }
    }

    /// The deferred vBuckets have their turn now: their log takes memory that is short. Says
    /// whether there is anything that waits or is being flushed.
    pub(crate) fn hurry(&self) -> bool {
        let mut is_busy = false;
        for queue in &self.queues {
            let mut waiting = queue.lock();
            waiting.next_round = Instant::default();
            is_busy |= waiting.is_busy();
            let has_deferred = !waiting.deferred.is_empty();
            drop(waiting);
            if has_deferred {
                queue.wake();
            }
        }
        is_busy
    }

    /// Queues a vBucket that could not be flushed, without waking its flusher: it is the one that
    /// asks, and it pauses before it tries again.
    pub(super) fn push_again(&self, vbid: Vbid, urgency: FlushUrgency) {
        self.queue_of(vbid).lock().push(vbid, urgency, false);
    }

    /// Queues again what was popped and not begun, in front, in its order. Its flusher does it.
    pub(super) fn put_back(&self, popped: impl DoubleEndedIterator<Item = (Vbid, bool)>) {
        for (vbid, is_awaited) in popped.rev() {
            let mut waiting = self.queue_of(vbid).lock();
            let waiting = &mut *waiting;
            let queue = if is_awaited { &mut waiting.awaited } else { &mut waiting.urgent };
            queue.push_front(vbid);
        }
    }

    fn queue_of(&self, vbid: Vbid) -> &FlushQueue {
        &self.queues[usize::from(vbid.0) % self.queues.len()]
    }

    /// How many vBuckets wait for their flushers.
    pub(crate) fn waiting_count(&self) -> usize {
        self.queues.iter().map(|queue| queue.lock().count()).sum()
    }
}

impl FlushQueue {
    fn new(round_interval: Duration) -> Self {
        let waiting = WaitingVbuckets {
            awaited: VecDeque::new(),
            urgent: VecDeque::new(),
            deferred: VecDeque::new(),
            round_left: 0,
            popped_count: 0,
            next_round: Instant::default(),
            round_interval,
        };
        Self { waiting: Mutex::new(waiting), flusher: OnceLock::new() }
    }

    fn lock(&self) -> MutexGuard<'_, WaitingVbuckets> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        if let Some(flusher) = self.flusher.get() {
            flusher.wake();
        }
    }

    /// When the deferred vBuckets have their turn, if there are any.
    pub(super) fn next_deferred(&self) -> Option<Instant> {
        let waiting = self.lock();
        (!waiting.deferred.is_empty()).then_some(waiting.next_round)
    }

    /// The vBuckets to flush at `now`: those that are awaited and the urgent ones, at most
    /// `count_max`, and in their turn deferred ones. With `None` time does not matter.
    pub(super) fn pop_group(&self, count_max: usize, now: Option<Instant>) -> Vec<Vbid> {
        let mut waiting = self.lock();
        let count = waiting.awaited.len().min(count_max);
        let mut group: Vec<Vbid> = waiting.awaited.drain(..count).collect();
        let count = waiting.urgent.len().min(count_max - count);
        group.extend(waiting.urgent.drain(..count));
        let count = waiting.take_turn(now);
        group.extend(waiting.deferred.drain(..count));
        // File locks are taken in the order of vBuckets, each once: a vBucket that was emptied
        // while it was queued can be queued again.
        group.sort_unstable();
        group.dedup();
        waiting.popped_count = group.len();
        group
    }
}

impl WaitingVbuckets {
    fn count(&self) -> usize {
        self.awaited.len() + self.urgent.len() + self.deferred.len()
    }

    fn is_busy(&self) -> bool {
        self.count() > 0 || self.popped_count > 0
    }

    /// Queues a vBucket. Says whether its flusher is to look now.
    fn push(&mut self, vbid: Vbid, urgency: FlushUrgency, defers: bool) -> bool {
        match urgency {
            FlushUrgency::Awaited => self.awaited.push_back(vbid),
            FlushUrgency::Deferred if defers => {
                self.deferred.push_back(vbid);
                return self.deferred.len() == 1;
            }
            FlushUrgency::Deferred | FlushUrgency::Soon => self.urgent.push_back(vbid),
        }
        true
    }

    /// How many of the deferred ones have their turn at `now`.
    fn take_turn(&mut self, now: Option<Instant>) -> usize {
        if self.round_left == 0 && now.is_none_or(|now| self.next_round <= now) {
            self.round_left = self.deferred.len();
        }
        let count = self.round_left.min(DEFERRED_PORTION_MAX);
        self.round_left -= count;
        // A round without any was none: what comes after a pause has its turn at once.
        if count > 0 && self.round_left == 0 {
            self.next_round = now.unwrap_or_default().after(self.round_interval);
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(50);

    fn queues() -> FlushQueues {
        FlushQueues::new(Persistence::default(), INTERVAL)
    }

    fn vbids(range: std::ops::Range<u16>) -> Vec<Vbid> {
        range.map(Vbid).collect()
    }

    #[test]
    fn a_round_goes_in_portions_and_who_waits_goes_with_the_next_one() {
        let queues = queues();
        let [queue] = queues.queues.as_slice() else { panic!("a journal has one flusher") };
        let now = Instant::default().after(INTERVAL);
        let pop = |now: Instant| queue.pop_group(usize::MAX, Some(now));
        vbids(0..300).into_iter().for_each(|vbid| queues.push(vbid, FlushUrgency::Deferred));
        assert_eq!(pop(now), vbids(0..128));
        queues.push(Vbid(7), FlushUrgency::Awaited);
        queues.push(Vbid(8), FlushUrgency::Deferred);
        let second: Vec<Vbid> = std::iter::once(Vbid(7)).chain(vbids(128..256)).collect();
        assert_eq!(pop(now), second);
        assert_eq!(pop(now), vbids(256..300));
        assert_eq!(pop(now), [], "what came meanwhile has its turn in the next round");
        assert_eq!(queue.next_deferred(), Some(now.after(INTERVAL)));
        queues.push(Vbid(9), FlushUrgency::Soon);
        assert_eq!(pop(now), [Vbid(9)]);
        assert_eq!(pop(now.after(INTERVAL)), [Vbid(8)]);
        assert_eq!(queue.next_deferred(), None);
    }

    #[test]
    fn a_round_begins_early_when_memory_is_short_or_time_does_not_matter() {
        for hurries in [true, false] {
            let queues = queues();
            let queue = &queues.queues[0];
            let now = Instant::default().after(INTERVAL);
            queues.push(Vbid(1), FlushUrgency::Deferred);
            assert_eq!(queue.pop_group(usize::MAX, Some(now)), [Vbid(1)]);
            vbids(0..129).into_iter().for_each(|vbid| queues.push(vbid, FlushUrgency::Deferred));
            assert_eq!(queue.pop_group(usize::MAX, Some(now)), []);
            let now = hurries.then_some(now);
            if hurries {
                queues.hurry();
            }
            assert_eq!(queue.pop_group(usize::MAX, now), vbids(0..128));
            assert_eq!(queue.pop_group(usize::MAX, now), [Vbid(128)]);
            assert_eq!(queues.waiting_count(), 0);
        }
    }
}
