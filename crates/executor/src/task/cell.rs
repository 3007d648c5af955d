//! One task: its word, its deadline, its body, and the handle that others hold.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use platform::Instant;

use crate::owner::core::OwnerCore;
use crate::pool_core::PoolCore;
use crate::queue::priority_queue::Waiting;
use crate::statistics::{TaskActivity, TaskStatistics, TaskStatus};
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::task::id::TaskId;
use crate::task::name::TaskName;
use crate::task::state::{TaskState, Then};
use crate::task::{Next, Task, TaskContext};
use crate::timers::deadline::{Deadline, Timed};
use crate::timers::{Earlier, Sleeper};

/// What a pool, its queues and its handles share of one task. One allocation holds all of it; with
/// a small body it takes two cache lines, which move from the CPU that schedules to the one that
/// runs.
pub(crate) struct TaskCell<B: ?Sized = dyn Body> {
    state: TaskState,
    /// Whether the owner has it in its list; written by whoever runs or makes it.
    is_known_to_owner: AtomicBool,
    deadline: Deadline,
    id: TaskId,
    name: &'static TaskName,
    owner: Arc<OwnerCore>,
    /// When it was pushed last, in nanoseconds of [`Instant`].
    queued_ns: AtomicU64,
    activity: TaskActivity,
    body: B,
}

/// What runs. Locked by the worker that runs or destroys the task, and by who asks what it is
/// doing, between runs.
pub(crate) trait Body: Send + Sync {
    fn run(&self, context: &TaskContext<'_>) -> Next;
    fn destroy(&self);
    /// Whether destroying it does anything that may take time.
    fn has_destructor(&self) -> bool;
    /// `None` while it runs, too.
    fn describe(&self) -> Option<String>;
}

/// `None` once destroyed.
struct BodyOf<T>(Mutex<Option<T>>);

impl<T: Task> Body for BodyOf<T> {
    fn run(&self, context: &TaskContext<'_>) -> Next {
        let mut body = lock(&self.0);
        body.as_mut().expect("a task that is not dead has a body").run(context)
    }

    fn destroy(&self) {
        let body = lock(&self.0).take();
        drop(body);
    }

    fn has_destructor(&self) -> bool {
        std::mem::needs_drop::<T>()
    }

    fn describe(&self) -> Option<String> {
        self.0.try_lock().ok()?.as_ref()?.describe()
    }
}

impl TaskCell {
    pub(crate) fn new(
        name: &'static TaskName,
        owner: Arc<OwnerCore>,
        state: TaskState,
        task: impl Task + 'static,
    ) -> Arc<Self> {
        Arc::new(TaskCell {
            state,
            is_known_to_owner: AtomicBool::new(false),
            deadline: Deadline::never(),
            id: TaskId::new(),
            name,
            owner,
            queued_ns: AtomicU64::new(0),
            activity: TaskActivity::default(),
            body: BodyOf(Mutex::new(Some(task))),
        })
    }

    pub(crate) fn id(&self) -> TaskId {
        self.id
    }

    pub(crate) fn name(&self) -> &'static TaskName {
        self.name
    }

    pub(crate) fn state(&self) -> &TaskState {
        &self.state
    }

    pub(crate) fn owner(&self) -> &Arc<OwnerCore> {
        &self.owner
    }

    pub(crate) fn pool(&self) -> &PoolCore {
        self.owner.pool()
    }

    pub(crate) fn body(&self) -> &dyn Body {
        &self.body
    }

    pub(crate) fn statistics(&self) -> &TaskStatistics {
        self.owner.statistics_of(self.name)
    }

    pub(crate) fn is_known_to_owner(&self) -> bool {
        self.is_known_to_owner.load(Ordering::Relaxed)
    }

    pub(crate) fn set_known_to_owner(&self) {
        self.is_known_to_owner.store(true, Ordering::Relaxed);
    }

    /// Sees to it that a run begins after this call, unless the task is dead.
    pub(crate) fn wake(self: &Arc<Self>) {
        if self.state.notify() == Then::Push {
            Self::push(self.clone(), &self.owner);
        }
    }

    /// Ends the task. False when it had ended before.
    pub(crate) fn cancel(self: &Arc<Self>) -> bool {
        let (then, was_alive) = self.state.cancel();
        if then == Then::Push {
            Self::push(self.clone(), &self.owner);
        }
        was_alive
    }

