//! Trying again what is left of a map: a thread that sleeps as long as nothing is.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Membership;

/// The first pause: a full journal has room again in a moment.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest one: each is twice as long as the one before.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// When it is time to try again.
pub(super) struct Retries {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Counts the maps: a newer one ends the pause of the one before.
    map_number: u64,
    is_needed: bool,
    pause: Duration,
    is_stopping: bool,
}

impl Retries {
    pub(super) fn new() -> Self {
        let state = State { map_number: 0, is_needed: false, pause: PAUSE_MIN, is_stopping: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// A map was carried out, and something of it is left, or not.
    pub(super) fn begin(&self, is_needed: bool) {
        let mut state = self.lock();
        state.map_number += 1;
        state.is_needed = is_needed;
        state.pause = PAUSE_MIN;
        drop(state);
        self.changed.notify_all();
    }

    /// It was tried again. What advances is tried again soon.
    pub(super) fn tried(&self, is_needed: bool, has_advanced: bool) {
        let mut state = self.lock();
        state.is_needed = is_needed;
        if has_advanced {
            state.pause = PAUSE_MIN;
        }
    }

    /// Waits until it is time; `false` when there is no more to do.
    fn wait(&self) -> bool {
        let mut state = self.lock();
        loop {
            if state.is_stopping {
                return false;
            }
            if !state.is_needed {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let (number, pause) = (state.map_number, state.pause);
            let is_same = |state: &mut State| !state.is_stopping && state.map_number == number;
            let waited = self.changed.wait_timeout_while(state, pause, is_same);
            let (after, waited) = waited.unwrap_or_else(PoisonError::into_inner);
            state = after;
            if waited.timed_out() {
                state.pause = (pause * 2).min(PAUSE_MAX);
                return true;
            }
        }
    }

    fn stop(&self) {
        self.lock().is_stopping = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread that tries again.
pub(crate) struct RetryThread {
    membership: Arc<Membership>,
    thread: JoinHandle<()>,
}

impl RetryThread {
    pub(crate) fn start(membership: &Arc<Membership>) -> io::Result<Self> {
        let membership = Arc::clone(membership);
        let own = Arc::clone(&membership);
        let body = move || {
            while own.retries.wait() {
                own.try_again();
            }
        };
        Ok(Self { membership, thread: platform::threads::spawn("MapRetry", body)? })
    }

    /// Ends it: what is left is left.
    pub(crate) fn stop(self) {
        self.membership.retries.stop();
        if self.thread.join().is_err() {
            tracing::error!("the thread that tries maps again has panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_begin_anew_with_what_advances_and_with_a_newer_map() {
        let retries = Retries::new();
        let pause = || retries.lock().pause;
        retries.begin(true);
        assert!(retries.wait());
        retries.tried(true, false);
        assert_eq!(pause(), PAUSE_MIN * 2);
        retries.tried(true, true);
        assert_eq!(pause(), PAUSE_MIN);
        assert!(retries.wait());
        retries.begin(true);
        assert_eq!(pause(), PAUSE_MIN, "a newer map");
        retries.stop();
        assert!(!retries.wait(), "a stop ends it");
    }
}
