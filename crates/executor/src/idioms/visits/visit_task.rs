//! Visits that go on in the background, a time slice a run.

use std::fmt;
use std::time::Duration;

use document::Vbid;
use platform::Clock;

use super::visit::{Step, Visit};
use super::{VbucketVisitor, VisitOrder, VisitOutcome};
use crate::idioms::time_slice::TIME_SLICE;
use crate::owner::Owner;
use crate::owner::terms::OwnerIsGone;
use crate::pool::ExecutorPool;
use crate::task::cell::TaskHandle;
use crate::task::name::TaskName;
use crate::task::{Next, Task, TaskContext};

/// The task sleeps for so long when every vBucket that is left was deferred.
const DEFERRED_PAUSE: Duration = Duration::from_millis(100);

/// Takes `visitor` to the vBuckets of `order` in the background. When the owner is unregistered
/// or the task is cancelled, the visits stop before the next vBucket; when it is gone already
/// they stop at once.
pub fn visit_async(
    pool: &ExecutorPool,
    owner: &Owner,
    name: &'static TaskName,
    order: VisitOrder,
    visitor: impl VbucketVisitor + 'static,
) -> Result<TaskHandle, OwnerIsGone> {
    let task = VisitTask::new(pool.clock().clone(), name.name(), order, visitor);
    pool.schedule(owner, name, task)
}

/// The task of [`visit_async`]. Checks its time between two vBuckets; each run visits at least
/// one unless the visitor pauses.
pub struct VisitTask<V: VbucketVisitor> {
    clock: Clock,
    label: &'static str,
    visit: Visit<V>,
    time_slice: Duration,
}

impl<V: VbucketVisitor> VisitTask<V> {
    /// `clock` is the pool's; `label` begins the description.
    pub fn new(clock: Clock, label: &'static str, order: VisitOrder, visitor: V) -> Self {
        Self { clock, label, visit: Visit::new(order, visitor), time_slice: TIME_SLICE }
    }

    /// A run ends after `time_slice` instead of the default of 25 ms.
    pub fn time_slice(self, time_slice: Duration) -> Self {
        Self { time_slice, ..self }
    }
}

impl<V: VbucketVisitor> Task for VisitTask<V> {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            self.visit.end(VisitOutcome::Stopped);
            return Next::Finished;
        }
        let end = context.started().after(self.time_slice);
        self.visit.begin();
        loop {
            match self.visit.step() {
                Step::Visited if self.clock.now() < end => {}
                Step::Visited | Step::Paused => return Next::Again,
                Step::AllDeferred => return Next::SleepFor(DEFERRED_PAUSE),
                Step::Ended => return Next::Finished,
            }
        }
    }

    fn describe(&self) -> Option<String> {
        Some(describe(self.label, self.visit.last()))
    }
}

/// What statistics say about visits: where they are.
pub(super) fn describe(label: &str, last: Option<Vbid>) -> String {
    match last {
        Some(vbid) => format!("{label} on vb:{vbid}"),
        None => label.to_owned(),
    }
}

impl<V: VbucketVisitor> fmt::Debug for VisitTask<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("VisitTask")
            .field("label", &self.label)
            .field("last", &self.visit.last())
            .field("time_slice", &self.time_slice)
            .finish_non_exhaustive()
    }
}
