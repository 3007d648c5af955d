//! Owners: for whom tasks run, and how all of them are ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::pool::PoolCore;
use crate::task_cell::{TaskCell, TaskId};

/// How [`Owner::unregister`] ends the tasks that are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// Every task runs at least once more, and on until it answers anything but
    /// [`crate::Next::Again`]; then it is destroyed.
    Drain,
    /// No further run begins.
    Force,
}

/// The owner has been unregistered, or its pool has been shut down: the task was refused and is
/// destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerIsGone;

impl std::fmt::Display for OwnerIsGone {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the owner of the task has been unregistered")
    }
}

impl std::error::Error for OwnerIsGone {}

/// Somebody for whom tasks run: a bucket, or the node itself. A handle: clones are the same owner.
#[derive(Clone, Debug)]
pub struct Owner {
    pub(crate) core: Arc<OwnerCore>,
    pub(crate) pool: Arc<PoolCore>,
}

impl Owner {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.core.name
    }

    /// How many of its tasks have not been destroyed yet.
    pub fn task_count(&self) -> usize {
        self.core.lock().tasks.len()
    }

    /// Refuses further tasks, ends those that are left and waits until the last one has been
    /// destroyed. A task must not unregister its own owner: it would wait for itself.
    pub fn unregister(&self, shutdown: Shutdown) {
        self.core.end_tasks(shutdown);
        self.pool.wait_until_destroyed(&self.core);
    }
}

/// The shared part of an [`Owner`].
#[derive(Debug)]
pub(crate) struct OwnerCore {
    name: String,
    state: Mutex<State>,
    /// The last task has been destroyed.
    is_empty: Condvar,
}

#[derive(Debug, Default)]
struct State {
    shutdown: Option<Shutdown>,
    /// All tasks that have not been destroyed.
    tasks: BTreeMap<TaskId, Arc<TaskCell>>,
}

impl OwnerCore {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), state: Mutex::default(), is_empty: Condvar::new() }
    }

    /// Counts `task` in, unless the owner is gone.
    pub(crate) fn insert(&self, task: &Arc<TaskCell>) -> Result<(), OwnerIsGone> {
        let mut state = self.lock();
        if state.shutdown.is_some() {
            return Err(OwnerIsGone);
        }
        state.tasks.insert(task.id(), task.clone());
        Ok(())
    }

    /// Counts a destroyed task out.
    pub(crate) fn remove(&self, id: TaskId) {
        let mut state = self.lock();
        let removed = state.tasks.remove(&id);
        let is_empty = state.tasks.is_empty();
        drop(state);
        assert!(removed.is_some(), "a task is destroyed once");
        if is_empty {
            self.is_empty.notify_all();
        }
    }

    /// Whether tasks end after their next run.
    pub(crate) fn is_draining(&self) -> bool {
        self.lock().shutdown == Some(Shutdown::Drain)
    }

    /// Refuses further tasks and sees to it that those which are left end soon.
    pub(crate) fn end_tasks(&self, shutdown: Shutdown) {
        let mut state = self.lock();
        // Force stays force: a drain that comes later has nothing to run.
        if state.shutdown != Some(Shutdown::Force) {
            state.shutdown = Some(shutdown);
        }
        let tasks: Vec<_> = state.tasks.values().cloned().collect();
        drop(state);
        for task in tasks {
            match shutdown {
                Shutdown::Drain => task.wake(),
                Shutdown::Force => {
                    task.cancel();
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().tasks.is_empty()
    }

    /// Waits until the last task has been destroyed.
    pub(crate) fn wait_until_empty(&self) {
        let mut state = self.lock();
        while !state.tasks.is_empty() {
            state = self.is_empty.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
