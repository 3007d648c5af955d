//! Owners: for whom tasks run, and how all of them are ended.

pub(crate) mod core;
pub(crate) mod terms;

use std::sync::Arc;

use crate::owner::core::OwnerCore;
use crate::owner::terms::Shutdown;
use crate::pool_core::PoolCore;
use crate::statistics::{TaskStatisticsSnapshot, TaskStatus};
use crate::task::kind::TaskKind;
use crate::threads::work::process;

/// Somebody for whom tasks run: a bucket, or the node itself. A handle: clones are the same owner.
#[derive(Clone, Debug)]
pub struct Owner {
    pub(crate) core: Arc<OwnerCore>,
}

impl Owner {
    /// Its name.
    pub fn name(&self) -> &str {
        self.core.name()
    }

    /// How many of its tasks have not been destroyed yet.
    pub fn task_count(&self) -> usize {
        self.core.task_count() as usize
    }

    /// What its tasks have done, by name.
    pub fn statistics(&self) -> Vec<TaskStatisticsSnapshot> {
        self.core.statistics()
    }

    /// Its tasks: those that have slept, and those that wait for a thread. One that is in its first
    /// run is not among them.
    pub fn tasks(&self) -> Vec<TaskStatus> {
        self.core.tasks()
    }

    /// Refuses further tasks, ends those that are left and waits until the last one has been
    /// destroyed. Tasks that do not run any more are destroyed on the calling thread, so that
    /// nobody waits for workers that are busy with tasks of others. A task must not unregister its
    /// own owner: it would wait for itself.
    pub fn unregister(&self, shutdown: Shutdown) {
        self.core.end_tasks(shutdown);
        let pool = self.core.pool();
        wait_until_empty(pool, &self.core);
        pool.resume_panic();
    }
}

/// Waits until the last task of `owner` has been destroyed; its tasks must be ending already.
pub(crate) fn wait_until_empty(pool: &PoolCore, owner: &OwnerCore) {
    if pool.has_threads {
        owner.wait_until_empty();
    } else {
        run_until_empty(pool, owner);
    }
}

/// Without threads nobody else ends the tasks of `owner`.
fn run_until_empty(pool: &PoolCore, owner: &OwnerCore) {
    while !owner.is_empty() {
        let task = TaskKind::ALL.iter().find_map(|&kind| pool.queue(kind).try_pop());
        process(task.expect("a task that ends is in a queue"), pool.clock.now());
    }
}
