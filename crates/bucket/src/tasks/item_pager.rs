//! Evicts documents from memory when it is full: a round takes a sample, decides up to which
//! frequency counter documents leave, and walks the hash tables until memory is below the low
//! watermark.
//!
//! Whoever makes memory full wakes the pager: a write, a fetched value. What cannot leave because
//! it is not on disk yet wakes it again when it is. Every few seconds it looks by itself.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::time::Duration;

use document::{Vbid, VbucketState};
use executor::{ExecutorPool, Interrupt, Next, OwnerIsGone, Revisit, Task, TaskContext, TaskKind};
use executor::{TaskName, VbucketVisitor, VisitOrder, VisitOutcome, VisitTask};
use platform::Instant;
use vbucket::eviction::{Evictable, EvictionStrategy, PagingPlan, Watermarks};
use vbucket::{Effect, EvictableSample, Paged, PagingLimits};

use super::Wakeable;
use super::flusher::micros;
use crate::bucket::{Bucket, BucketCore};
use crate::bucket_type::BucketType;

static ITEM_PAGER: TaskName =
    TaskName::new("ItemPager", TaskKind::NonIo).priority(1).expected(Duration::from_millis(50));

/// Slots of a hash table that are gone through while its vBucket's lock is held.
const PORTION_SLOTS: usize = 256;
/// Slots that a sample looks at in all vBuckets together, about.
const SAMPLE_SLOTS: usize = 32 * 1024;
/// The same in one vBucket, at least.
const SAMPLE_SLOTS_MIN: usize = 32;
/// Slots that a write goes through itself when memory is too full for it.
const URGENT_SLOTS: usize = 128;

/// The pause after a round that has found next to nothing to evict: another one would find as
/// little until more is on disk.
const FUTILE_PAUSE: Duration = Duration::from_millis(50);
/// Deleted documents are freed when the log is done with them, which takes a moment: another round
/// before that would delete more than it has to.
const DELETION_PAUSE: Duration = Duration::from_millis(2);
/// Tombstones of an ephemeral bucket that take more than this part of memory, one in so many, go
/// before their time.
const TOMBSTONES_PARTS: u64 = 10;
/// A round that evicts fewer documents than this is futile.
const EVICTIONS_MIN: u64 = 16;

/// What others need of the pager.
#[derive(Default)]
pub(crate) struct Pager {
    task: Wakeable,
    /// The pager pauses, and wakes would be in vain.
    is_pausing: AtomicBool,
    /// Up to which frequency counter documents left in the last round.
    threshold: AtomicU16,
    /// The vBucket in which the last walk of active ones ended.
    last: AtomicU64,
}

impl Pager {
    /// Has the pager look at memory now, unless it knows that it can do nothing.
    pub(crate) fn wake(&self) {
        if !self.is_pausing.load(Ordering::Relaxed) {
            self.task.wake();
        }
    }
}

struct ItemPager {
    bucket: Bucket,
    /// `None` between rounds.
    round: Option<Round>,
    /// Memory was full and is not below the low watermark yet.
    is_unfinished: bool,
}

struct Round {
    visits: VisitTask<PagingVisitor>,
    started: Instant,
    evictions_before: u64,
    /// The round is about tombstones that take too much of an ephemeral bucket.
    forgets_tombstones: bool,
}

/// Evicts from a portion of a vBucket's hash table a visit.
struct PagingVisitor {
    bucket: Bucket,
    active: EvictionStrategy,
    replica: EvictionStrategy,
    /// Bytes that are to be freed. Memory in use does not tell how far that has come where
    /// documents are deleted: the log still holds them.
    bytes_left: u64,
    forgets_tombstones: bool,
    effects: Vec<Effect>,
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let task = ItemPager { bucket: bucket.clone(), round: None, is_unfinished: false };
    let handle = pool.schedule_asleep(bucket.0.owner(), &ITEM_PAGER, task)?;
    handle.snooze(bucket.0.config.eviction.pager_interval);
    bucket.0.pager.task.set(handle);
    Ok(())
}

