//! Brings the checkpoints' memory back below its marks. Source: docs/specification/engine.md,
//! section 3.7.

use std::sync::atomic::Ordering;
use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext};
use executor::{TaskKind, TaskName};
use vbucket::{Effect, RecoveryStep};

use crate::core::{Bucket, BucketCore, VbucketSlot};

static RECOVERY: TaskName = TaskName::new("CheckpointMemRecoveryTask", TaskKind::NonIo)
    .priority(6)
    .expected(Duration::from_millis(50));

/// Pause before another try when nothing more could be recovered: then the flusher, or a stream,
/// has to get on first.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// What takes least from readers comes first.
const STEPS: [RecoveryStep; 3] =
    [RecoveryStep::CloseFullCheckpoint, RecoveryStep::Expel, RecoveryStep::DropSlowCursors];

struct RecoveryTask {
    bucket: Bucket,
}

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let task = RecoveryTask { bucket: bucket.clone() };
    let handle = pool.schedule_asleep(&bucket.0.background.owner, &RECOVERY, task)?;
    bucket.0.memory.checkpoint_recovery.task.set(handle.clone()).expect("the task starts once");
    // Only now: who crossed the mark before the task was known has woken nobody.
    handle.wake();
    Ok(())
}

impl Task for RecoveryTask {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        let core = &self.bucket.0;
        core.memory.checkpoint_recovery.runs.fetch_add(1, Ordering::Relaxed);
        // What is not flushed yet cannot leave the log.
        core.disk.hurry_flushes();
        let is_done = core.recover_checkpoint_memory();
        if is_done || context.is_shutting_down() {
            core.memory.checkpoint_recovery.is_recovering.store(false, Ordering::Relaxed);
            return Next::Sleep;
        }
        Next::SleepFor(RETRY_INTERVAL)
    }
}

impl BucketCore {
    /// Takes the steps, each over the vBuckets with the most memory first, until enough is on its
    /// way to be freed. Says whether it is.
    fn recover_checkpoint_memory(&self) -> bool {
        let mut effects = Vec::new();
        for step in STEPS {
            for vbid in self.vbuckets_by_checkpoint_memory() {
                if self.needed_checkpoint_reduction() == 0 {
                    return true;
                }
                self.take_recovery_step(vbid, step, &mut effects);
            }
        }
        self.needed_checkpoint_reduction() == 0
    }

    /// Has the log give back what it can, for a write that found no memory. Says whether anything
    /// is on its way.
    pub(crate) fn log_gives_memory_back(&self) -> bool {
        if self.needed_checkpoint_reduction() > 0 {
            self.memory.checkpoint_recovery.wake();
        }
        self.disk.hurry_flushes()
            || self.memory.checkpoint_recovery.is_recovering.load(Ordering::Relaxed)
            || self.memory.account.pending_destruction_bytes() > 0
    }

    fn take_recovery_step(&self, vbid: Vbid, step: RecoveryStep, effects: &mut Vec<Effect>) {
        let now = self.clock.now();
        let dropped_count = self
            .on_vbucket(vbid, effects, |vbucket, effects| {
                vbucket.recover_memory(step, now, effects)
            })
            .unwrap_or(0);
        let dropped_count = u64::try_from(dropped_count).unwrap_or(u64::MAX);
        self.memory.checkpoint_recovery.cursors_dropped.fetch_add(dropped_count, Ordering::Relaxed);
    }

    fn vbuckets_by_checkpoint_memory(&self) -> Vec<Vbid> {
        let bytes_of = |(vbid, slot): (Vbid, &VbucketSlot)| {
            let bytes = slot.lock().as_ref()?.checkpoints().extent().bytes();
            (bytes > 0).then_some((bytes, vbid))
        };
        let mut used: Vec<(usize, Vbid)> = self.slots().filter_map(bytes_of).collect();
        used.sort_unstable_by(|one, other| other.cmp(one));
        used.into_iter().map(|(_, vbid)| vbid).collect()
    }

    fn needed_checkpoint_reduction(&self) -> u64 {
        let (used, pending) = (
            self.memory.account.checkpoints_bytes(),
            self.memory.account.pending_destruction_bytes(),
        );
        self.memory.checkpoint_marks.needed_reduction(used, pending)
    }
}
