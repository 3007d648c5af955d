//! The backfills of one connection: a few at a time, one portion after the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use bucket::{Backfill, BackfillOrder, Bucket, StorageError};
use document::{Item, Seqno, Vbid};
use executor::{ExecutorPool, Next, Task, TaskContext, TaskHandle, TaskKind, TaskName};
use platform::Clock;

use super::feed::Feed;
use crate::producer::ProducerShared;

static BACKFILL: TaskName = TaskName::new("BackfillManagerTask", TaskKind::Reader)
    .priority(8)
    .expected(Duration::from_millis(100));

/// Bytes that a connection's backfills have read and not sent, at most, and a portion more.
const UNSENT_BYTES_MAX: u64 = 20 << 20;
/// Part of the bucket's quota that all its connections together may have read and not sent. Of each
/// there may be a portion beside that, so that all go on.
const UNSENT_QUOTA_DIVISOR: u64 = 10;
/// How often a connection looks whether others have sent, or memory has become free.
const CROWD_LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How often files are looked at that are being written, where nothing else is to be read.
const BUSY_LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// Bytes of a portion.
const PORTION_BYTES: usize = 256 << 10;
/// Files of a connection that are read at the same time, at most.
const ACTIVE_MAX: usize = 16;
/// A run ends after this long, so that others of its kind have their turn.
const RUN_DURATION_MAX: Duration = Duration::from_millis(25);

/// Bytes that all connections of a bucket have read from files and not sent.
#[derive(Default)]
pub(crate) struct UnsentOfAll(AtomicU64);

impl UnsentOfAll {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// What a connection wants to be read.
pub(crate) struct Backfills {
    bucket: Bucket,
    unsent_of_all: Arc<UnsentOfAll>,
    producer: Arc<ProducerShared>,
    waiting: Mutex<VecDeque<Job>>,
    /// One file after the other, rather than a few at a time.
    is_sequential: AtomicBool,
    task: OnceLock<TaskHandle>,
}

struct Job {
    vbid: Vbid,
    after: Seqno,
    order: BackfillOrder,
    feed: Arc<Feed>,
}

struct Active {
    job: Job,
    backfill: Backfill,
}

struct Reader {
    backfills: Arc<Backfills>,
    clock: Clock,
    active: VecDeque<Active>,
}

impl Backfills {
    pub(crate) fn new(
        bucket: Bucket,
        unsent_of_all: Arc<UnsentOfAll>,
        producer: Arc<ProducerShared>,
    ) -> Arc<Self> {
        Arc::new(Self {
            bucket,
            unsent_of_all,
            producer,
            waiting: Mutex::default(),
            is_sequential: AtomicBool::new(false),
            task: OnceLock::new(),
        })
    }

    pub(crate) fn set_sequential(&self, is_sequential: bool) {
        self.is_sequential.store(is_sequential, Ordering::Relaxed);
    }

    /// Has a vBucket read behind `after`. The producer is told whenever there is something to take.
    /// `None` when the bucket is closing.
    pub(crate) fn begin(
        self: &Arc<Self>,
        pool: &ExecutorPool,
        vbid: Vbid,
        after: Seqno,
        order: BackfillOrder,
    ) -> Option<Arc<Feed>> {
        let feed = Arc::<Feed>::default();
        self.lock().push_back(Job { vbid, after, order, feed: Arc::clone(&feed) });
        if self.task.get().is_none() {
            let (backfills, clock) = (Arc::clone(self), pool.clock().clone());
            let reader = Reader { backfills, clock, active: VecDeque::new() };
            let owner = self.bucket.task_owner();
            let task = pool.schedule_asleep(owner, &BACKFILL, reader).ok()?;
            assert!(self.task.set(task).is_ok(), "one worker begins backfills");
        }
        self.wake();
        Some(feed)
    }

    /// `bytes` that were read are sent, or not wanted any more.
    pub(crate) fn sent(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let (before, of_all) = self.give_back(bytes);
        let low = UNSENT_BYTES_MAX / 2;
        // Only whoever takes it across a mark wakes: one wake, not one for each message.
        let is_low = before >= low && before - bytes < low;
        // Crowded out, it waits for one of these.
        let of_all_max = self.unsent_of_all_max();
        let has_room = of_all < of_all_max && of_all + bytes >= of_all_max;
        let is_crowded = || of_all >= of_all_max || !self.bucket.has_room_to_backfill(of_all);
        let has_nothing = before == bytes && is_crowded();
        if is_low || has_room || has_nothing {
            self.wake();
        }
    }

    /// Bytes that are read from now on.
    fn take_up(&self, bytes: u64) {
        self.unsent_of_all.0.fetch_add(bytes, Ordering::AcqRel);
        self.producer.backfill_bytes().fetch_add(bytes, Ordering::AcqRel);
    }

    /// Bytes that are held no more. Returns what the connection had before, and what all have now.
    fn give_back(&self, bytes: u64) -> (u64, u64) {
        let before = self.producer.backfill_bytes().fetch_sub(bytes, Ordering::AcqRel);
        assert!(before >= bytes, "what is sent was read before");
        let of_all = self.unsent_of_all.0.fetch_sub(bytes, Ordering::AcqRel);
        assert!(of_all >= bytes, "what a connection has read, all have");
        (before, of_all - bytes)
    }

