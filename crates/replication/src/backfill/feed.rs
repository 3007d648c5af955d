//! What one backfill has read and its stream has not taken.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bucket::BackfillFacts;
use document::Item;

/// Between the task that reads and the connection that sends.
#[derive(Default)]
pub(crate) struct Feed(Mutex<State>);

#[derive(Default)]
struct State {
    facts: Option<BackfillFacts>,
    items: Vec<Item>,
    end: Option<bool>,
    is_cancelled: bool,
}

/// What there is to take.
pub(crate) struct Fed {
    /// Once, before the first item.
    pub(crate) facts: Option<BackfillFacts>,
    /// Seqnos rising.
    pub(crate) items: Vec<Item>,
    /// Set behind the last item: whether everything was read.
    pub(crate) end: Option<bool>,
}

impl Feed {
    /// What is going to be read.
    pub(super) fn begin(&self, facts: BackfillFacts) {
        let mut state = self.lock();
        assert!(state.facts.is_none(), "a backfill begins once");
        assert!(state.end.is_none(), "a backfill begins before it ends");
        state.facts = Some(facts);
    }

    /// Hands items over, or `false` if nobody wants them.
    pub(super) fn push(&self, items: Vec<Item>) -> bool {
        let mut state = self.lock();
        if state.is_cancelled {
            // The items that nobody wants are freed without the lock (invariant 10).
            drop(state);
            return false;
        }
        assert!(state.end.is_none(), "nothing comes behind the end");
        state.items.extend(items);
        true
    }

    /// Everything was read, or not.
    pub(super) fn end(&self, is_complete: bool) {
        let before = self.lock().end.replace(is_complete);
        assert!(before.is_none(), "a backfill ends once");
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.lock().is_cancelled
    }

    /// Nobody wants any more. Returns what was not taken.
    pub(crate) fn cancel(&self) -> Vec<Item> {
        let mut state = self.lock();
        state.is_cancelled = true;
        std::mem::take(&mut state.items)
    }

    /// Takes what there is.
    pub(crate) fn take(&self) -> Fed {
        let mut state = self.lock();
        let facts = state.facts.take();
        Fed { facts, items: std::mem::take(&mut state.items), end: state.end }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
