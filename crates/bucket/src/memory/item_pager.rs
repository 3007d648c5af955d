//! Evicts documents from memory when it is full: a round takes a sample, decides up to which
//! frequency counter documents leave, and walks the hash tables until memory is below the low
//! watermark.
//!
//! Whoever makes memory full wakes the pager: a write, a fetched value. What cannot leave because
//! it is not on disk yet wakes it again when it is. Every few seconds it looks by itself.

use std::sync::atomic::Ordering;
use std::time::Duration;

use document::{Vbid, VbucketState};
use executor::{ExecutorPool, Interrupt, Next, OwnerIsGone, Revisit, Task, TaskContext, TaskKind};
use executor::{TaskName, VbucketVisitor, VisitOrder, VisitOutcome, VisitTask};
use platform::Instant;
use vbucket::eviction::{Evictable, EvictionStrategy, PagingPlan, Watermarks};
use vbucket::{Effect, PagingLimits};

use crate::config::BucketType;
use crate::core::{Bucket, micros};

static ITEM_PAGER: TaskName =
    TaskName::new("ItemPager", TaskKind::NonIo).priority(1).expected(Duration::from_millis(50));

/// Slots of a hash table that are gone through while its vBucket's lock is held.
const PORTION_SLOTS: usize = 256;

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

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let task = ItemPager { bucket: bucket.clone(), round: None, is_unfinished: false };
    let handle = pool.schedule_asleep(&bucket.0.background.owner, &ITEM_PAGER, task)?;
    handle.snooze(bucket.0.config.eviction.pager_interval);
    bucket.0.memory.pager.task.set(handle);
    Ok(())
}

impl Task for ItemPager {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let bucket = self.bucket.clone();
        let core = &bucket.0;
        core.memory.pager.is_pausing.store(false, Ordering::Relaxed);
        let marks = core.memory.limits.watermarks();
        let sleep = Next::SleepFor(core.config.eviction.pager_interval);
        if self.round.is_none() && !self.is_wanted(core.memory.account.used_bytes(), marks) {
            return sleep;
        }
        let round = self.round.get_or_insert_with(|| begin_round(&bucket));
        match round.visits.run(context) {
            Next::Finished => {}
            next => return next,
        }
        let evictions = core.counters.evictions.load(Ordering::Relaxed) - round.evictions_before;
        core.counters.timings.item_pager.record(micros(core.clock.now().since(round.started)));
        let forgets_tombstones = round.forgets_tombstones;
        self.round = None;
        let used_bytes = core.memory.account.used_bytes();
        self.is_unfinished = used_bytes > marks.low_bytes;
        if !self.is_unfinished {
            core.memory.limits.shrink_to_fit(used_bytes);
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
        core.memory.pager.is_pausing.store(true, Ordering::Relaxed);
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
    core.disk.hurry_flushes();
    let samples = core.sample_evictable();
    let evictable = Evictable {
        replica_bytes: samples.replica.evictable_bytes(),
        active_bytes: samples.active.evictable_bytes(),
    };
    let bytes = core.memory.limits.watermarks().bytes_to_page(core.memory.account.used_bytes());
    let plan = PagingPlan::new(bytes, evictable);
    let kind = core.config.eviction.strategy;
    core.vbuckets
        .factory
        .initial_frequency()
        .set(kind.initial_frequency(&samples.active.frequencies));
    // Of replicas, too: they receive a tombstone for each document that their active copies delete
    // to make room, and can delete none themselves. A node that has nothing else would fill up.
    let forgets_tombstones =
        samples.active.tombstones_take_more_than(&samples.replica, TOMBSTONES_PARTS);
    let visitor = PagingVisitor {
        bucket: bucket.clone(),
        active: kind.strategy(&samples.active.frequencies, plan.active_ratio),
        replica: kind.strategy(&samples.replica.frequencies, plan.replica_ratio),
        bytes_left: bytes,
        forgets_tombstones,
        effects: Vec::new(),
    };
    // For writers that find memory full and evict on their own time.
    if let Some(threshold) = visitor.active.threshold() {
        core.memory.pager.threshold.store(threshold.into(), Ordering::Relaxed);
    }
    let order = VisitOrder::of(samples.order);
    Round {
        visits: VisitTask::new(core.clock.clone(), "Evicting documents", order, visitor),
        started: core.clock.now(),
        evictions_before: core.counters.evictions.load(Ordering::Relaxed),
        forgets_tombstones,
    }
}

impl VbucketVisitor for PagingVisitor {
    fn should_interrupt(&mut self) -> Interrupt {
        let core = &self.bucket.0;
        let is_low = core.memory.account.used_bytes() <= core.memory.limits.watermarks().low_bytes;
        let is_enough = !self.forgets_tombstones && (is_low || self.bytes_left == 0);
        if is_enough { Interrupt::Stop } else { Interrupt::Continue }
    }

    fn visit(&mut self, vbid: Vbid) -> Revisit {
        let core = &self.bucket.0;
        let (active, replica) = (self.active, self.replica);
        let strategy_for = |state| if state == VbucketState::Replica { replica } else { active };
        core.memory.pager.last.store(vbid.0.into(), Ordering::Relaxed);
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
