//! Erases the documents of dropped collections: from memory portion by portion, and from the files
//! by having those compacted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Revisit};
use executor::{TaskKind, TaskName, VbucketVisitor, VisitOrder, VisitTask};
use vbucket::{Effect, Erasure, VisitPosition};

use crate::core::Bucket;
use crate::memory::Rounds;

static ERASER: TaskName = TaskName::new("CollectionEraser", TaskKind::NonIo)
    .priority(7)
    .expected(Duration::from_millis(25));

/// Slots looked at while one vBucket's lock is held.
const PORTION_SLOTS_MAX: usize = 128;

/// From a round that has found drops which are not durable yet to the next one.
const DURABLE_PAUSE: Duration = Duration::from_millis(100);

/// Goes through a portion of a vBucket a visit.
struct EraseVisitor {
    bucket: Bucket,
    /// Whether there are vBuckets whose drops are to become durable: another round has to come for
    /// these. This one ends without them, or all the others would wait as long with what is dropped
    /// meanwhile, behind a file that nobody can write perhaps for ever.
    is_awaited: Arc<AtomicBool>,
    position: VisitPosition,
    effects: Vec<Effect>,
}

/// Starts the task, which sleeps until a collection is dropped.
pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let (visited, resting) = (bucket.clone(), bucket.clone());
    let is_awaited = Arc::new(AtomicBool::new(false));
    let is_still_awaited = Arc::clone(&is_awaited);
    let rest = move || match resting.0.manifest.is_erasure_due() {
        true => Next::Again,
        false if is_still_awaited.load(Ordering::Relaxed) => Next::SleepFor(DURABLE_PAUSE),
        false => Next::Sleep,
    };
    let task = Rounds::new(move || begin_round(&visited, &is_awaited), rest);
    let handle = pool.schedule_asleep(&bucket.0.background.owner, &ERASER, task)?;
    bucket.0.manifest.eraser.set(handle);
    Ok(())
}

fn begin_round(bucket: &Bucket, is_awaited: &Arc<AtomicBool>) -> VisitTask<EraseVisitor> {
    let core = &bucket.0;
    is_awaited.store(false, Ordering::Relaxed);
    // Before the walk begins: a drop that it has passed already asks for another one.
    core.manifest.begin_erasure();
    let visitor = EraseVisitor {
        bucket: bucket.clone(),
        is_awaited: Arc::clone(is_awaited),
        position: VisitPosition::default(),
        effects: Vec::new(),
    };
    let order = VisitOrder::ascending(core.config.vbucket_count);
    VisitTask::new(core.clock.clone(), "Erasing dropped collections", order, visitor)
}

impl VbucketVisitor for EraseVisitor {
    fn visit(&mut self, vbid: Vbid) -> Revisit {
        let core = &self.bucket.0;
        let from = self.position;
        let erasure = core.on_vbucket(vbid, &mut self.effects, |vbucket, effects| {
            vbucket.erase_dropped(from, PORTION_SLOTS_MAX, effects)
        });
        self.position = VisitPosition::default();
        match erasure {
            Ok(Erasure::GoesOn(next)) => {
                self.position = next;
                return Revisit::YesNow;
            }
            // The drop is durable soon, or never.
            Ok(Erasure::Waits(_)) => {
                if !core.file_is_damaged(vbid) {
                    self.is_awaited.store(true, Ordering::Relaxed);
                }
            }
            Ok(Erasure::Done) => core.compact_behind_drop(vbid),
            Ok(Erasure::Nothing) | Err(_) => {}
        }
        Revisit::No
    }
}
