//! Halves all frequency counters when one of them is full, so that they stay comparable.

use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Revisit, TaskKind, TaskName};
use executor::{VbucketVisitor, VisitOrder, VisitOutcome, VisitTask};
use vbucket::VisitPosition;

use super::rounds::Rounds;
use crate::core::Bucket;

static DECAYER: TaskName = TaskName::new("ItemFreqDecayerTask", TaskKind::NonIo)
    .priority(7)
    .expected(Duration::from_millis(50));

/// Slots of a hash table that are gone through while its vBucket's lock is held.
const PORTION_SLOTS: usize = 1024;

/// Halves the counters of a portion of a vBucket a visit.
struct DecayVisitor {
    bucket: Bucket,
    position: VisitPosition,
}

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let visited = bucket.clone();
    let task = Rounds::new(move || begin_round(&visited), || Next::Sleep);
    bucket.0.memory.decayer.set(pool.schedule_asleep(
        &bucket.0.background.owner,
        &DECAYER,
        task,
    )?);
    Ok(())
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
