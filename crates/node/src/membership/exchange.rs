//! What the exchanges of manifests, of users and of plans have in common: a change is made behind
//! those of other nodes, and whoever was not reached is asked again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How often a change is made anew because others were faster.
pub(super) const ATTEMPTS_MAX: usize = 32;

/// Which node has a change first.
pub(super) enum Precedence {
    /// This one: none of those that come before it in the map answers.
    Here,
    /// Another one, and it has taken the change.
    Taken,
    /// Another one, which has another change.
    Other,
}

/// Whether anything is left to be exchanged, and whose turn it is.
#[derive(Default)]
pub(super) struct Exchange {
    /// Held while something is changed here, and while it is exchanged.
    exchanging: Mutex<()>,
    /// Whether somebody was not reached.
    is_due: AtomicBool,
}

impl Exchange {
    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }

    pub(super) fn set_due(&self, is_due: bool) {
        self.is_due.store(is_due, Ordering::Relaxed);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ()> {
        self.exchanging.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
