//! Deletes documents whose time is over and that nobody reads.

use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Revisit, Task, TaskContext};
use executor::{TaskKind, TaskName, VbucketVisitor, VisitOrder, VisitOutcome, VisitTask};
use vbucket::Effect;

use crate::bucket::Bucket;

static EXPIRY_PAGER: TaskName = TaskName::new("ExpiredItemPager", TaskKind::NonIo)
    .priority(1)
    .expected(Duration::from_millis(55));

/// Documents deleted while one vBucket's lock is held.
const PORTION_MAX: usize = 100;

/// Visits all vBuckets, sleeps, and begins again.
struct ExpiryPager {
    bucket: Bucket,
    /// `None` between rounds.
    round: Option<VisitTask<ExpiryVisitor>>,
}

/// Deletes a portion of a vBucket's expired documents a visit.
struct ExpiryVisitor {
    bucket: Bucket,
    effects: Vec<Effect>,
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let task = ExpiryPager { bucket: bucket.clone(), round: None };
    let handle = pool.schedule_asleep(bucket.0.owner(), &EXPIRY_PAGER, task)?;
    handle.snooze(bucket.0.config.expiry_pager_interval);
    Ok(())
}

impl Task for ExpiryPager {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let round = self.round.get_or_insert_with(|| begin_round(&self.bucket));
        match round.run(context) {
            Next::Finished => {
                self.round = None;
                Next::SleepFor(self.bucket.0.config.expiry_pager_interval)
            }
            next => next,
        }
    }

    fn describe(&self) -> Option<String> {
        self.round.as_ref()?.describe()
    }
}

fn begin_round(bucket: &Bucket) -> VisitTask<ExpiryVisitor> {
    let core = &bucket.0;
    let visitor = ExpiryVisitor { bucket: bucket.clone(), effects: Vec::new() };
    let order = VisitOrder::ascending(core.config.vbucket_count);
    VisitTask::new(core.clock.clone(), "Deleting expired documents", order, visitor)
}

impl VbucketVisitor for ExpiryVisitor {
    fn visit(&mut self, vbid: Vbid) -> Revisit {
        let core = &self.bucket.0;
        let Some(slot) = core.slot(vbid) else { return Revisit::No };
        let now = core.now();
        let count = match slot.lock().as_mut() {
            Some(vbucket) => vbucket.delete_all_expired(PORTION_MAX, now, &mut self.effects),
            None => 0,
        };
        core.carry_out(vbid, &mut self.effects);
        if count < PORTION_MAX { Revisit::No } else { Revisit::YesNow }
    }

    fn complete(&mut self, outcome: VisitOutcome) {
        if outcome == VisitOutcome::Finished {
            let counters = &self.bucket.0.counters;
            counters.add(&counters.expiry_pager_rounds, 1);
        }
    }
}
