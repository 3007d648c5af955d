//! Forgets old tombstones of an ephemeral bucket. Elsewhere they are on disk, and leave memory when
//! they are flushed.

use std::sync::OnceLock;
use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Revisit, Task, TaskContext, TaskHandle};
use executor::{TaskKind, TaskName, VbucketVisitor, VisitOrder, VisitTask};
use vbucket::{Effect, VisitPosition};

use crate::bucket::Bucket;
use crate::bucket_type::BucketType;

static PURGER: TaskName = TaskName::new("EphTombstoneHTCleaner", TaskKind::NonIo)
    .priority(7)
    .expected(Duration::from_millis(25));

/// Slots looked at while one vBucket's lock is held.
const PORTION_SLOTS_MAX: usize = 128;

/// The task, for whoever changes how often it runs.
#[derive(Default)]
pub(crate) struct PurgerHandle(OnceLock<TaskHandle>);

impl PurgerHandle {
    /// How often it runs has changed.
    pub(crate) fn snooze(&self, interval: Duration) {
        if let Some(task) = self.0.get() {
            task.snooze(interval);
        }
    }
}

/// Visits all vBuckets, sleeps, and begins again.
struct Purger {
    bucket: Bucket,
    /// `None` between rounds.
    round: Option<VisitTask<PurgeVisitor>>,
}

/// Goes through a portion of a vBucket a visit.
struct PurgeVisitor {
    bucket: Bucket,
    /// Where the current vBucket goes on.
    position: VisitPosition,
    /// Tombstones from before this second are purged.
    before_second: u32,
    effects: Vec<Effect>,
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    if bucket.bucket_type() != BucketType::Ephemeral {
        return Ok(());
    }
    let task = Purger { bucket: bucket.clone(), round: None };
    let handle = pool.schedule_asleep(bucket.0.owner(), &PURGER, task)?;
    handle.snooze(interval(bucket));
    bucket.0.purger.0.set(handle).expect("the purger starts once");
    Ok(())
}

/// Between two rounds: at least a second.
pub(crate) fn interval(bucket: &Bucket) -> Duration {
    Duration::from_secs(bucket.0.ephemeral.purge_interval_seconds().max(1))
}

impl Task for Purger {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let round = self.round.get_or_insert_with(|| begin_round(&self.bucket));
        match round.run(context) {
            Next::Finished => {
                self.round = None;
                Next::SleepFor(interval(&self.bucket))
            }
            next => next,
        }
    }

    fn describe(&self) -> Option<String> {
        self.round.as_ref()?.describe()
    }
}

fn begin_round(bucket: &Bucket) -> VisitTask<PurgeVisitor> {
    let core = &bucket.0;
    let age = u32::try_from(core.ephemeral.purge_age_seconds()).unwrap_or(u32::MAX);
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
        let Some(slot) = core.slot(vbid) else { return Revisit::No };
        let (from, second) = (self.position, self.before_second);
        let next = slot.lock().as_mut().and_then(|vbucket| {
            vbucket.purge_tombstones(from, PORTION_SLOTS_MAX, second, &mut self.effects)
        });
        core.carry_out(vbid, &mut self.effects);
        self.position = next.unwrap_or_default();
        if next.is_some() { Revisit::YesNow } else { Revisit::No }
    }
}
