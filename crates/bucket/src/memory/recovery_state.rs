//! What others know of the recovery of the checkpoints' memory.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use executor::TaskHandle;

/// Wakes the task, once until it has done its work.
#[derive(Default)]
pub(crate) struct CheckpointRecovery {
    pub(super) task: OnceLock<TaskHandle>,
    /// Woken, and above the lower mark since.
    pub(super) is_recovering: AtomicBool,
    pub(crate) runs: AtomicU64,
    pub(crate) cursors_dropped: AtomicU64,
}

impl CheckpointRecovery {
    /// The upper mark is crossed.
    pub(crate) fn wake(&self) {
        if !self.is_recovering.load(Ordering::Relaxed)
            && !self.is_recovering.swap(true, Ordering::Relaxed)
            && let Some(task) = self.task.get()
        {
            task.wake();
        }
    }
}
