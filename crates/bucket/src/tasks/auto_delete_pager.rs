//! Makes room in an ephemeral bucket that is full: deletes the documents that are used least.
//!
//! A round begins above the high watermark and ends below the low one, or when every vBucket had
//! its turn. The next one begins where it ended, so that all vBuckets give alike. How much
//! documents are used is taken from a sample: to walk through all of them first would take as long
//! as the round.

use std::sync::OnceLock;
use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext, TaskHandle};
use executor::{TaskKind, TaskName};
use platform::{Instant, Random};
use vbucket::eviction::{Evictable, PagingPlan};
use vbucket::{Effect, RoomSample, RoomWanted, VisitPosition};

use crate::bucket::{Bucket, BucketCore};
use crate::bucket_type::{BucketType, FullPolicy};
use crate::vbucket_slot::VbucketSlot;

static PAGER: TaskName =
    TaskName::new("ItemPager", TaskKind::NonIo).priority(1).expected(Duration::from_millis(25));

/// It looks by itself so often, should nobody who needs room have woken it.
const INTERVAL: Duration = Duration::from_secs(5);
/// After a round that has deleted nothing: what is in the log cannot go yet.
const PAUSE: Duration = Duration::from_millis(100);
/// A run ends after this long.
const RUN_DURATION_MAX: Duration = Duration::from_millis(25);
/// Slots looked at while one vBucket's lock is held.
const PORTION_SLOTS_MAX: usize = 64;
/// Documents take at least so many times the bytes of tombstones; otherwise these go before their
/// time. Each deletion leaves one: a bucket of small documents under many writes would hold nothing
/// else in the end.
const DOCUMENTS_BY_TOMBSTONES_MIN: u64 = 10;
/// Portions in a sample, spread over the vBuckets.
const SAMPLED_PORTIONS: usize = 256;

/// The task, for whoever needs room.
#[derive(Default)]
pub(crate) struct AutoDeletePager(OnceLock<TaskHandle>);

impl AutoDeletePager {
    /// There is too little room.
    pub(crate) fn wake(&self) {
        if let Some(task) = self.0.get() {
            task.wake();
        }
    }
}

struct Pager {
    bucket: Bucket,
    random: Random,
    /// Where the next portion of documents begins.
    documents: Place,
    /// Where the next portion of tombstones begins.
    tombstones: Place,
    round: Option<Round>,
    effects: Vec<Effect>,
}

/// Where a walk through all vBuckets has come.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    vbid: Vbid,
    position: VisitPosition,
}

struct Round {
    /// Documents that are used no more than so go.
    heat_max: u8,
    /// vBuckets that are still to be rid of their tombstones, before documents go.
    purges_left: usize,
    /// vBuckets whose documents are still to have their turn.
    vbuckets_left: usize,
    /// Documents and tombstones that have gone.
    freed_count: usize,
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    if bucket.bucket_type() != BucketType::Ephemeral {
        return Ok(());
    }
    let task = Pager {
        bucket: bucket.clone(),
        random: Random::from_seed(bucket.0.new_uuid().0),
        documents: Place::default(),
        tombstones: Place::default(),
        round: None,
        effects: Vec::new(),
    };
    let handle = pool.schedule(bucket.0.owner(), &PAGER, task)?;
    bucket.0.auto_delete_pager.0.set(handle).expect("the pager starts once");
    Ok(())
}

impl Task for Pager {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let core = self.bucket.0.clone();
        if core.ephemeral.full_policy() == FullPolicy::AutoDelete {
            return self.make_room(&core, context.started().after(RUN_DURATION_MAX));
        }
        self.round = None;
        Next::SleepFor(INTERVAL)
    }
}

impl Pager {
    /// Goes on with a round, or begins one, until there is room or the time is over.
    fn make_room(&mut self, core: &BucketCore, deadline: Instant) -> Next {
        let marks = core.watermarks();
        loop {
            let used_bytes = core.account.used_bytes();
            match &self.round {
                None if used_bytes <= marks.high_bytes => return Next::SleepFor(INTERVAL),
                None => self.round = Some(self.begin_round(core, used_bytes)),
                Some(_) if used_bytes <= marks.low_bytes => {
                    self.round = None;
                    return Next::SleepFor(INTERVAL);
                }
                Some(round) if round.vbuckets_left == 0 => {
                    let is_in_vain = round.freed_count == 0;
                    self.round = None;
                    if is_in_vain {
                        return Next::SleepFor(PAUSE);
                    }
                }
                Some(_) => self.visit_portion(core, used_bytes - marks.low_bytes),
            }
            if core.clock.now() >= deadline {
                return Next::Again;
            }
        }
    }

    fn begin_round(&mut self, core: &BucketCore, used_bytes: u64) -> Round {
        let wanted_bytes = core.watermarks().bytes_to_page(used_bytes);
        let evictable = Evictable { replica_bytes: 0, active_bytes: core.account.items_bytes() };
        let ratio = PagingPlan::new(wanted_bytes, evictable).active_ratio;
        let sample = self.sample(core);
        self.tombstones = Place::default();
        core.counters.add(&core.counters.pager_rounds, 1);
        let has_room_in_tombstones =
            sample.tombstones_bytes > sample.documents_bytes / DOCUMENTS_BY_TOMBSTONES_MIN;
        Round {
            heat_max: sample.heat.percentile(ratio * 100.0).unwrap_or(u8::MAX),
            purges_left: if has_room_in_tombstones { core.slots.len() } else { 0 },
            // The one where the walk goes on comes twice, once for each end of it.
            vbuckets_left: core.slots.len() + 1,
            freed_count: 0,
        }
    }

    /// What there is at random places.
    fn sample(&mut self, core: &BucketCore) -> RoomSample {
        let mut sample = RoomSample::default();
        let portions_each = (SAMPLED_PORTIONS / core.slots.len()).max(1);
        let step = (core.slots.len() / SAMPLED_PORTIONS).max(1);
        for (_, slot) in core.slots().step_by(step) {
            for _ in 0..portions_each {
                let parts = u32::try_from(self.random.next_u64() >> 32).unwrap_or_default();
                let from = VisitPosition::inside(parts);
                if let Some(vbucket) = slot.lock().as_mut() {
                    vbucket.sample_room(from, PORTION_SLOTS_MAX, &mut sample);
                }
            }
        }
        sample
    }

    /// Deletes a portion of a vBucket's documents, or forgets one of its tombstones.
    fn visit_portion(&mut self, core: &BucketCore, bytes: u64) {
        let Some(round) = &mut self.round else { return };
        let is_purge = round.purges_left > 0;
        let place = if is_purge { &mut self.tombstones } else { &mut self.documents };
        let Place { vbid, position } = *place;
        let (now, effects) = (core.now(), &mut self.effects);
        let (next, freed_count) = match core.slot(vbid).map(VbucketSlot::lock).as_deref_mut() {
            Some(Some(vbucket)) if is_purge => {
                vbucket.purge_tombstones(position, PORTION_SLOTS_MAX, u32::MAX, effects)
            }
            Some(Some(vbucket)) => {
                let wanted = RoomWanted { heat_max: round.heat_max, bytes };
                vbucket.auto_delete_portion(position, PORTION_SLOTS_MAX, wanted, now, effects)
            }
            _ => (None, 0),
        };
        core.carry_out(vbid, effects);
        round.freed_count += freed_count;
        place.position = next.unwrap_or_default();
        if next.is_none() {
            place.vbid = Vbid((vbid.0 + 1) % core.config.vbucket_count);
            let left = if is_purge { &mut round.purges_left } else { &mut round.vbuckets_left };
            *left -= 1;
        }
    }
}