impl Task for ItemPager {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let bucket = self.bucket.clone();
        let core = &bucket.0;
        core.pager.is_pausing.store(false, Ordering::Relaxed);
        let marks = core.limits.watermarks();
        let sleep = Next::SleepFor(core.config.eviction.pager_interval);
        if self.round.is_none() && !self.is_wanted(core.account.used_bytes(), marks) {
            return sleep;
        }
        let round = self.round.get_or_insert_with(|| begin_round(&bucket));
        match round.visits.run(context) {
            Next::Finished => {}
            next => return next,
        }
        let evictions = core.counters.evictions.load(Ordering::Relaxed) - round.evictions_before;
        core.timings.item_pager.record(micros(core.clock.now().since(round.started)));
        let forgets_tombstones = round.forgets_tombstones;
        self.round = None;
        let used_bytes = core.account.used_bytes();
        self.is_unfinished = used_bytes > marks.low_bytes;
        if !self.is_unfinished {
            core.limits.shrink_to_fit(used_bytes);
            return sleep;
        }
        if forgets_tombstones {
            return Next::Again;
        }
        let pause = match (evictions >= EVICTIONS_MIN, bucket.bucket_type()) {
            (true, BucketType::Couchbase) => return Next::Again,
            (true, BucketType::Ephemeral) => DELETION_PAUSE,
            (false, _) => FUTILE_PAUSE,
        };
        self.is_unfinished = used_bytes > marks.high_bytes;
        core.pager.is_pausing.store(true, Ordering::Relaxed);
        Next::SleepFor(pause)
    }

    fn describe(&self) -> Option<String> {
        self.round.as_ref()?.visits.describe()
    }
}

impl ItemPager {
    fn is_wanted(&mut self, used_bytes: u64, marks: Watermarks) -> bool {
        if self.bucket.fails_new_data() {
            return false;
        }
        self.is_unfinished &= used_bytes > marks.low_bytes;
        self.is_unfinished || used_bytes > marks.high_bytes
    }
}

fn begin_round(bucket: &Bucket) -> Round {
    let core = &bucket.0;
    core.counters.add(&core.counters.pager_rounds, 1);
    // What is not flushed yet cannot leave.
    core.flush_queues.hurry();
    let samples = core.sample_evictable();
    let evictable = Evictable {
        replica_bytes: samples.replica.evictable_bytes(),
        active_bytes: samples.active.evictable_bytes(),
    };
    let bytes = core.limits.watermarks().bytes_to_page(core.account.used_bytes());
    let plan = PagingPlan::new(bytes, evictable);
    let kind = core.config.eviction.strategy;
    core.initial_frequency().set(kind.initial_frequency(&samples.active.frequencies));
    let forgets_tombstones = samples.active.tombstones_take_more_than(TOMBSTONES_PARTS);
    let visitor = PagingVisitor {
        bucket: bucket.clone(),
        active: kind.strategy(&samples.active.frequencies, plan.active_ratio),
        replica: kind.strategy(&samples.replica.frequencies, plan.replica_ratio),
        bytes_left: bytes,
        forgets_tombstones,
        effects: Vec::new(),
    };
    if let Some(threshold) = visitor.active.threshold() {
        core.pager.threshold.store(threshold.into(), Ordering::Relaxed);
    }
    let order = VisitOrder::of(samples.order);
    Round {
        visits: VisitTask::new(core.clock.clone(), "Evicting documents", order, visitor),
        started: core.clock.now(),
        evictions_before: core.counters.evictions.load(Ordering::Relaxed),
        forgets_tombstones,
    }
}

/// What a sample has found.
#[derive(Default)]
struct Samples {
    active: EvictableSample,
    replica: EvictableSample,
    /// The vBuckets: replicas first, then the others, each from where the last walk has ended, so
    /// that all are gone through equally often.
    order: Vec<Vbid>,
}

