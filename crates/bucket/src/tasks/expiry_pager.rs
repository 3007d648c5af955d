//! Deletes documents whose time is over and that nobody reads.

use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Revisit, Task, TaskContext};
use executor::{TaskKind, TaskName, VbucketVisitor, VisitOrder, VisitOutcome, VisitTask};
use vbucket::{Effect, VisitPosition};

use crate::bucket::Bucket;
use crate::checkpoint_memory::CheckpointState;

static EXPIRY_PAGER: TaskName = TaskName::new("ExpiredItemPager", TaskKind::NonIo)
    .priority(1)
    .expected(Duration::from_millis(55));

/// Slots of a hash table that are gone through while its vBucket's lock is held.
const PORTION_SLOTS: usize = 128;

/// Visits all vBuckets, sleeps, and begins again.
struct ExpiryPager {
    bucket: Bucket,
    /// `None` between rounds.
    round: Option<VisitTask<ExpiryVisitor>>,
}

/// Deletes a portion of a vBucket's expired documents a visit.
struct ExpiryVisitor {
    bucket: Bucket,
    /// Where in the vBucket to go on.
    position: VisitPosition,
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
    let visitor = ExpiryVisitor {
        bucket: bucket.clone(),
        position: VisitPosition::default(),
        effects: Vec::new(),
    };
    let order = VisitOrder::ascending(core.config.vbucket_count);
    VisitTask::new(core.clock.clone(), "Deleting expired documents", order, visitor)
}

impl VbucketVisitor for ExpiryVisitor {
    fn visit(&mut self, vbid: Vbid) -> Revisit {
        let core = &self.bucket.0;
        let Some(slot) = core.slot(vbid) else { return Revisit::No };
        if core.checkpoint_state() == CheckpointState::Full {
            // Deletions enter the log, too. Another vBucket may be the next one.
            self.position = VisitPosition::default();
            return Revisit::YesLater;
        }
        let (from, now) = (self.position, core.now());
        let next = slot.lock().as_mut().and_then(|vbucket| {
            vbucket.delete_expired_portion(from, PORTION_SLOTS, now, &mut self.effects)
        });
        core.carry_out(vbid, &mut self.effects);
        self.position = next.unwrap_or_default();
        if next.is_some() { Revisit::YesNow } else { Revisit::No }
    }

    fn complete(&mut self, outcome: VisitOutcome) {
        if outcome == VisitOutcome::Finished {
            let counters = &self.bucket.0.counters;
            counters.add(&counters.expiry_pager_rounds, 1);
        }
    }
}