    fn unsent_of_all_max(&self) -> u64 {
        self.bucket.memory_quota_bytes() / UNSENT_QUOTA_DIVISOR
    }

    /// Whether this one is to wait, and has what to send meanwhile: all connections together have
    /// read so much, or memory is short. Without that it reads a portion all the same, so that who
    /// sends never waits for memory that others hold.
    fn is_crowded_out(&self) -> bool {
        let of_all = self.unsent_of_all.bytes();
        let is_crowded =
            || of_all >= self.unsent_of_all_max() || !self.bucket.has_room_to_backfill(of_all);
        self.producer.backfill_bytes().load(Ordering::Acquire) > 0 && is_crowded()
    }

    /// Ends everything: the connection is gone.
    pub(crate) fn stop(&self) {
        if let Some(task) = self.task.get() {
            task.cancel();
        }
        let jobs = std::mem::take(&mut *self.lock());
        drop(jobs);
    }

    fn wake(&self) {
        if let Some(task) = self.task.get() {
            task.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Job>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task for Reader {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        let backfills = Arc::clone(&self.backfills);
        let end = context.started().after(RUN_DURATION_MAX);
        loop {
            if context.is_shutting_down() {
                return Next::Finished;
            }
            // Who sends wakes this task when half of it is gone.
            if backfills.producer.backfill_bytes().load(Ordering::Acquire) >= UNSENT_BYTES_MAX {
                return Next::Sleep;
            }
            if backfills.is_crowded_out() {
                return Next::SleepFor(CROWD_LOOK_INTERVAL);
            }
            self.fill_up();
            let Some(active) = self.active.pop_front() else {
                // Who asks for another file wakes; of who writes these nobody hears.
                let is_waiting = !backfills.lock().is_empty();
                return if is_waiting { Next::SleepFor(BUSY_LOOK_INTERVAL) } else { Next::Sleep };
            };
            if let Some(active) = backfills.read(active) {
                self.active.push_back(active);
            }
            if self.clock.now() >= end {
                return Next::Again;
            }
        }
    }
}

impl Reader {
    /// Begins backfills that wait, as many as may run. Nothing waits for a file that is being
    /// written, which may take as long as its writer is kept from the CPU.
    fn fill_up(&mut self) {
        self.active.retain(|active| !active.job.feed.is_cancelled());
        let is_sequential = self.backfills.is_sequential.load(Ordering::Relaxed);
        let active_max = if is_sequential { 1 } else { ACTIVE_MAX };
        let waiting_count = self.backfills.lock().len();
        for _ in 0..waiting_count {
            if self.active.len() >= active_max {
                break;
            }
            let Some(job) = self.backfills.lock().pop_front() else { break };
            self.active.extend(self.backfills.try_open(job));
        }
        assert!(self.active.len() <= ACTIVE_MAX, "so many files are read at once");
    }
}

impl Backfills {
    /// Begins to read a file. One that is being written is the last of those that wait.
    fn try_open(&self, job: Job) -> Option<Active> {
        if job.feed.is_cancelled() {
            return None;
        }
        let Some(begun) = self.bucket.try_begin_backfill(job.vbid, job.after, job.order) else {
            self.lock().push_back(job);
            return None;
        };
        self.begin_reading(job, begun)
    }

    fn begin_reading(
        &self,
        job: Job,
        begun: Result<Option<Backfill>, StorageError>,
    ) -> Option<Active> {
        match begun {
            Ok(Some(backfill)) => {
                job.feed.begin(backfill.facts());
                Some(Active { job, backfill })
            }
            Ok(None) => {
                self.end(&job, false);
                None
            }
            Err(error) => {
                tell(&error, job.vbid);
                self.end(&job, false);
                None
            }
        }
    }

    /// Reads a portion; gives back what has more.
    fn read(&self, mut active: Active) -> Option<Active> {
        let mut items = Vec::new();
        let has_more = active.backfill.read(PORTION_BYTES, &mut items);
        let bytes: u64 = items.iter().map(size_of_item).sum();
        // Counted before anybody can send it.
        self.take_up(bytes);
        let job = &active.job;
        if !job.feed.push(items) {
            self.give_back(bytes);
            return None;
        }
        match has_more {
            Ok(true) => {
                self.producer.mark_ready(job.vbid);
                Some(active)
            }
            Ok(false) => {
                self.end(job, true);
                None
            }
            Err(error) => {
                tell(&error, job.vbid);
                self.end(job, false);
                None
            }
        }
    }

    fn end(&self, job: &Job, is_complete: bool) {
        job.feed.end(is_complete);
        self.producer.mark_ready(job.vbid);
    }
}

/// What an item counts while it waits.
pub(crate) fn size_of_item(item: &Item) -> u64 {
    u64::try_from(item.allocation_size()).unwrap_or(u64::MAX)
}

/// A stream ends for it. The file follows the journal before it is read, which waits for room on a
/// full disk; of that others tell.
fn tell(error: &StorageError, vbid: Vbid) {
    let message = "a stream's file cannot be read";
    match error {
        StorageError::NoSpace(_) => tracing::debug!(%error, vbucket = vbid.0, message),
        _ => tracing::error!(%error, vbucket = vbid.0, message),
    }
}
