//! The tasks of one kind: ready ones by priority, future ones by wake time, and sleeping workers.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use platform::{Clock, Instant};

use super::future_queue::FutureQueue;
use crate::pools::original_task::OriginalTask;

/// How long a worker sleeps at most before it looks for work by itself.
pub(super) const SLEEP_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct TaskQueue {
    /// The mutex of the queue; locked before that of the future tasks.
    state: Mutex<State>,
    work_arrived: Condvar,
    future: Mutex<FutureQueue>,
}

#[derive(Debug, Default)]
struct State {
    ready: BinaryHeap<Ready>,
    sleepers: usize,
    is_stopping: bool,
}

/// The most urgent task is the greatest: dead ones, then by priority, then the longest due.
#[derive(Debug)]
struct Ready(Arc<OriginalTask>);

impl TaskQueue {
    pub(super) fn schedule(&self, task: Arc<OriginalTask>) {
        let state = self.state();
        self.future().push(task);
        self.wake_one(&state);
    }

    /// Lets a task run now; one that runs at the moment will see it when it is rescheduled.
    pub(super) fn wake(&self, task: &Arc<OriginalTask>, now: Instant) {
        let state = self.state();
        self.future().update(task, now);
        self.wake_one(&state);
    }

    /// Lets a task run at `wake_time`.
    pub(super) fn snooze(&self, task: &Arc<OriginalTask>, wake_time: Instant) {
        self.future().update(task, wake_time);
    }

    /// Puts a task back that has run and stays.
    pub(super) fn reschedule(&self, task: Arc<OriginalTask>, now: Instant) {
        let _state = self.state();
        let mut future = self.future();
        task.wake_not_before(now);
        future.push(task);
    }

    /// The next task to run; waits for one. None once the queue has been stopped.
    pub(super) fn fetch(&self, clock: &Clock) -> Option<Arc<OriginalTask>> {
        let mut state = self.state();
        loop {
            if state.is_stopping {
                return None;
            }
            let now = clock.now();
            if state.ready.is_empty() {
                self.move_due(&mut state, now);
            }
            if let Some(Ready(task)) = state.ready.pop() {
                return Some(task);
            }
            let next = self.future().next_wake_time();
            let sleep = next.map_or(SLEEP_MAX, |at| at.since(now).min(SLEEP_MAX));
            state.sleepers += 1;
            let woken = self.work_arrived.wait_timeout(state, sleep);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            state.sleepers -= 1;
        }
    }

    /// Makes all due tasks ready, and wakes a worker for each but the first.
    fn move_due(&self, state: &mut State, now: Instant) {
        let mut future = self.future();
        while let Some(task) = future.pop_due(now) {
            state.ready.push(Ready(task));
        }
        drop(future);
        for _ in 1..state.ready.len() {
            self.wake_one(state);
        }
    }

    fn wake_one(&self, state: &State) {
        if state.sleepers > 0 {
            self.work_arrived.notify_one();
        }
    }

    pub(super) fn stop(&self) {
        self.state().is_stopping = true;
        self.work_arrived.notify_all();
    }

    pub(super) fn clear(&self) {
        self.state().ready.clear();
        self.future().clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn future(&self) -> MutexGuard<'_, FutureQueue> {
        self.future.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ord for Ready {
    fn cmp(&self, other: &Self) -> Ordering {
        let urgency = |ready: &Self| (!ready.0.is_dead(), ready.0.priority, ready.0.wake_time());
        urgency(other).cmp(&urgency(self))
    }
}

impl PartialOrd for Ready {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ready {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ready {}
