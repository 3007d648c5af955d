//! Which vBuckets' files are to be compacted, which are being, and what has come of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use document::{Seqno, Vbid};
use platform::Instant;
use storage::{CompactionPhase, CompactionProgress, CompactionReport};

use super::settings::CompactionSettings;
use crate::config::BucketConfig;

/// What somebody wants of a compaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionOrder {
    /// Seconds since 1970: tombstones from before it go; 0 for the bucket's own purge age.
    pub purge_before_seconds: u32,
    /// Of these, only those up to here; 0 for all.
    pub purge_before_seqno: Seqno,
    /// All tombstones go.
    pub drop_deletes: bool,
}

/// What became of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionEnd {
    /// The file is compacted, or there is none.
    Done,
    /// The file could not be compacted; the log says why.
    Failed,
    /// It was stopped: the vBucket's history has ended, the node stops, or somebody wants so.
    Aborted,
}

type OnEnd = Box<dyn FnOnce(CompactionEnd) + Send>;

/// The compactions of a bucket.
pub(crate) struct Compactions {
    pub(crate) settings: CompactionSettings,
    pub(crate) counters: CompactionCounters,
    plan: Mutex<Plan>,
}

/// What has been done.
#[derive(Debug, Default)]
pub(crate) struct CompactionCounters {
    pub(crate) done: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) aborted: AtomicU64,
    pub(crate) bytes_freed: AtomicU64,
    pub(crate) tombstones_purged: AtomicU64,
    pub(crate) prepares_purged: AtomicU64,
    pub(crate) of_dropped_collections: AtomicU64,
    pub(crate) expired: AtomicU64,
    pub(crate) damaged_bodies: AtomicU64,
}

#[derive(Default)]
struct Plan {
    /// In the order in which they were given.
    ordered: VecDeque<Ordered>,
    /// Fragmented files that nobody has asked to compact, the worst first.
    fragmented: VecDeque<Fragmented>,
    running: Vec<Running>,
    is_stopping: bool,
}

/// A file of which too much is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fragmented {
    pub(super) vbid: Vbid,
    /// Bytes that its copy will have, about.
    pub(super) live_bytes: u64,
}

struct Ordered {
    vbid: Vbid,
    order: CompactionOrder,
    on_end: Vec<OnEnd>,
}

struct Running {
    vbid: Vbid,
    progress: CompactionProgress,
    since: Instant,
}

/// A compaction that is to begin now.
pub(crate) struct Begun {
    pub(crate) vbid: Vbid,
    pub(crate) order: CompactionOrder,
    pub(crate) progress: CompactionProgress,
    on_end: Vec<OnEnd>,
}

/// One compaction that is under way.
#[derive(Clone, Copy, Debug)]
pub struct RunningCompaction {
    /// Of which vBucket.
    pub vbid: Vbid,
    /// What it is doing.
    pub phase: CompactionPhase,
    /// Bytes of the new file so far.
    pub bytes_done: u64,
    /// Bytes that the new file will have, about.
    pub bytes_total: u64,
    /// For how long it has been running.
    pub took: Duration,
    /// For how long it will go on at this pace; `None` as long as nothing is written.
    pub left: Option<Duration>,
}

/// What compaction has done, and what waits.
#[derive(Clone, Debug, Default)]
pub struct CompactionStatistics {
    /// Those that are under way.
    pub running: Vec<RunningCompaction>,
    /// vBuckets that wait because somebody has asked for it.
    pub ordered_count: usize,
    /// vBuckets that wait because their files are fragmented.
    pub fragmented_count: usize,
    /// Files compacted.
    pub done: u64,
    /// Compactions that failed.
    pub failed: u64,
    /// Compactions that were stopped.
    pub aborted: u64,
    /// Bytes by which files have become smaller.
    pub bytes_freed: u64,
    /// Tombstones left out.
    pub tombstones_purged: u64,
    /// Completed prepares left out.
    pub prepares_purged: u64,
    /// Documents of dropped collections left out.
    pub of_dropped_collections: u64,
    /// Documents deleted because a compaction found them past their time.
    pub expired: u64,
    /// Documents copied although their bodies cannot be read, each time they were.
    pub damaged_bodies: u64,
}

impl CompactionOrder {
    /// What serves both.
    fn merge(&mut self, other: Self) {
        self.purge_before_seconds = self.purge_before_seconds.max(other.purge_before_seconds);
        self.purge_before_seqno = self.purge_before_seqno.max(other.purge_before_seqno);
        self.drop_deletes |= other.drop_deletes;
    }
}

impl Compactions {
    pub(crate) fn new(config: &BucketConfig) -> Self {
        let settings = CompactionSettings::new(config);
        Self { settings, counters: CompactionCounters::default(), plan: Mutex::default() }
    }

    /// Takes an order. One for a vBucket that has one already joins it.
    pub(super) fn order(&self, vbid: Vbid, order: CompactionOrder, on_end: Option<OnEnd>) {
        let mut plan = self.lock();
        if plan.is_stopping {
            // Who has asked takes locks of its own when it hears of the end (invariant 10).
            drop(plan);
            on_end.into_iter().for_each(|on_end| on_end(CompactionEnd::Aborted));
            return;
        }
        // The order does what the file waits for there, and goes ahead.
        plan.fragmented.retain(|waiting| waiting.vbid != vbid);
        match plan.ordered.iter_mut().find(|waiting| waiting.vbid == vbid) {
            Some(waiting) => {
                waiting.order.merge(order);
                waiting.on_end.extend(on_end);
            }
            None => {
                let on_end = on_end.into_iter().collect();
                plan.ordered.push_back(Ordered { vbid, order, on_end });
            }
        }
    }

