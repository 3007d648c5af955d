//! Deletes documents whose time is over and that nobody reads.

use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Revisit};
use executor::{TaskKind, TaskName, VbucketVisitor, VisitOrder, VisitOutcome, VisitTask};
use vbucket::{Effect, VisitPosition};

use super::checkpoint_memory::CheckpointState;
use super::rounds::Rounds;
use crate::core::Bucket;

static EXPIRY_PAGER: TaskName = TaskName::new("ExpiredItemPager", TaskKind::NonIo)
    .priority(1)
    .expected(Duration::from_millis(55));

/// Slots of a hash table that are gone through while its vBucket's lock is held.
const PORTION_SLOTS: usize = 128;

/// Deletes a portion of a vBucket's expired documents a visit.
struct ExpiryVisitor {
    bucket: Bucket,
    /// Where in the vBucket to go on.
    position: VisitPosition,
    effects: Vec<Effect>,
}

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let (visited, resting) = (bucket.clone(), bucket.clone());
    let rest = move || Next::SleepFor(resting.0.memory.expiry_pace.interval());
    let task = Rounds::new(move || begin_round(&visited), rest);
    let handle = pool.schedule_asleep(&bucket.0.background.owner, &EXPIRY_PAGER, task)?;
    bucket.0.memory.expiry_pace.set_task(handle);
    Ok(())
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
        if core.checkpoint_state() == CheckpointState::Full {
            // Deletions enter the log, too. Another vBucket may be the next one.
            self.position = VisitPosition::default();
            return Revisit::YesLater;
        }
        let (from, now) = (self.position, core.now());
        let next = core.on_vbucket(vbid, &mut self.effects, |vbucket, effects| {
            vbucket.delete_expired_portion(from, PORTION_SLOTS, now, effects)
        });
        let next = next.ok().flatten();
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
