//! Deadlines of sleeping tasks.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use document::Map;
use platform::{Clock, Instant};

use crate::task_cell::{TaskCell, TaskId};

/// At most one deadline a task. Takes no other lock while it holds its own.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    state: Mutex<State>,
    /// The first deadline has become earlier, or the pool stops.
    changed: Condvar,
    /// How often the timer thread has returned from waiting.
    wakeups: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    by_time: BTreeMap<(Instant, TaskId), Arc<TaskCell>>,
    by_task: Map<TaskId, Instant>,
    is_stopping: bool,
}

/// What [`Timers::arm`] does with a deadline that the task has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// It is replaced.
    Replaced,
    /// It stays if it is the earlier one.
    Kept,
}

impl Timers {
    /// Wakes `task` at `deadline`.
    pub(crate) fn arm(&self, task: &Arc<TaskCell>, deadline: Instant, earlier: Earlier) {
        let mut state = self.lock();
        if let Some(&old) = state.by_task.get(&task.id()) {
            if earlier == Earlier::Kept && old <= deadline {
                return;
            }
            state.by_time.remove(&(old, task.id()));
        }
        state.by_task.insert(task.id(), deadline);
        state.by_time.insert((deadline, task.id()), task.clone());
        task.set_armed(true);
        let is_first = state.first_deadline() == Some(deadline);
        drop(state);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Forgets the deadline of `task`.
    pub(crate) fn disarm(&self, task: &TaskCell) {
        let mut state = self.lock();
        if let Some(deadline) = state.by_task.remove(&task.id()) {
            state.by_time.remove(&(deadline, task.id()));
            task.set_armed(false);
        }
    }

    /// The first deadline.
    pub(crate) fn first_deadline(&self) -> Option<Instant> {
        self.lock().first_deadline()
    }

    /// The tasks whose deadline is not later than `now`, earliest first.
    pub(crate) fn take_due(&self, now: Instant) -> Vec<Arc<TaskCell>> {
        self.lock().take_due(now)
    }

    /// The timer thread: wakes tasks at their deadlines until [`Timers::stop`].
    pub(crate) fn run(&self, clock: &Clock) {
        let mut state = self.lock();
        while !state.is_stopping {
            let now = clock.now();
            let due = state.take_due(now);
            if !due.is_empty() {
                drop(state);
                due.iter().for_each(TaskCell::wake);
                state = self.lock();
                continue;
            }
            state = match state.first_deadline() {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let wait = self.changed.wait_timeout(state, deadline.since(now));
                    wait.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            self.wakeups.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Ends the timer thread.
    pub(crate) fn stop(&self) {
        self.lock().is_stopping = true;
        self.changed.notify_all();
    }

    /// How many tasks have a deadline.
    pub(crate) fn len(&self) -> usize {
        self.lock().by_time.len()
    }

    /// How often the timer thread has returned from waiting.
    pub(crate) fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn first_deadline(&self) -> Option<Instant> {
        self.by_time.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    fn take_due(&mut self, now: Instant) -> Vec<Arc<TaskCell>> {
        let mut due = Vec::new();
        while self.first_deadline().is_some_and(|deadline| deadline <= now) {
            let Some(((_, id), task)) = self.by_time.pop_first() else { break };
            self.by_task.remove(&id);
            task.set_armed(false);
            due.push(task);
        }
        due
    }
}
