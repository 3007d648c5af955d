//! The tasks of one kind that wait for a thread, and the threads that wait for a task.
//!
//! The lock of the queue is the whole sleep protocol: a thread that finds no task says under it
//! that it searches, or that it sleeps, and whoever pushes a task sees under it who does. A thread
//! that searches lets others run ("yields") and looks again, for a bounded time; one that sleeps
//! costs the pusher a system call and itself a switch, 20 to 50 us where an idle CPU is halted.
//!
//! ```text
//!            no task, and tasks have come            time is over
//!            quickly of late                         or enough search
//!   RUNNING ------------------------> SEARCHING ------------------------> SLEEPING
//!     ^  |                              |                                   |
//!     |  |  task                        | task                              | called
//!     |  +<-----------------------------+                                   v
//!     |                                                                IN TRANSIT
//!     +-------------------------------------------------------------------- |
//!                                 task (none: as if it had run)
//! ```
//!
//! Whoever pushes a task, or takes one and leaves others behind, calls a sleeping thread unless
//! that would not pay: because a thread is looking for tasks already, or because threads that run
//! short tasks now will have come to the last one that waits before a sleeping one were awake. How
//! long a task runs is told by the past runs of its name. Should it turn out longer, the timer
//! thread calls somebody soon ([`crate::timers::Timers::watch`]).

mod crew;
pub(crate) mod priority_queue;

use std::sync::Arc;

use platform::Instant;

use crate::queue::crew::{Crew, Role};
use crate::queue::priority_queue::{PriorityQueue, Waiting};
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{CacheAligned, Mutex, MutexGuard, lock};
use crate::task::cell::TaskCell;
use crate::task::kind::TaskClass;
use crate::threads::patience::{Patience, glance, wake_cost_ns};
use crate::threads::worker::Worker;

/// So many quick tasks in a row may go ahead of a normal one that waits.
const QUICK_IN_A_ROW_MAX: u32 = 8;
/// Two queues, one for each class, and their threads.
#[derive(Debug, Default)]
pub(crate) struct RunQueue {
    state: CacheAligned<Mutex<State>>,
    ready: CacheAligned<Ready>,
}

/// How many tasks each class has, for threads that search: a hint. Not next to the lock, because a
/// thread that looks would take the line from the one that holds the lock. It is lowered under the
/// lock and raised after it, so that it is never 0 for long while a task waits.
#[derive(Debug, Default)]
struct Ready {
    quick: AtomicU32,
    normal: AtomicU32,
    /// How often a thread has returned from sleep.
    wakeups: AtomicU64,
}

/// The order of the fields is kept: what a push and a pop of a normal task write comes first, in
/// the cache lines of the lock.
#[derive(Debug, Default)]
#[repr(C)]
struct State {
    normal: PriorityQueue<TaskCell>,
    /// Threads that run any task.
    normal_crew: Crew,
    /// Quick tasks taken since the last normal one.
    quick_in_a_row: u32,
    is_stopping: bool,
    quick: PriorityQueue<TaskCell>,
    /// Threads that run quick tasks only.
    quick_crew: Crew,
}

/// A task that has left its queue.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) task: Arc<TaskCell>,
    /// Whether the thread had to wait for it.
    pub(crate) has_waited: bool,
    /// Whether the tasks left behind rely on runs being short.
    pub(crate) must_watch: bool,
}

/// A thread without a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Idle {
    /// Since when.
    pub(crate) since: Instant,
    /// Whether tasks have come quickly of late.
    pub(crate) expects_task: bool,
}

/// Whether it will do that threads with short tasks are expected back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hope {
    Allowed,
    Forbidden,
}

/// Who comes for a task that waits.
enum Cover {
    /// A thread that looks for tasks, or there is none that could be called.
    Given,
    /// A thread that runs a short task now.
    Hoped,
    /// This one, which must be called.
    Called(Arc<Worker>),
}

impl RunQueue {
    /// Adds a task and calls a thread when none will come by itself. Answers whether that relies on
    /// runs being short, and so must be watched.
    #[must_use]
    pub(crate) fn push(&self, task: Arc<TaskCell>) -> bool {
        let mut state = self.lock();
        let class = task.name().class();
        state.queue(class).push(task);
        let cover = state.cover(class, Hope::Allowed);
        let count = state.queue(class).len();
        drop(state);
        self.ready.of(class).store(count, Ordering::Relaxed);
        cover.call()
    }

