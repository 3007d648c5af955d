//! The tasks of one kind that wait for a thread.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::task::TaskClass;
use crate::task_cell::TaskCell;

/// So many quick tasks in a row may go ahead of a normal one that waits.
const QUICK_IN_A_ROW_MAX: u32 = 8;

/// A queue for each class, and the threads that wait for them.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    state: Mutex<State>,
    /// Wakes threads that run any task.
    normal_ready: Condvar,
    /// Wakes threads that run quick tasks only.
    quick_ready: Condvar,
    /// How often a thread has returned from waiting.
    wakeups: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    quick: VecDeque<Arc<TaskCell>>,
    normal: VecDeque<Arc<TaskCell>>,
    /// Quick tasks taken since the last normal one.
    quick_in_a_row: u32,
    waiting_for_any: Waiters,
    waiting_for_quick: Waiters,
    is_stopping: bool,
}

/// Threads inside a wait, and how many of them have been called but have not returned yet: a
/// second task must call a second thread, not the same one again.
#[derive(Debug, Default)]
struct Waiters {
    waiting: u32,
    called: u32,
}

impl Waiters {
    /// Whether a thread is left to be called, which is then counted as called.
    fn call(&mut self) -> bool {
        let free = self.waiting > self.called;
        self.called += u32::from(free);
        free
    }

    fn returned(&mut self) {
        self.waiting -= 1;
        self.called = self.called.saturating_sub(1);
    }
}

impl RunQueue {
    /// Adds a task and calls a thread when one waits.
    pub(crate) fn push(&self, task: Arc<TaskCell>) {
        let mut state = self.lock();
        assert!(!state.is_stopping, "all tasks have ended before their threads do");
        let class = task.name().class;
        match class {
            TaskClass::Quick => state.quick.push_back(task),
            TaskClass::Normal => state.normal.push_back(task),
        }
        let call_quick = class == TaskClass::Quick && state.waiting_for_quick.call();
        let call_any = !call_quick && state.waiting_for_any.call();
        drop(state);
        if call_quick {
            self.quick_ready.notify_one();
        } else if call_any {
            self.normal_ready.notify_one();
        }
    }

    /// The next task for a thread that serves `class`; waits until there is one. `None` once the
    /// queue has stopped.
    pub(crate) fn pop(&self, class: TaskClass) -> Option<Arc<TaskCell>> {
        let mut state = self.lock();
        loop {
            if state.is_stopping {
                return None;
            }
            if let Some(task) = state.take(class) {
                return Some(task);
            }
            state.waiters(class).waiting += 1;
            let ready = match class {
                TaskClass::Quick => &self.quick_ready,
                TaskClass::Normal => &self.normal_ready,
            };
            state = ready.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.waiters(class).returned();
            self.wakeups.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The next task, if there is one.
    pub(crate) fn try_pop(&self) -> Option<Arc<TaskCell>> {
        self.lock().take(TaskClass::Normal)
    }

    /// Lets all threads go. All tasks have ended by then.
    pub(crate) fn stop(&self) {
        self.lock().is_stopping = true;
        self.normal_ready.notify_all();
        self.quick_ready.notify_all();
    }

    /// How many tasks wait.
    pub(crate) fn len(&self) -> usize {
        let state = self.lock();
        state.quick.len() + state.normal.len()
    }

    /// How often a thread has returned from waiting.
    pub(crate) fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn waiters(&mut self, class: TaskClass) -> &mut Waiters {
        match class {
            TaskClass::Quick => &mut self.waiting_for_quick,
            TaskClass::Normal => &mut self.waiting_for_any,
        }
    }

    /// A quick task if there is one, but a waiting normal task gets its turn.
    fn take(&mut self, class: TaskClass) -> Option<Arc<TaskCell>> {
        if class == TaskClass::Quick {
            return self.quick.pop_front();
        }
        let normal_is_due = self.quick_in_a_row >= QUICK_IN_A_ROW_MAX && !self.normal.is_empty();
        if !normal_is_due && let Some(task) = self.quick.pop_front() {
            self.quick_in_a_row += 1;
            return Some(task);
        }
        self.quick_in_a_row = 0;
        self.normal.pop_front()
    }
}
