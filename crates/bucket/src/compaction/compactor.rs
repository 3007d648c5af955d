//! Compacts files: those that somebody wants compacted, and those of which too much is of no use.

use std::time::Duration;

use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext};
use executor::{TaskKind, TaskName};

use crate::core::Bucket;

static COMPACTOR: TaskName = TaskName::new("CompactVBucketTask", TaskKind::AuxIo)
    .priority(5)
    .expected(Duration::from_secs(25));

/// Compacts one file a run.
struct Compactor {
    bucket: Bucket,
}

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let core = &bucket.0;
    if !core.has_files() {
        return Ok(());
    }
    // Appliers are paced: twice as many of them leave no more garbage behind.
    let writers = core.config.apply.applier_count.div_ceil(2);
    let count = concurrency(
        pool.threads(TaskKind::Writer).normal.min(writers),
        pool.threads(TaskKind::AuxIo).normal,
        core.config.compaction_concurrency_ratio,
    );
    let mut compactors = Vec::with_capacity(count);
    for _ in 0..count {
        let task = Compactor { bucket: bucket.clone() };
        compactors.push(pool.schedule_asleep(&core.background.owner, &COMPACTOR, task)?);
    }
    assert!(core.compaction.tasks.compactors.set(compactors).is_ok(), "compactors start once");
    // What was ordered before there was anybody to do it.
    core.compaction.tasks.wake();
    Ok(())
}

/// Compactions that run at the same time (docs/specification/engine.md, section 4.8): a part of the
/// threads that make work for them, and never all that could do anything else.
fn concurrency(writers: usize, aux_io: usize, ratio: f64) -> usize {
    let wanted = (writers.min(aux_io) as f64 * ratio) as usize;
    wanted.clamp(1, aux_io.saturating_sub(1).max(1))
}

impl Task for Compactor {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let core = &self.bucket.0;
        match core.compaction.plan.begin(core.clock.now()) {
            Some(begun) => {
                core.compact(begun);
                Next::Again
            }
            None => Next::Sleep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compactions_leave_threads_for_others() {
        let cases = [
            ((1, 1), 1),
            ((2, 2), 1),
            ((4, 4), 2),
            ((4, 2), 1),
            ((8, 3), 1),
            ((16, 8), 4),
            ((64, 8), 4),
            ((0, 0), 1),
        ];
        for ((writers, aux_io), expected) in cases {
            assert_eq!(concurrency(writers, aux_io, 0.5), expected, "{writers}, {aux_io}");
        }
        assert_eq!(concurrency(8, 8, 1.0), 7);
    }
}