    /// The next task for `worker`, which has had none since `idle.since`; waits until there is one.
    /// `None` when the thread must end.
    pub(crate) fn pop(&self, worker: &Arc<Worker>, idle: &mut Idle) -> Option<Taken> {
        let class = worker.class();
        let mut patience = Patience::new();
        let mut role = Role::Running;
        let mut has_waited = self.glance(class, *idle);
        let mut state = self.lock();
        state.crew(class).finish_run(worker);
        loop {
            if state.is_stopping || worker.is_retiring() {
                state.crew(class).leave(role);
                let heirs = state.cover_all(Hope::Forbidden);
                drop(state);
                Cover::call_all(heirs);
                return None;
            }
            if let Some(task) = state.take(class) {
                let crew = state.crew(class);
                crew.leave(role);
                crew.note_arrival(task.queued_at(), has_waited.then_some(idle.since));
                crew.begin_run(worker, task.statistics().usual_run_ns());
                idle.expects_task = crew.expects_task();
                let cover = state.cover_all(Hope::Allowed);
                self.publish(&state);
                drop(state);
                let must_watch = Cover::call_all(cover);
                return Some(Taken { task, has_waited, must_watch });
            }
            has_waited = true;
            self.publish(&state);
            let crew = state.crew(class);
            crew.leave(role);
            crew.note_dry(idle.since);
            if crew.may_search() && !patience.is_over() {
                role = Role::Searching;
                crew.searching += 1;
                drop(state);
                patience.look(|| self.has_work(class) || worker.is_retiring());
            } else {
                role = Role::InTransit;
                crew.sleeping.push(worker.clone());
                drop(state);
                worker.sleep();
                patience = Patience::new();
                self.ready.wakeups.fetch_add(1, Ordering::Relaxed);
            }
            state = self.lock();
        }
    }

    /// Looks around a few times before it says under the lock that it searches: most often the
    /// next task comes meanwhile. Who pushes it still takes the thread for one that runs a short
    /// task, and expects it back. Answers whether there was none at first.
    fn glance(&self, class: TaskClass, idle: Idle) -> bool {
        let has_waited = idle.expects_task && !self.has_work(class);
        if has_waited {
            glance(|| self.has_work(class));
        }
        has_waited
    }

    /// The next task, if there is one.
    pub(crate) fn try_pop(&self) -> Option<Arc<TaskCell>> {
        let mut state = self.lock();
        let task = state.take(TaskClass::Normal);
        self.publish(&state);
        task
    }

    /// Calls sleeping threads when tasks wait and nobody is looking for them, however short those
    /// that run are believed to be.
    pub(crate) fn relieve(&self) {
        let called = self.lock().cover_all(Hope::Forbidden);
        Cover::call_all(called);
    }

    /// Does so for tasks that have waited since before `limit`. Answers whether younger ones wait.
    #[must_use]
    pub(crate) fn relieve_overdue(&self, limit: Instant) -> bool {
        let mut state = self.lock();
        let oldest = [state.quick.oldest(), state.normal.oldest()].into_iter().flatten().min();
        let is_overdue = oldest.is_some_and(|queued| queued <= limit);
        if is_overdue {
            let called = state.cover_all(Hope::Forbidden);
            drop(state);
            Cover::call_all(called);
        }
        oldest.is_some() && !is_overdue
    }

    /// Takes out all tasks for which `is_unwanted`.
    pub(crate) fn extract(&self, is_unwanted: impl Fn(&TaskCell) -> bool) -> Vec<Arc<TaskCell>> {
        let mut extracted = Vec::new();
        let mut state = self.lock();
        state.quick.extract(&is_unwanted, &mut extracted);
        state.normal.extract(&is_unwanted, &mut extracted);
        self.publish(&state);
        extracted
    }

    /// Looks at all tasks.
    pub(crate) fn for_each(&self, mut look: impl FnMut(&Arc<TaskCell>)) {
        let state = self.lock();
        state.quick.iter().chain(state.normal.iter()).for_each(&mut look);
    }

    /// Wakes `worker`, which shall end, if it sleeps.
    pub(crate) fn dismiss(&self, worker: &Arc<Worker>) {
        let mut state = self.lock();
        let crew = state.crew(worker.class());
        if let Some(index) = crew.sleeping.iter().position(|other| Arc::ptr_eq(other, worker)) {
            crew.sleeping.remove(index);
            crew.in_transit += 1;
            drop(state);
            worker.call();
        }
    }

