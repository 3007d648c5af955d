//! Going through vBuckets, a time slice at a time.
//!
//! A [`VbucketVisitor`] says what is done with one vBucket; a [`VisitOrder`] says which ones and in
//! which order; a task drives the two: [`visit_async`] for as long as a time slice lasts,
//! [`visit_stepwise`] one vBucket a wake-up. Between runs there are ids only: nothing here keeps
//! a vBucket alive that is deleted meanwhile.

mod order;
mod single_stepping;
mod visit;
mod visit_task;

use document::Vbid;

pub use order::VisitOrder;
pub use single_stepping::{StepOutcome, visit_stepwise};
pub use visit_task::{VisitTask, visit_async};

/// Visits vBuckets one by one.
pub trait VbucketVisitor: Send {
    /// A run of the task begins.
    fn begin(&mut self) {}

    /// Asked before each vBucket.
    fn should_interrupt(&mut self) -> Interrupt {
        Interrupt::Continue
    }

    /// Visits one vBucket, which may not exist any more.
    fn visit(&mut self, vbid: Vbid) -> Revisit;

    /// The visits are over. Called exactly once, whatever ended them, after the last visit.
    fn complete(&mut self, _outcome: VisitOutcome) {}
}

/// Whether a visitor goes on to the next vBucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// It does.
    Continue,
    /// Other tasks run first.
    Pause,
    /// The visits end here.
    Stop,
}

/// Whether a visitor comes back to the vBucket that it has just visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revisit {
    /// It is done with it.
    No,
    /// It is not done: the same vBucket is next.
    YesNow,
    /// It could do nothing for now: all others come first. When no vBucket of a whole round could
    /// be dealt with, the task sleeps for a while.
    YesLater,
}

/// How visits ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitOutcome {
    /// The visitor is done with every vBucket.
    Finished,
    /// The visitor answered [`Interrupt::Stop`], or its task has ended before its work.
    Stopped,
}
