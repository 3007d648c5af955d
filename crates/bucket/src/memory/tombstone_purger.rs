//! Forgets old tombstones of an ephemeral bucket. Elsewhere they are on disk, and leave memory when
//! they are flushed.

use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Revisit};
use executor::{TaskKind, TaskName, VbucketVisitor, VisitOrder, VisitTask};
use vbucket::{Effect, VisitPosition};

use super::rounds::Rounds;
use crate::core::Bucket;

static PURGER: TaskName = TaskName::new("EphTombstoneHTCleaner", TaskKind::NonIo)
    .priority(7)
    .expected(Duration::from_millis(25));

/// Slots looked at while one vBucket's lock is held.
const PORTION_SLOTS_MAX: usize = 128;

/// Goes through a portion of a vBucket a visit.
struct PurgeVisitor {
    bucket: Bucket,
    /// Where the current vBucket goes on.
    position: VisitPosition,
    /// Tombstones from before this second are purged.
    before_second: u32,
    effects: Vec<Effect>,
}

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let core = &bucket.0;
    if core.has_files() {
        return Ok(());
    }
    let (visited, resting) = (bucket.clone(), bucket.clone());
    let rest = move || Next::SleepFor(resting.0.memory.ephemeral.purge_interval());
    let task = Rounds::new(move || begin_round(&visited), rest);
    let handle = pool.schedule_asleep(&core.background.owner, &PURGER, task)?;
    handle.snooze(core.memory.ephemeral.purge_interval());
    core.memory.purger.set(handle);
    Ok(())
}

fn begin_round(bucket: &Bucket) -> VisitTask<PurgeVisitor> {
    let core = &bucket.0;
    let age = u32::try_from(core.memory.ephemeral.purge_age_seconds()).unwrap_or(u32::MAX);
    // At an age of 0 those of this second go, too.
    let before_second = core.now().wall.seconds().saturating_sub(age).saturating_add(1);
    let visitor = PurgeVisitor {
        bucket: bucket.clone(),
        position: VisitPosition::default(),
        before_second,
        effects: Vec::new(),
    };
    let order = VisitOrder::ascending(core.config.vbucket_count);
    VisitTask::new(core.clock.clone(), "Purging tombstones", order, visitor)
        .time_slice(core.config.ephemeral_metadata_purge_chunk_duration)
}

impl VbucketVisitor for PurgeVisitor {
    fn visit(&mut self, vbid: Vbid) -> Revisit {
        let core = &self.bucket.0;
        let (from, second) = (self.position, self.before_second);
        let next = core.on_vbucket(vbid, &mut self.effects, |vbucket, effects| {
            vbucket.purge_tombstones(from, PORTION_SLOTS_MAX, second, effects)
        });
        let next = next.ok().flatten();
        self.position = next.unwrap_or_default();
        if next.is_some() {
            return Revisit::YesNow;
        }
        while self.purge_events(vbid) {}
        Revisit::No
    }
}

impl PurgeVisitor {
    /// Forgets a portion of what was dropped long ago. Whether there may be more.
    fn purge_events(&mut self, vbid: Vbid) -> bool {
        let second = self.before_second;
        let more = self.bucket.0.on_vbucket(vbid, &mut self.effects, |vbucket, effects| {
            vbucket.purge_events(second, effects)
        });
        more.unwrap_or(false)
    }
}
