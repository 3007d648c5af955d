//! What has left the logs and waits to be freed, elsewhere than on the way of a request.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use document::Vbid;
use executor::TaskHandle;
use vbucket::Destruction;

/// What waits to be freed, shared out over several tasks. Bounded by the checkpoints' quota, which
/// counts it until it is freed.
pub(crate) struct Destroyers {
    pub(super) destroyers: Vec<Destroyer>,
    pub(crate) items_removed: AtomicU64,
    pub(crate) bytes_removed: AtomicU64,
}

#[derive(Default)]
pub(super) struct Destroyer {
    waiting: Mutex<VecDeque<Destruction>>,
    pub(super) task: OnceLock<TaskHandle>,
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
        // A task that has more to do comes back by itself.
        let is_first = waiting.len() == 1;
        drop(waiting);
        if is_first && let Some(task) = destroyer.task.get() {
            task.wake();
        }
    }
}

impl Destroyer {
    pub(super) fn lock(&self) -> MutexGuard<'_, VecDeque<Destruction>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
