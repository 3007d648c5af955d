//! Frees what has left the logs: elsewhere than on the way of a request.

use std::time::Duration;

use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext};
use executor::{TaskKind, TaskName};

use platform::allocator;

use crate::core::Bucket;

static DESTROYER: TaskName = TaskName::new("CheckpointDestroyerTask", TaskKind::NonIo)
    .priority(6)
    .expected(Duration::from_millis(5));

/// How long a run frees before others get the CPU.
const CHUNK_DURATION: Duration = Duration::from_micros(500);

/// How many times as long as it ran it pauses while there is room: the first writes after a load
/// free most of what it left, and share their CPUs with whoever frees it.
const CHUNKS_PER_PAUSE: u32 = 4;

/// The part of the bucket's memory that may wait to be freed while clients have the CPU.
const WAITING_PART_MAX: u64 = 32;

/// One of the tasks.
struct DestroyerTask {
    bucket: Bucket,
    index: usize,
}

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    for (index, destroyer) in bucket.0.memory.destroyers.destroyers.iter().enumerate() {
        let task = DestroyerTask { bucket: bucket.clone(), index };
        let handle = pool.schedule_asleep(&bucket.0.background.owner, &DESTROYER, task)?;
        destroyer.task.set(handle.clone()).expect("destroyers start once");
        // Only now: what was queued before the task was known has woken nobody.
        handle.wake();
    }
    Ok(())
}

impl Task for DestroyerTask {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        let core = &self.bucket.0;
        core.memory.account.publish_structure();
        allocator::bound_kept();
        let destroyer = &core.memory.destroyers.destroyers[self.index];
        let deadline = context.started().after(CHUNK_DURATION);
        while core.clock.now() < deadline {
            // The guard is gone before anything is freed.
            let next = destroyer.lock().pop_front();
            if next.is_none() {
                return Next::Sleep;
            }
        }
        let waiting_bytes = core.memory.account.pending_destruction_bytes();
        if waiting_bytes > core.memory.limits.quota_bytes() / WAITING_PART_MAX {
            return Next::Again;
        }
        Next::SleepFor(CHUNK_DURATION * CHUNKS_PER_PAUSE)
    }
}
