//! Closures on their way to the scheduler thread, the one thread that may touch its state.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::scheduler::Scheduler;
use crate::baton::{Baton, Waiting};

/// Something that the scheduler thread does.
pub(super) type Event = Box<dyn FnOnce(&mut Scheduler) + Send>;

#[derive(Debug, Default)]
pub(super) struct Inbox {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    events: Vec<Event>,
    is_asleep: bool,
    is_stopping: bool,
}

thread_local! {
    /// For the calls of this thread that wait; one at a time.
    static CALL: &'static Baton = Baton::for_this_thread();
}

impl Inbox {
    /// Hands `event` to the scheduler thread.
    pub(super) fn post(&self, event: impl FnOnce(&mut Scheduler) + Send + 'static) {
        let event = Box::new(event);
        let mut state = self.lock();
        state.events.push(event);
        let wakes = std::mem::take(&mut state.is_asleep);
        drop(state);
        if wakes {
            self.arrived.notify_one();
        }
    }

    /// Hands `event` to the scheduler thread and waits until it is done, spinning as Folly does.
    pub(super) fn post_and_wait(&self, event: impl FnOnce(&mut Scheduler) + Send + 'static) {
        CALL.with(|&baton| {
            self.post(move |scheduler| {
                event(scheduler);
                baton.post();
            });
            baton.wait(Waiting::Spin);
        });
    }

    /// Ends the scheduler thread when it has done what was posted.
    pub(super) fn stop(&self) {
        self.lock().is_stopping = true;
        self.arrived.notify_one();
    }

    /// Takes all events into `batch`, which is empty; waits for one, at most for `timeout`. False
    /// once there are none and will be none.
    pub(super) fn take(&self, batch: &mut Vec<Event>, timeout: Option<Duration>) -> bool {
        let mut state = self.lock();
        if state.events.is_empty() && !state.is_stopping {
            state.is_asleep = true;
            state = match timeout {
                None => self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let woken = self.arrived.wait_timeout(state, timeout);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.is_asleep = false;
        }
        std::mem::swap(&mut state.events, batch);
        !(batch.is_empty() && state.is_stopping)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("State").field("events", &self.events.len()).finish_non_exhaustive()
    }
}
