//! One task: its body, the word that says where it is, and the handle that others hold.
//!
//! ```text
//!              wake: push                      a worker takes it
//!   IDLE ----------------------> NOTIFIED ----------------------> RUNNING
//!    ^                              ^                               |  | wake
//!    |                              |  `Again`: push                |  v
//!    |                              +-------------------------------+ RUNNING|NOTIFIED
//!    |                              |  push                         |  |
//!    |                              +----------------------------------+
//!    |  `Sleep`, `SleepFor`                                         |
//!    +--------------------------------------------------------------+
//! ```
//!
//! `NOTIFIED` without `RUNNING` means: in a run queue, exactly once. `DEAD` may join any state and
//! never leaves; a cancelled task passes through a queue like a woken one, so that a worker
//! destroys it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use platform::Instant;

use crate::owner::OwnerCore;
use crate::pool::PoolCore;
use crate::statistics::TaskStatistics;
use crate::task::{Task, TaskName};
use crate::timers::Earlier;

const IDLE: u8 = 0;
const NOTIFIED: u8 = 1;
const RUNNING: u8 = 2;
const DEAD: u8 = 4;

/// Unique within a pool, in the order of scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaskId(pub(crate) u64);

/// What a pool, its queues and its handles share of one task.
pub(crate) struct TaskCell {
    id: TaskId,
    name: &'static TaskName,
    statistics: Arc<TaskStatistics>,
    owner: Arc<OwnerCore>,
    pool: Arc<PoolCore>,
    state: AtomicU8,
    /// When it was pushed last, in nanoseconds of [`Instant`].
    queued_ns: AtomicU64,
    /// Whether [`crate::timers::Timers`] holds a deadline; written under its lock.
    is_armed: AtomicBool,
    /// `None` once destroyed. Locked by the worker that runs or destroys the task, by nobody else.
    body: Mutex<Option<Box<dyn Task>>>,
}

/// What a run left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AfterRun {
    /// It sleeps.
    Idle,
    /// It must be pushed to its queue.
    Queued,
    /// It must be destroyed.
    Dead,
}

impl TaskCell {
    pub(crate) fn new(
        id: TaskId,
        name: &'static TaskName,
        owner: Arc<OwnerCore>,
        pool: Arc<PoolCore>,
        body: Box<dyn Task>,
    ) -> Self {
        Self {
            id,
            name,
            statistics: pool.statistics.of(name),
            owner,
            pool,
            state: AtomicU8::new(IDLE),
            queued_ns: AtomicU64::new(0),
            is_armed: AtomicBool::new(false),
            body: Mutex::new(Some(body)),
        }
    }

    pub(crate) fn id(&self) -> TaskId {
        self.id
    }

    pub(crate) fn name(&self) -> &'static TaskName {
        self.name
    }

    pub(crate) fn statistics(&self) -> &TaskStatistics {
        &self.statistics
    }

    pub(crate) fn owner(&self) -> &OwnerCore {
        &self.owner
    }

    pub(crate) fn pool(&self) -> &PoolCore {
        &self.pool
    }

    pub(crate) fn queued_at(&self) -> Instant {
        Instant(self.queued_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state.load(Ordering::Acquire) & DEAD != 0
    }

    pub(crate) fn set_armed(&self, is_armed: bool) {
        self.is_armed.store(is_armed, Ordering::Relaxed);
    }

    pub(crate) fn is_armed(&self) -> bool {
        self.is_armed.load(Ordering::Relaxed)
    }

    pub(crate) fn body(&self) -> MutexGuard<'_, Option<Box<dyn Task>>> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sees to it that a run begins after this call, unless the task is dead.
    pub(crate) fn wake(self: &Arc<Self>) {
        if self.state.fetch_or(NOTIFIED, Ordering::AcqRel) == IDLE {
            self.push();
        }
    }

    /// Ends the task. False when it had ended before.
    pub(crate) fn cancel(self: &Arc<Self>) -> bool {
        let before = self.state.fetch_or(DEAD | NOTIFIED, Ordering::AcqRel);
        if before == IDLE {
            self.push();
        }
        before & DEAD == 0
    }

    /// Wakes the task when `duration` has passed.
    pub(crate) fn snooze(self: &Arc<Self>, duration: Duration, earlier: Earlier) {
        if self.is_dead() {
            return;
        }
        let deadline = self.pool.clock.now().after(duration);
        self.pool.timers.arm(self, deadline, earlier);
        // Whoever destroys a task marks it dead first and disarms it then; one of us two sees the
        // other.
        if self.is_dead() {
            self.pool.timers.disarm(self);
        }
    }

    /// From queued to running. False when it must be destroyed instead.
    pub(crate) fn begin_run(&self) -> bool {
        // The deadline goes before the state changes: one that is set from here on is kept.
        if self.is_armed() {
            self.pool.timers.disarm(self);
        }
        let before = self.state.fetch_xor(NOTIFIED | RUNNING, Ordering::AcqRel);
        assert!(before & RUNNING == 0, "a task never runs twice at the same time");
        assert!(before & NOTIFIED != 0, "only a queued task begins to run");
        before & DEAD == 0
    }

    /// From running to queued, because the task has more to do.
    pub(crate) fn end_run_with_more_to_do(&self) -> AfterRun {
        self.state.fetch_or(NOTIFIED, Ordering::AcqRel);
        self.end_run()
    }

    /// From running to idle, or to queued when it was woken meanwhile.
    pub(crate) fn end_run(&self) -> AfterRun {
        let before = self.state.fetch_and(!RUNNING, Ordering::AcqRel);
        if before & DEAD != 0 {
            AfterRun::Dead
        } else if before & NOTIFIED != 0 {
            AfterRun::Queued
        } else {
            AfterRun::Idle
        }
    }

    /// From running to dead, unless it was woken meanwhile and must run again.
    pub(crate) fn end_last_run(&self) -> AfterRun {
        let dead = self.state.compare_exchange(RUNNING, DEAD, Ordering::AcqRel, Ordering::Acquire);
        if dead.is_ok() { AfterRun::Dead } else { self.end_run() }
    }

    /// Puts the task into its queue. Only who made it `NOTIFIED` without `RUNNING` may do so.
    pub(crate) fn push(self: &Arc<Self>) {
        self.queued_ns.store(self.pool.clock.now().0, Ordering::Relaxed);
        self.pool.queue(self.name.kind).push(self.clone());
    }

    /// Destroys the body and tells the owner. The caller holds no lock.
    pub(crate) fn destroy(&self) {
        self.state.fetch_or(DEAD | NOTIFIED, Ordering::AcqRel);
        self.pool.timers.disarm(self);
        let body = self.body().take();
        drop(body);
        self.owner.remove(self.id);
    }
}

impl fmt::Debug for TaskCell {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.load(Ordering::Relaxed);
        formatter
            .debug_struct("TaskCell")
            .field("id", &self.id.0)
            .field("name", &self.name.name)
            .field("is_queued", &(state & (RUNNING | NOTIFIED) == NOTIFIED))
            .field("is_running", &(state & RUNNING != 0))
            .field("is_dead", &(state & DEAD != 0))
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
    /// to run already. Replaces an earlier snooze. Never waits for a run.
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
        self.0.is_dead()
    }

    /// The task's name.
    pub fn name(&self) -> &'static TaskName {
        self.0.name()
    }
}