    /// Lets all threads go. All tasks have ended by then.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.is_stopping = true;
        let mut called = state.normal_crew.call_all();
        called.extend(state.quick_crew.call_all());
        drop(state);
        called.iter().for_each(|worker| worker.call());
    }

    /// How many tasks of `class` wait.
    pub(crate) fn len(&self, class: TaskClass) -> usize {
        self.lock().queue(class).len() as usize
    }

    /// How many threads sleep.
    pub(crate) fn sleeping_count(&self) -> usize {
        let state = self.lock();
        state.normal_crew.sleeping.len() + state.quick_crew.sleeping.len()
    }

    /// How often a thread has returned from sleep.
    pub(crate) fn wakeups(&self) -> u64 {
        self.ready.wakeups.load(Ordering::Relaxed)
    }

    fn has_work(&self, class: TaskClass) -> bool {
        let has = |class| self.ready.of(class).load(Ordering::Relaxed) > 0;
        has(TaskClass::Quick) || class == TaskClass::Normal && has(TaskClass::Normal)
    }

    fn publish(&self, state: &State) {
        self.ready.quick.store(state.quick.len(), Ordering::Relaxed);
        self.ready.normal.store(state.normal.len(), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Ready {
    fn of(&self, class: TaskClass) -> &AtomicU32 {
        match class {
            TaskClass::Quick => &self.quick,
            TaskClass::Normal => &self.normal,
        }
    }
}

impl State {
    fn queue(&mut self, class: TaskClass) -> &mut PriorityQueue<TaskCell> {
        match class {
            TaskClass::Quick => &mut self.quick,
            TaskClass::Normal => &mut self.normal,
        }
    }

    fn crew(&mut self, class: TaskClass) -> &mut Crew {
        match class {
            TaskClass::Quick => &mut self.quick_crew,
            TaskClass::Normal => &mut self.normal_crew,
        }
    }

    /// Finds who comes for the tasks of each class that wait.
    fn cover_all(&mut self, hope: Hope) -> [Cover; 2] {
        [TaskClass::Quick, TaskClass::Normal].map(|class| {
            if self.queue(class).len() == 0 { Cover::Given } else { self.cover(class, hope) }
        })
    }

    /// Finds who comes for the tasks of `class`, of which at least one waits.
    fn cover(&mut self, class: TaskClass, hope: Hope) -> Cover {
        let is_quick = class == TaskClass::Quick;
        if self.normal_crew.is_looking() || is_quick && self.quick_crew.is_looking() {
            return Cover::Given;
        }
        let may_call = !self.normal_crew.sleeping.is_empty()
            || is_quick && !self.quick_crew.sleeping.is_empty();
        if !may_call {
            return Cover::Given;
        }
        let tasks_ns = if is_quick {
            u64::from(self.quick.len()) * self.quick_crew.run_ns.max(self.normal_crew.run_ns)
        } else {
            u64::from(self.normal.len() + self.quick.len()) * self.normal_crew.run_ns
        };
        let runs_short =
            self.normal_crew.running_short > 0 || is_quick && self.quick_crew.running_short > 0;
        if hope == Hope::Allowed && runs_short && tasks_ns < wake_cost_ns() {
            return Cover::Hoped;
        }
        let quick = if is_quick { self.quick_crew.call() } else { None };
        quick.or_else(|| self.normal_crew.call()).map_or(Cover::Given, Cover::Called)
    }

    /// A quick task if there is one, but a waiting normal task gets its turn.
    fn take(&mut self, class: TaskClass) -> Option<Arc<TaskCell>> {
        if class == TaskClass::Quick {
            return self.quick.pop();
        }
        let normal_is_due = self.quick_in_a_row >= QUICK_IN_A_ROW_MAX && self.normal.len() > 0;
        if !normal_is_due && let Some(task) = self.quick.pop() {
            self.quick_in_a_row += 1;
            return Some(task);
        }
        self.quick_in_a_row = 0;
        self.normal.pop()
    }
}

impl Cover {
    /// Calls who must be called. Answers whether the task relies on runs being short.
    fn call(self) -> bool {
        if let Self::Called(worker) = &self {
            worker.call();
        }
        matches!(self, Self::Hoped)
    }

    /// Does so for both classes.
    fn call_all(covers: [Self; 2]) -> bool {
        covers.into_iter().fold(false, |is_hoped, cover| cover.call() | is_hoped)
    }
}