    /// Wakes the task when `duration` has passed.
    pub(crate) fn snooze(self: &Arc<Self>, duration: Duration, earlier: Earlier) {
        if self.state.is_dead() {
            return;
        }
        if duration.is_zero() {
            self.wake();
            return;
        }
        let pool = self.pool();
        pool.timers.arm(self, &pool.clock, duration, earlier);
        // Whoever destroys a task marks it dead first and removes its timer then; one of us two
        // sees the other.
        if self.state.is_dead() {
            pool.timers.remove(self);
        }
    }

    /// Puts `task` into its queue, as its state has told the caller to. `owner` is its owner: the
    /// task itself may be gone before this is done.
    pub(crate) fn push(task: Arc<Self>, owner: &OwnerCore) {
        let pool = owner.pool();
        let now = pool.clock.now();
        task.queued_ns.store(now.0, Ordering::Relaxed);
        if pool.queue(task.name.kind()).push(task) {
            pool.timers.watch(now);
        }
        owner.pushed();
    }

    /// Destroys the body and tells the owner. The caller holds no lock, and has been told to by
    /// the task's state.
    pub(crate) fn destroy(&self) {
        self.state.bury();
        self.pool().timers.remove(self);
        self.owner.within(|| self.body.destroy());
        self.owner.forget(self);
    }

    pub(crate) fn begin_statistics(&self, started: Instant) {
        self.activity.begin(started);
        let waited = started.since(self.queued_at());
        if let Some(limit) = self.name.kind().slow_schedule_limit()
            && waited > limit
        {
            self.log_slow_schedule(waited);
        }
    }

    /// `queued` is the time of the push that led to this run: it may have been pushed again.
    pub(crate) fn end_statistics(&self, queued: Instant, started: Instant, ended: Instant) {
        self.statistics().record(queued, started, ended);
        self.activity.end(started, ended);
        if ended.since(started) > self.name.expected_duration() {
            self.log_slow_run(ended.since(started));
        }
    }

    #[cold]
    fn log_slow_schedule(&self, waited: Duration) {
        tracing::warn!(
            task = self.name.name(),
            owner = self.owner.name(),
            ?waited,
            "a task has waited long for a thread; others may need more threads of its kind"
        );
    }

    #[cold]
    fn log_slow_run(&self, ran: Duration) {
        tracing::warn!(
            task = self.name.name(),
            owner = self.owner.name(),
            description = self.body.describe(),
            ?ran,
            expected = ?self.name.expected_duration(),
            "a task has run for longer than expected"
        );
    }

    /// What it is and does now.
    pub(crate) fn status(&self) -> TaskStatus {
        let state = if self.state.is_dead() {
            "dead"
        } else if self.state.is_running() {
            "running"
        } else if self.state.is_queued() {
            "ready"
        } else {
            "snoozed"
        };
        TaskStatus {
            id: self.id.0,
            name: self.name,
            state,
            description: self.body.describe(),
            due: self.pool().timers.due_time(self),
            queued: self.queued_at(),
            runs: self.activity.snapshot(),
        }
    }
}

impl Timed for TaskCell {
    fn deadline(&self) -> &Deadline {
        &self.deadline
    }
}

impl Sleeper for TaskCell {
    fn number(&self) -> u64 {
        self.id.0
    }

    fn on_deadline(self: Arc<Self>) {
        self.wake();
    }
}

impl Waiting for TaskCell {
    fn urgency(&self) -> u8 {
        self.name.urgency()
    }

    fn queued_at(&self) -> Instant {
        Instant(self.queued_ns.load(Ordering::Relaxed))
    }
}

impl fmt::Debug for TaskCell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TaskCell")
            .field("id", &self.id.0)
            .field("name", &self.name)
            .field("state", &self.state)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// A scheduled task, for those who wake it. Outlives the task; all calls are harmless then.
#[derive(Clone, Debug)]
pub struct TaskHandle(pub(crate) Arc<TaskCell>);

impl TaskHandle {
    /// A run begins after this call: at once when the task sleeps, after the present run when it
    /// runs. Several wakes before that run begins add up to one. Never waits.
    pub fn wake(&self) {
        self.0.wake();
    }

    /// A run begins when `duration` has passed, or earlier when the task is woken before or waits
    /// to run already. Replaces an earlier snooze. Never early; late by less than 18 ms and what
    /// threads need to wake up. Never waits for a run.
    pub fn snooze(&self, duration: Duration) {
        self.0.snooze(duration, Earlier::Replaced);
    }

    /// Ends the task: no run begins after this call. A run that has begun goes on to its end; the
    /// task is destroyed by the pool after it. False when the task had ended before.
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }

    /// Whether the task has ended or was cancelled.
    pub fn is_dead(&self) -> bool {
        self.0.state().is_dead()
    }

    /// The task's name.
    pub fn name(&self) -> &'static TaskName {
        self.0.name()
    }
}
