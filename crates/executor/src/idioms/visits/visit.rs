//! The state of visits between two steps.

use std::collections::VecDeque;

use document::Vbid;

use super::{Interrupt, Revisit, VbucketVisitor, VisitOrder, VisitOutcome};

/// A visitor and the vBuckets that it has not dealt with. Dropping it completes the visits.
pub(super) struct Visit<V: VbucketVisitor> {
    visitor: V,
    /// The next one first.
    waiting: VecDeque<Vbid>,
    last: Option<Vbid>,
    /// Visits in a row that ended with [`Revisit::YesLater`].
    deferred_in_a_row: usize,
    is_complete: bool,
}

/// What a step has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A vBucket was visited, and there is more to do.
    Visited,
    /// A vBucket was visited, and like all that are left it has to wait.
    AllDeferred,
    /// The visitor wants a pause.
    Paused,
    /// The visits are complete.
    Ended,
}

impl<V: VbucketVisitor> Visit<V> {
    pub(super) fn new(order: VisitOrder, visitor: V) -> Self {
        let waiting = order.into_queue();
        Self { visitor, waiting, last: None, deferred_in_a_row: 0, is_complete: false }
    }

    /// The vBucket visited last.
    pub(super) fn last(&self) -> Option<Vbid> {
        self.last
    }

    /// A run of the task begins.
    pub(super) fn begin(&mut self) {
        self.visitor.begin();
    }

    /// Visits the next vBucket, if the visitor likes.
    pub(super) fn step(&mut self) -> Step {
        let Some(&vbid) = self.waiting.front() else { return self.end(VisitOutcome::Finished) };
        match self.visitor.should_interrupt() {
            Interrupt::Continue => self.visit(vbid),
            Interrupt::Pause => Step::Paused,
            Interrupt::Stop => self.end(VisitOutcome::Stopped),
        }
    }

    /// Ends the visits, unless they have ended.
    pub(super) fn end(&mut self, outcome: VisitOutcome) -> Step {
        if !std::mem::replace(&mut self.is_complete, true) {
            self.visitor.complete(outcome);
        }
        Step::Ended
    }

    fn visit(&mut self, vbid: Vbid) -> Step {
        self.last = Some(vbid);
        match self.visitor.visit(vbid) {
            Revisit::YesLater => {
                self.waiting.rotate_left(1);
                self.deferred_in_a_row += 1;
                if self.deferred_in_a_row < self.waiting.len() {
                    return Step::Visited;
                }
                self.deferred_in_a_row = 0;
                return Step::AllDeferred;
            }
            Revisit::YesNow => {}
            Revisit::No => drop(self.waiting.pop_front()),
        }
        self.deferred_in_a_row = 0;
        if self.waiting.is_empty() { self.end(VisitOutcome::Finished) } else { Step::Visited }
    }
}

impl<V: VbucketVisitor> Drop for Visit<V> {
    fn drop(&mut self) {
        self.end(VisitOutcome::Stopped);
    }
}