    /// From now on these fragmented files wait, the worst first.
    pub(super) fn set_fragmented(&self, files: Vec<Fragmented>) {
        let mut plan = self.lock();
        let is_ordered = |vbid: Vbid| plan.ordered.iter().any(|waiting| waiting.vbid == vbid);
        let is_running = |vbid: Vbid| plan.running.iter().any(|running| running.vbid == vbid);
        let is_free = |file: &Fragmented| !is_ordered(file.vbid) && !is_running(file.vbid);
        plan.fragmented = files.into_iter().filter(is_free).collect();
    }

    /// Fragmented files whose copies need so many bytes or more wait no longer.
    pub(super) fn forget_fragmented_from(&self, live_bytes: u64) {
        self.lock().fragmented.retain(|waiting| waiting.live_bytes < live_bytes);
    }

    /// The next compaction, orders first. Whoever takes it ends it.
    pub(crate) fn begin(&self, now: Instant) -> Option<Begun> {
        let mut plan = self.lock();
        if plan.is_stopping {
            return None;
        }
        let Plan { ordered, fragmented, running, .. } = &mut *plan;
        let is_free = |vbid: Vbid| !running.iter().any(|running| running.vbid == vbid);
        let next = ordered.iter().position(|waiting| is_free(waiting.vbid));
        let next = match next.and_then(|index| ordered.remove(index)) {
            Some(next) => next,
            None => {
                let index = fragmented.iter().position(|waiting| is_free(waiting.vbid))?;
                let vbid = fragmented.remove(index)?.vbid;
                Ordered { vbid, order: CompactionOrder::default(), on_end: Vec::new() }
            }
        };
        let progress = CompactionProgress::new();
        running.push(Running { vbid: next.vbid, progress: progress.clone(), since: now });
        Some(Begun { vbid: next.vbid, order: next.order, progress, on_end: next.on_end })
    }

    /// A compaction has ended; who has asked for it hears how.
    pub(crate) fn end(&self, begun: Begun, end: CompactionEnd) {
        let mut plan = self.lock();
        let running_before = plan.running.len();
        plan.running.retain(|running| running.vbid != begun.vbid);
        let ended_count = running_before - plan.running.len();
        drop(plan);
        assert_eq!(ended_count, 1, "a file is compacted once at a time, and ends once");
        begun.on_end.into_iter().for_each(|on_end| on_end(end));
    }

    /// Stops what is under way and forgets what waits.
    pub(crate) fn cancel(&self) {
        self.stop(false);
    }

    /// The same, and takes no orders any more.
    pub(crate) fn close(&self) {
        self.stop(true);
    }

    fn stop(&self, is_for_good: bool) {
        let mut plan = self.lock();
        plan.is_stopping |= is_for_good;
        plan.running.iter().for_each(|running| running.progress.abort());
        plan.fragmented.clear();
        let ordered = std::mem::take(&mut plan.ordered);
        drop(plan);
        for on_end in ordered.into_iter().flat_map(|waiting| waiting.on_end) {
            on_end(CompactionEnd::Aborted);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn statistics(&self, now: Instant) -> CompactionStatistics {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let plan = self.lock();
        let counters = &self.counters;
        CompactionStatistics {
            running: plan.running.iter().map(|running| running.describe(now)).collect(),
            ordered_count: plan.ordered.len(),
            fragmented_count: plan.fragmented.len(),
            done: load(&counters.done),
            failed: load(&counters.failed),
            aborted: load(&counters.aborted),
            bytes_freed: load(&counters.bytes_freed),
            tombstones_purged: load(&counters.tombstones_purged),
            prepares_purged: load(&counters.prepares_purged),
            of_dropped_collections: load(&counters.of_dropped_collections),
            expired: load(&counters.expired),
            damaged_bodies: load(&counters.damaged_bodies),
        }
    }
}

impl CompactionCounters {
    pub(crate) fn note(&self, report: &CompactionReport) {
        let add = |counter: &AtomicU64, count| {
            counter.fetch_add(count, Ordering::Relaxed);
        };
        let freed = report.file_bytes_before.saturating_sub(report.file_bytes_after);
        add(&self.done, 1);
        add(&self.bytes_freed, freed);
        add(&self.tombstones_purged, report.purged.tombstones);
        add(&self.prepares_purged, report.purged.prepares);
        add(&self.of_dropped_collections, report.purged.of_dropped_collections);
        add(&self.damaged_bodies, report.damaged.count);
    }
}

impl Running {
    fn describe(&self, now: Instant) -> RunningCompaction {
        let (bytes_done, bytes_total) = (self.progress.bytes_done(), self.progress.bytes_total());
        let took = now.since(self.since);
        RunningCompaction {
            vbid: self.vbid,
            phase: self.progress.phase(),
            bytes_done,
            bytes_total,
            took,
            left: time_left(&self.progress, took),
        }
    }
}

/// For how long a compaction will go on at the pace of the time that it `took` so far; `None` as
/// long as nothing is written.
pub(super) fn time_left(progress: &CompactionProgress, took: Duration) -> Option<Duration> {
    let (done, total) = (progress.bytes_done(), progress.bytes_total());
    let ratio = total.saturating_sub(done) as f64 / done.max(1) as f64;
    let left = Duration::try_from_secs_f64(took.as_secs_f64() * ratio);
    (done > 0).then(|| left.unwrap_or_default())
}
