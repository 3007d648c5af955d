//! Halves all frequency counters when one of them is full, so that they stay comparable.

use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Revisit, Task, TaskContext, TaskKind, TaskName};
use executor::{VbucketVisitor, VisitOrder, VisitOutcome, VisitTask};
use vbucket::VisitPosition;

use crate::bucket::Bucket;

static DECAYER: TaskName = TaskName::new("ItemFreqDecayerTask", TaskKind::NonIo)
    .priority(7)
    .expected(Duration::from_millis(50));

/// Slots of a hash table that are gone through while its vBucket's lock is held.
const PORTION_SLOTS: usize = 1024;

struct FrequencyDecayer {
    bucket: Bucket,
    /// `None` between rounds.
    round: Option<VisitTask<DecayVisitor>>,
}

struct DecayVisitor {
    bucket: Bucket,
    position: VisitPosition,
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let task = FrequencyDecayer { bucket: bucket.clone(), round: None };
    bucket.0.decayer.set(pool.schedule_asleep(bucket.0.owner(), &DECAYER, task)?);
    Ok(())
}

impl Task for FrequencyDecayer {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let round = self.round.get_or_insert_with(|| begin_round(&self.bucket));
        match round.run(context) {
            Next::Finished => {
                self.round = None;
                Next::Sleep
            }
            next => next,
        }
    }

    fn describe(&self) -> Option<String> {
        self.round.as_ref()?.describe()
    }
}

fn begin_round(bucket: &Bucket) -> VisitTask<DecayVisitor> {
    let core = &bucket.0;
    let visitor = DecayVisitor { bucket: bucket.clone(), position: VisitPosition::default() };
    let order = VisitOrder::ascending(core.config.vbucket_count);
    VisitTask::new(core.clock.clone(), "Halving frequency counters", order, visitor)
}

impl VbucketVisitor for DecayVisitor {
    fn visit(&mut self, vbid: Vbid) -> Revisit {
        let core = &self.bucket.0;
        let percent = core.config.eviction.decay_percent;
        let next = core.slot(vbid).and_then(|slot| {
            slot.lock().as_mut()?.decay_frequencies(self.position, PORTION_SLOTS, percent)
        });
        self.position = next.unwrap_or_default();
        if next.is_some() { Revisit::YesNow } else { Revisit::No }
    }

    fn complete(&mut self, outcome: VisitOutcome) {
        if outcome == VisitOutcome::Finished {
            let counters = &self.bucket.0.counters;
            counters.add(&counters.decayer_rounds, 1);
        }
    }
}
