//! Trying again what is left of a map: a loop that sleeps as long as nothing is.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use executor::{LoopHandle, Looping};
use platform::network::{Poll, Readiness, Token, Waker};
use platform::{Clock, Instant};

use super::Membership;
use crate::world::World;

/// The first pause: a full journal has room again in a moment.
const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest one: each is twice as long as the one before.
const PAUSE_MAX: Duration = Duration::from_secs(5);
const WAKER: Token = Token(0);

const _: () = assert!(PAUSE_MIN.as_nanos() < PAUSE_MAX.as_nanos());

/// When it is time to try again.
pub(super) struct Retries {
    clock: Clock,
    state: Mutex<State>,
    /// Wakes the loop, once there is one.
    waker: OnceLock<Waker>,
    is_stopping: AtomicBool,
}

struct State {
    /// When to try; `None` while nothing is left, or while it is tried.
    due: Option<Instant>,
    pause: Duration,
}

impl Retries {
    pub(super) fn new(clock: Clock) -> Self {
        let state = Mutex::new(State { due: None, pause: PAUSE_MIN });
        Self { clock, state, waker: OnceLock::new(), is_stopping: AtomicBool::new(false) }
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// A map was carried out, and something of it is left, or not.
    pub(super) fn begin(&self, is_needed: bool) {
        let due = is_needed.then(|| self.clock.now().after(PAUSE_MIN));
        *self.lock() = State { due, pause: PAUSE_MIN };
        self.wake();
    }

    /// It was tried again. What advances is tried again soon; a newer map has said when already.
    pub(super) fn tried(&self, is_needed: bool, has_advanced: bool) {
        let mut state = self.lock();
        if has_advanced {
            state.pause = PAUSE_MIN;
        }
        if state.due.is_none() && is_needed {
            state.due = Some(self.clock.now().after(state.pause));
        }
    }

    /// Whether it is time. The next pause is longer.
    fn take_due(&self) -> bool {
        let mut state = self.lock();
        let is_due = state.due.is_some_and(|due| due <= self.clock.now());
        if is_due {
            // While it is tried nothing is due: a map that is carried out meanwhile says when, and
            // is not undone.
            state.due = None;
            let is_bounded = (PAUSE_MIN..=PAUSE_MAX).contains(&state.pause);
            assert!(is_bounded, "a pause is as long as pauses are: {:?}", state.pause);
            state.pause = (state.pause * 2).min(PAUSE_MAX);
        }
        is_due
    }

    /// How long until it is.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.lock().due.map(|due| due.since(self.clock.now()))
    }

    /// Whether the node stops.
    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    pub(super) fn stop(&self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The loop that tries again.
struct RetryLoop {
    membership: Arc<Membership>,
    poll: Poll,
}

impl Looping for RetryLoop {
    fn poll(&mut self) -> &mut Poll {
        &mut self.poll
    }

    fn patience(&mut self) -> Option<Duration> {
        self.membership.retries.patience()
    }

    fn serve(&mut self, _ready: &[Readiness]) {
        if !self.is_over() && self.membership.retries.take_due() {
            self.membership.try_again();
        }
    }

    fn is_over(&self) -> bool {
        self.membership.retries.is_stopping()
    }
}

/// The running loop.
pub(crate) struct RunningRetries {
    membership: Arc<Membership>,
    running: LoopHandle,
}

impl RunningRetries {
    /// Starts the loop of a membership, which has none yet.
    pub(crate) fn start(membership: &Arc<Membership>, world: &World) -> io::Result<Self> {
        let membership = Arc::clone(membership);
        let poll = world.network.poll()?;
        let waker = poll.waker(WAKER)?;
        assert!(membership.retries.waker.set(waker).is_ok(), "a membership has one loop");
        let looping = RetryLoop { membership: Arc::clone(&membership), poll };
        Ok(Self { membership, running: world.pool.spawn_loop("MapRetry", looping)? })
    }

    /// Ends it: what is left is left.
    pub(crate) fn stop(self) {
        self.membership.retries.stop();
        if self.running.join().is_err() {
            tracing::error!("the loop that tries maps again has panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use platform::WallTime;

    use super::*;

    #[test]
    fn pauses_grow_and_begin_anew_with_what_advances_and_with_a_newer_map() {
        let clock = Clock::simulated(WallTime(0));
        let retries = Retries::new(clock.clone());
        assert_eq!(retries.patience(), None);
        retries.begin(true);
        for pause in [1, 2, 4, 8, 16, 32, 50, 50] {
            let pause = PAUSE_MIN * pause;
            assert_eq!(retries.patience(), Some(pause));
            clock.advance(pause - Duration::from_nanos(1));
            assert!(!retries.take_due());
            clock.advance(Duration::from_nanos(1));
            assert!(retries.take_due() && !retries.take_due());
            retries.tried(true, false);
        }
        clock.advance(PAUSE_MAX);
        assert!(retries.take_due());
        retries.tried(true, true);
        assert_eq!(retries.patience(), Some(PAUSE_MIN), "it advances");
        clock.advance(PAUSE_MIN);
        assert!(retries.take_due());
        retries.begin(true);
        retries.tried(true, false);
        assert_eq!(retries.patience(), Some(PAUSE_MIN), "a newer map has come meanwhile");
        clock.advance(PAUSE_MIN);
        assert!(retries.take_due());
        retries.tried(false, true);
        assert_eq!(retries.patience(), None, "nothing is left");
    }
}