impl BucketCore {
    fn sample_evictable(&self) -> Samples {
        let slots_max = (SAMPLE_SLOTS / self.slots.len().max(1)).max(SAMPLE_SLOTS_MIN);
        let now = self.now();
        let mut samples = Samples::default();
        let mut others = Vec::new();
        for (vbid, slot) in self.slots() {
            let mut place = slot.lock();
            let Some(vbucket) = place.as_mut() else { continue };
            let (sample, order) = match vbucket.state() {
                VbucketState::Replica => (&mut samples.replica, &mut samples.order),
                _ => (&mut samples.active, &mut others),
            };
            vbucket.sample_evictable(slots_max, now, sample);
            order.push(vbid);
        }
        let last = self.pager.last.load(Ordering::Relaxed);
        let first = others.partition_point(|vbid| u64::from(vbid.0) < last);
        others.rotate_left(first);
        samples.order.append(&mut others);
        samples
    }

    /// Wakes the pager if memory is full. Returns about how many bytes are in use.
    pub(crate) fn page_if_full(&self) -> u64 {
        let used_bytes = self.account.estimated_used_bytes();
        if used_bytes > self.limits.watermarks().high_bytes {
            self.pager.wake();
        }
        used_bytes
    }

    /// Evicts a little of one vBucket on the caller's time.
    pub(crate) fn page_at_once(&self, vbid: Vbid) {
        if self.description.bucket_type == BucketType::Ephemeral {
            return;
        }
        let threshold = self.pager.threshold.load(Ordering::Relaxed);
        let threshold = u8::try_from(threshold).unwrap_or(u8::MAX);
        let strategy = EvictionStrategy::up_to(self.config.eviction.strategy, threshold);
        let limits = PagingLimits {
            slots_max: URGENT_SLOTS,
            bytes_max: u64::MAX,
            forgets_tombstones: false,
        };
        self.page(vbid, limits, |_| strategy, &mut Vec::new());
    }

    /// Evicts from the next slots of one vBucket.
    fn page(
        &self,
        vbid: Vbid,
        limits: PagingLimits,
        strategy_for: impl FnOnce(VbucketState) -> EvictionStrategy,
        effects: &mut Vec<Effect>,
    ) -> Paged {
        let absent = Paged { is_at_end: true, ..Paged::default() };
        let Some(slot) = self.slot(vbid) else { return absent };
        let now = self.now();
        let paged = match slot.lock().as_mut() {
            None => return absent,
            Some(vbucket) => vbucket.page(limits, strategy_for(vbucket.state()), now, effects),
        };
        self.carry_out(vbid, effects);
        self.counters.add(&self.counters.evictions, paged.evicted_count);
        paged
    }
}

impl VbucketVisitor for PagingVisitor {
    fn should_interrupt(&mut self) -> Interrupt {
        let core = &self.bucket.0;
        let is_low = core.account.used_bytes() <= core.limits.watermarks().low_bytes;
        let is_enough = !self.forgets_tombstones && (is_low || self.bytes_left == 0);
        if is_enough { Interrupt::Stop } else { Interrupt::Continue }
    }

    fn visit(&mut self, vbid: Vbid) -> Revisit {
        let core = &self.bucket.0;
        let (active, replica) = (self.active, self.replica);
        let strategy_for = |state| if state == VbucketState::Replica { replica } else { active };
        core.pager.last.store(vbid.0.into(), Ordering::Relaxed);
        let limits = PagingLimits {
            slots_max: PORTION_SLOTS,
            bytes_max: self.bytes_left,
            forgets_tombstones: self.forgets_tombstones,
        };
        let paged = core.page(vbid, limits, strategy_for, &mut self.effects);
        self.bytes_left = self.bytes_left.saturating_sub(paged.freed_bytes);
        if paged.is_at_end { Revisit::No } else { Revisit::YesNow }
    }

    fn complete(&mut self, _outcome: VisitOutcome) {}
}
