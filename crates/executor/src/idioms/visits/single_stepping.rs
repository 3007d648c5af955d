//! Visits that somebody else paces: one vBucket a wake-up.

use super::visit::{Step, Visit};
use super::{VbucketVisitor, VisitOrder, VisitOutcome};
use crate::owner::Owner;
use crate::owner::terms::OwnerIsGone;
use crate::pool::ExecutorPool;
use crate::task::cell::TaskHandle;
use crate::task::name::TaskName;
use crate::task::{Next, Task, TaskContext};

/// What is left after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// Another wake-up visits another vBucket.
    MoreToDo,
    /// As [`StepOutcome::MoreToDo`], but no vBucket that is left could be dealt with: better wait.
    AllDeferred,
    /// The visits are complete, and the task ends.
    Ended,
}

/// Adds a sleeping task that takes `visitor` to one vBucket of `order` whenever it is woken, and
/// calls `continuation` after each run, under no lock. Its last call is [`StepOutcome::Ended`],
/// exactly once, whatever ended the visits: so that whoever takes several owners' visits in turns
/// never waits for one that is gone. Wakes during a run add up to one step.
pub fn visit_stepwise(
    pool: &ExecutorPool,
    owner: &Owner,
    name: &'static TaskName,
    order: VisitOrder,
    visitor: impl VbucketVisitor + 'static,
    continuation: impl FnMut(StepOutcome) + Send + 'static,
) -> Result<TaskHandle, OwnerIsGone> {
    let label = name.name();
    let visit = Visit::new(order, visitor);
    pool.schedule_asleep(owner, name, SteppingTask { label, visit, continuation, has_ended: false })
}

struct SteppingTask<V: VbucketVisitor, C: FnMut(StepOutcome)> {
    label: &'static str,
    visit: Visit<V>,
    continuation: C,
    has_ended: bool,
}

impl<V: VbucketVisitor, C: FnMut(StepOutcome)> SteppingTask<V, C> {
    fn end(&mut self) {
        self.visit.end(VisitOutcome::Stopped);
        if !std::mem::replace(&mut self.has_ended, true) {
            (self.continuation)(StepOutcome::Ended);
        }
    }
}

impl<V: VbucketVisitor, C: FnMut(StepOutcome) + Send> Task for SteppingTask<V, C> {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            self.end();
            return Next::Finished;
        }
        self.visit.begin();
        let outcome = match self.visit.step() {
            Step::Visited | Step::Paused => StepOutcome::MoreToDo,
            Step::AllDeferred => StepOutcome::AllDeferred,
            Step::Ended => {
                self.end();
                return Next::Finished;
            }
        };
        (self.continuation)(outcome);
        Next::Sleep
    }

    fn describe(&self) -> Option<String> {
        Some(super::visit_task::describe(self.label, self.visit.last()))
    }
}

impl<V: VbucketVisitor, C: FnMut(StepOutcome)> Drop for SteppingTask<V, C> {
    fn drop(&mut self) {
        self.end();
    }
}
