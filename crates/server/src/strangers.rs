//! Connections of which nobody knows yet who they are.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use platform::Instant;

/// The strangers of all workers. Where there are too many connections the one that came first gives
/// way to the next: who means to log in does so at once. The lock is taken when a connection comes,
/// logs in and goes, never for a request, and no other is taken under it.
#[derive(Debug, Default)]
pub(crate) struct Strangers(Mutex<BTreeSet<Stranger>>);

/// One of them. A token is used again, so it is known by its time, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stranger {
    /// When it was accepted.
    pub(crate) opened: Instant,
    /// Whose connection it is.
    pub(crate) worker: usize,
    /// Its place there.
    pub(crate) token: usize,
}

impl Strangers {
    /// A connection has come, or has forgotten who it is.
    pub(crate) fn enter(&self, stranger: Stranger) {
        let is_new = self.lock().insert(stranger);
        assert!(is_new, "a connection is a stranger once: {stranger:?}");
    }

    /// It has said who it is, or has gone.
    pub(crate) fn leave(&self, stranger: Stranger) {
        self.lock().remove(&stranger);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// The one that came first, who is not one of them any more.
    pub(crate) fn take_oldest(&self) -> Option<Stranger> {
        self.lock().pop_first()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Stranger>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_is_still_a_stranger_goes_first() {
        let strangers = Strangers::default();
        let stranger = |opened, token| Stranger { opened: Instant(opened), worker: 0, token };
        for one in [stranger(3, 1), stranger(1, 2), stranger(2, 3), stranger(2, 4)] {
            strangers.enter(one);
        }
        strangers.leave(stranger(1, 2));
        strangers.leave(stranger(9, 3));
        let order = std::iter::from_fn(|| strangers.take_oldest());
        assert_eq!(order.map(|one| one.token).collect::<Vec<_>>(), [3, 4, 1]);
    }
}
