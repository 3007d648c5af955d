//! Frees what has left the logs: elsewhere than on the way of a request.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext, TaskHandle};
use executor::{TaskKind, TaskName};
use vbucket::Destruction;

use crate::bucket::Bucket;

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

/// What waits to be freed, shared out over several tasks. Bounded by the checkpoints' quota, which
/// counts it until it is freed.
pub(crate) struct Destroyers {
    destroyers: Vec<Destroyer>,
    pub(crate) items_removed: AtomicU64,
    pub(crate) bytes_removed: AtomicU64,
}

#[derive(Default)]
struct Destroyer {
    waiting: Mutex<VecDeque<Destruction>>,
    task: OnceLock<TaskHandle>,
}

/// One of the tasks.
struct DestroyerTask {
    bucket: Bucket,
    index: usize,
}

impl Destroyers {
    pub(crate) fn new(count: usize) -> Self {
        Self {
            destroyers: std::iter::repeat_with(Destroyer::default).take(count.max(1)).collect(),
            items_removed: AtomicU64::new(0),
            bytes_removed: AtomicU64::new(0),
        }
    }

    /// Frees a little at once, and leaves much to the task of the vBucket.
    pub(crate) fn destroy(&self, vbid: Vbid, destruction: Destruction) {
        let add = |counter: &AtomicU64, count: usize| {
            counter.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
        };
        add(&self.items_removed, destruction.item_count());
        add(&self.bytes_removed, destruction.bytes());
        if !destruction.is_large() {
            drop(destruction);
            return;
        }
        let destroyer = &self.destroyers[usize::from(vbid.0) % self.destroyers.len()];
        let mut waiting = destroyer.lock();
        waiting.push_back(destruction);
        let is_first = waiting.len() == 1;
        drop(waiting);
        if is_first && let Some(task) = destroyer.task.get() {
            task.wake();
        }
    }
}

impl Destroyer {
    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Destruction>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    for (index, destroyer) in bucket.0.destroyers.destroyers.iter().enumerate() {
        let task = DestroyerTask { bucket: bucket.clone(), index };
        let handle = pool.schedule_asleep(bucket.0.owner(), &DESTROYER, task)?;
        destroyer.task.set(handle.clone()).expect("destroyers start once");
        // Only now: what was queued before the task was known has woken nobody.
        handle.wake();
    }
    Ok(())
}

impl Task for DestroyerTask {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        let core = &self.bucket.0;
        let destroyer = &core.destroyers.destroyers[self.index];
        let deadline = context.started().after(CHUNK_DURATION);
        while core.clock.now() < deadline {
            // The guard is gone before anything is freed.
            let next = destroyer.lock().pop_front();
            if next.is_none() {
                return Next::Sleep;
            }
        }
        let waiting_bytes = core.account.pending_destruction_bytes();
        if waiting_bytes > core.limits.quota_bytes() / WAITING_PART_MAX {
            return Next::Again;
        }
        Next::SleepFor(CHUNK_DURATION * CHUNKS_PER_PAUSE)
    }
}
