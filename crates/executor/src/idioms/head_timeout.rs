//! One sleeping task for the deadline of the head of a queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use platform::{Clock, Instant};

use crate::owner::Owner;
use crate::owner::terms::OwnerIsGone;
use crate::pool::ExecutorPool;
use crate::task::cell::TaskHandle;
use crate::task::name::TaskName;
use crate::task::{Next, Task, TaskContext};

/// Calls a function when a deadline that moves has passed, and never before. Nothing runs while
/// the deadline is far or moves on; a deadline that was given up costs at most one run, which
/// does nothing. A handle: clones are the same timeout.
#[derive(Clone, Debug)]
pub struct HeadTimeout {
    shared: Arc<Shared>,
    task: TaskHandle,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When to call; `None` is never.
    deadline: Option<Instant>,
    /// The task was snoozed until this time, and not run since: it looks at `deadline` then, or
    /// before. A deadline that is not earlier needs no snooze.
    next_look: Option<Instant>,
}

impl HeadTimeout {
    /// Adds a timeout without a deadline. `on_due` is told the time and answers the next deadline;
    /// of this and one that is set while it works the earlier one holds.
    pub fn schedule(
        pool: &ExecutorPool,
        owner: &Owner,
        name: &'static TaskName,
        on_due: impl FnMut(Instant) -> Option<Instant> + Send + 'static,
    ) -> Result<Self, OwnerIsGone> {
        let shared = Shared { clock: pool.clock().clone(), state: Mutex::default() };
        let shared = Arc::new(shared);
        let timeout_task = TimeoutTask { shared: shared.clone(), on_due };
        let task = pool.schedule_asleep(owner, name, timeout_task)?;
        Ok(Self { shared, task })
    }

    /// Moves the deadline: earlier, later, or with `None` to never. Never waits for a call.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        let mut state = self.shared.lock();
        state.deadline = deadline;
        self.look_in_time(&mut state);
    }

    /// Moves the deadline to `deadline` unless there is an earlier one: what a new entry does that
    /// may or may not have become the head.
    pub fn expect_by(&self, deadline: Instant) {
        let mut state = self.shared.lock();
        state.deadline = earlier(state.deadline, Some(deadline));
        self.look_in_time(&mut state);
    }

    /// When the call is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.shared.lock().deadline
    }

    /// The task, for cancelling it.
    pub fn task(&self) -> &TaskHandle {
        &self.task
    }

    /// Sees to it that the task runs at the deadline. The snooze is done under the lock: of two
    /// threads the one that set the deadline later must also snooze later.
    fn look_in_time(&self, state: &mut State) {
        let Some(deadline) = state.deadline else { return };
        if state.next_look.is_none_or(|next_look| deadline < next_look) {
            state.next_look = Some(deadline);
            self.task.snooze(deadline.since(self.shared.clock.now()));
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct TimeoutTask<F> {
    shared: Arc<Shared>,
    on_due: F,
}

impl<F: FnMut(Instant) -> Option<Instant> + Send> Task for TimeoutTask<F> {
    fn run(&mut self, _context: &TaskContext<'_>) -> Next {
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        // The snooze that led here is spent.
        state.next_look = None;
        if state.deadline.is_some_and(|deadline| deadline <= now) {
            state.deadline = None;
            drop(state);
            let next = (self.on_due)(now);
            state = self.shared.lock();
            state.deadline = earlier(state.deadline, next);
        }
        match state.deadline {
            None => Next::Sleep,
            Some(deadline) => Next::SleepFor(deadline.since(self.shared.clock.now())),
        }
    }
}

/// The earlier of two deadlines, where `None` is never.
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}
