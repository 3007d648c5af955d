//! Readiness loops: one thread each, or steps of a pool without threads.

use std::time::Duration;

use platform::allocator::IdleUpkeep;
use platform::network::{Poll, Readiness};
use platform::{Clock, Instant};

use crate::sync::{Mutex, lock};

/// What a readiness loop does at each of its turns. It waits nowhere but at its poll.
pub trait Looping: Send + 'static {
    /// Where it waits.
    fn poll(&mut self) -> &mut Poll;

    /// How long it may wait when nothing is ready: not at all if there is more to do, for ever if
    /// `None`.
    fn patience(&mut self) -> Option<Duration>;

    /// One turn: what is ready, which may be nothing, and what has become due.
    fn serve(&mut self, ready: &[Readiness]);

    /// Whether there are no more turns. It is dropped then, on its own thread if it has one.
    fn is_over(&self) -> bool;
}

/// Runs a loop on the calling thread until it is over.
pub(crate) fn run(mut looping: impl Looping) {
    let mut upkeep = IdleUpkeep::default();
    let mut ready = Vec::new();
    while !looping.is_over() {
        let patience = looping.patience();
        let is_idle = patience != Some(Duration::ZERO);
        let patience = if is_idle { upkeep.limit(patience) } else { patience };
        if let Err(error) = looping.poll().wait(&mut ready, patience) {
            panic!("a loop cannot wait for its sockets: {error}");
        }
        upkeep.after_wait(if is_idle { ready.len() } else { 1 });
        looping.serve(&ready);
    }
}

/// A loop of a pool without threads.
pub(crate) struct SteppedLoop {
    name: String,
    state: Mutex<Option<State>>,
}

/// `None` while it has its turn, and once it is over.
struct State {
    looping: Box<dyn Looping>,
    /// When it wants a turn although nothing is ready.
    deadline: Option<Instant>,
}

impl State {
    fn new(mut looping: Box<dyn Looping>, clock: &Clock) -> Self {
        let deadline = looping.patience().map(|patience| clock.now().after(patience));
        Self { looping, deadline }
    }
}

impl std::fmt::Debug for SteppedLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SteppedLoop").field("name", &self.name).finish_non_exhaustive()
    }
}

impl SteppedLoop {
    pub(crate) fn new(name: &str, looping: Box<dyn Looping>, clock: &Clock) -> Self {
        let state = State::new(looping, clock);
        Self { name: name.to_owned(), state: Mutex::new(Some(state)) }
    }

    /// Whether it wants a turn.
    pub(crate) fn is_ready(&self, clock: &Clock) -> bool {
        let mut state = lock(&self.state);
        state.as_mut().is_some_and(|state| {
            let is_due = state.deadline.is_some_and(|deadline| deadline <= clock.now());
            is_due || state.looping.poll().is_ready()
        })
    }

    /// When it wants a turn next, or its network brings something.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        let mut state = lock(&self.state);
        let state = state.as_mut()?;
        state.deadline.into_iter().chain(state.looping.poll().next_delivery()).min()
    }

    pub(crate) fn is_over(&self) -> bool {
        lock(&self.state).is_none()
    }

    /// Gives it a turn.
    pub(crate) fn step(&self, clock: &Clock) {
        // Taken out: what it does may ask which loops are ready.
        let Some(State { mut looping, .. }) = lock(&self.state).take() else { return };
        let mut ready = Vec::new();
        if let Err(error) = looping.poll().wait(&mut ready, Some(Duration::ZERO)) {
            panic!("a loop cannot look after its sockets: {error}");
        }
        looping.serve(&ready);
        if !looping.is_over() {
            *lock(&self.state) = Some(State::new(looping, clock));
        }
    }

    /// Gives it turns until it is over. Somebody has told it to end.
    pub(crate) fn finish(&self, clock: &Clock) {
        while !self.is_over() {
            self.step(clock);
        }
    }
}
