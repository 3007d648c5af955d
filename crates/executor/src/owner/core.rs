//! What the tasks of an owner share: their list, their statistics, and how they are ended.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::owner::terms::{OwnerIsGone, OwnerScope, Shutdown};
use crate::pool_core::PoolCore;
use crate::statistics::{TaskStatistics, TaskStatisticsSnapshot, TaskStatus};
use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, lock, wait};
use crate::task::cell::TaskCell;
use crate::task::id::TaskId;
use crate::task::kind::TaskKind;
use crate::task::name::{TASK_NAMES_MAX, TaskName};
use crate::task::state::Then;

/// The shared part of an [`Owner`](crate::Owner). The order of the fields is kept: the first one
/// shares its cache lines with the reference count, since who schedules or destroys a task changes
/// both, and with nothing else, since all the others are only read.
#[repr(C)]
pub(crate) struct OwnerCore {
    /// How many tasks have not been destroyed.
    task_count: AtomicU64,
    _to_the_next_lines: [u64; 13],
    /// What is to become of them: 0, or [`ENDING`], or that and [`FORCED`].
    orders: AtomicU8,
    name: String,
    pool: Arc<PoolCore>,
    scope: Option<Box<dyn OwnerScope>>,
    /// Tasks that have slept. A task that has not is running or in a queue.
    sleepers: Mutex<BTreeMap<TaskId, Arc<TaskCell>>>,
    /// By the index of the name.
    statistics: Box<[OnceLock<Box<TaskStatistics>>]>,
    /// How often, while the owner ends, a task was pushed or the last one was destroyed.
    changes: Mutex<u64>,
    changed: Condvar,
}

/// The owner is being unregistered.
const ENDING: u8 = 1;
/// It is being unregistered by force.
const FORCED: u8 = 2;

/// What an owner wants of its tasks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Orders(u8);

impl Orders {
    fn is_ending(self) -> bool {
        self.0 & ENDING != 0
    }

    fn is_forced(self) -> bool {
        self.0 & FORCED != 0
    }

    /// Whether tasks end after their next run.
    pub(crate) fn is_draining(self) -> bool {
        self.is_ending() && !self.is_forced()
    }

    /// Whether `task` must be destroyed rather than run.
    pub(crate) fn forbids_run_of(self, task: &TaskCell) -> bool {
        self.is_forced() || self.is_ending() && !task.name().runs_before_shutdown()
    }
}

impl OwnerCore {
    pub(crate) fn new(name: &str, pool: Arc<PoolCore>, scope: Option<Box<dyn OwnerScope>>) -> Self {
        Self {
            task_count: AtomicU64::new(0),
            _to_the_next_lines: [0; 13],
            orders: AtomicU8::new(0),
            name: name.to_owned(),
            pool,
            scope,
            sleepers: Mutex::default(),
            statistics: std::iter::repeat_with(OnceLock::new).take(TASK_NAMES_MAX).collect(),
            changes: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn pool(&self) -> &PoolCore {
        &self.pool
    }

    pub(crate) fn orders(&self) -> Orders {
        Orders(self.orders.load(Ordering::SeqCst))
    }

    /// Counts a task in, unless the owner is gone. Who enters writes the count and then reads the
    /// orders, who unregisters writes the orders and then reads the count, all in one order: at
    /// least one of them sees the other.
    pub(crate) fn enter(&self) -> Result<(), OwnerIsGone> {
        self.task_count.fetch_add(1, Ordering::SeqCst);
        if self.orders().is_ending() {
            self.leave();
            return Err(OwnerIsGone);
        }
        Ok(())
    }

    /// Counts a task out.
    fn leave(&self) {
        let before = self.task_count.fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0, "a task is destroyed once");
        if before == 1 && self.orders().is_ending() {
            self.notify_changed();
        }
    }

    /// A task that is about to sleep for the first time is entered in the list. False when the
    /// owner ends its tasks: it would not be found.
    pub(crate) fn admit_sleeper(&self, task: &Arc<TaskCell>) -> bool {
        let mut sleepers = lock(&self.sleepers);
        if self.orders().is_ending() {
            return false;
        }
        task.set_known_to_owner();
        sleepers.insert(task.id(), task.clone());
        true
    }

    /// Counts a destroyed task out.
    pub(crate) fn forget(&self, task: &TaskCell) {
        if task.is_known_to_owner() {
            let sleeper = lock(&self.sleepers).remove(&task.id());
            assert!(sleeper.is_some(), "a task is destroyed once");
        }
        self.leave();
    }

    /// A task was pushed: whoever waits for the end of all must look at the queues again.
    pub(crate) fn pushed(&self) {
        if self.orders().is_ending() {
            self.notify_changed();
        }
    }

    /// Refuses further tasks and sees to it that those which are left end soon.
    pub(crate) fn end_tasks(&self, shutdown: Shutdown) {
        // Force stays force: a drain that comes later has nothing to run.
        let orders = match shutdown {
            Shutdown::Drain => ENDING,
            Shutdown::Force => ENDING | FORCED,
        };
        let orders = Orders(self.orders.fetch_or(orders, Ordering::SeqCst) | orders);
        // Under this lock a task goes to sleep, or sees the orders.
        let sleepers: Vec<_> = lock(&self.sleepers).values().cloned().collect();
        for task in sleepers {
            if !orders.forbids_run_of(&task) {
                task.wake();
            } else if task.state().cancel().0 == Then::Push {
                task.destroy();
            }
        }
        self.destroy_queued();
    }

    /// Destroys the tasks that wait for a thread and would not run there.
    fn destroy_queued(&self) {
        let orders = self.orders();
        let is_unwanted = |task: &TaskCell| {
            std::ptr::eq(&**task.owner(), self)
                && (task.state().is_dead() || orders.forbids_run_of(task))
        };
        for kind in TaskKind::ALL {
            for task in self.pool.queue(kind).extract(is_unwanted) {
                task.destroy();
            }
        }
    }

    pub(crate) fn task_count(&self) -> u64 {
        self.task_count.load(Ordering::SeqCst)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.task_count() == 0
    }

    /// Waits until the last task has been destroyed; they must be ending already.
    pub(crate) fn wait_until_empty(&self) {
        let mut changes = lock(&self.changes);
        while !self.is_empty() {
            let seen = *changes;
            drop(changes);
            self.destroy_queued();
            changes = lock(&self.changes);
            while *changes == seen && !self.is_empty() {
                changes = wait(&self.changed, changes);
            }
        }
    }

    fn notify_changed(&self) {
        *lock(&self.changes) += 1;
        self.changed.notify_all();
    }

    /// Does `work` on behalf of this owner.
    pub(crate) fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let Some(scope) = &self.scope else { return work() };
        let (mut work, mut answer) = (Some(work), None);
        scope.within(&mut || answer = work.take().map(|work| work()));
        answer.expect("a scope does the work that it is given, once")
    }

    /// The statistics of `name`, begun when it is new.
    pub(crate) fn statistics_of(&self, name: &'static TaskName) -> &TaskStatistics {
        self.statistics[name.index()].get_or_init(|| Box::new(TaskStatistics::new(name)))
    }

    pub(crate) fn statistics(&self) -> Vec<TaskStatisticsSnapshot> {
        let known = self.statistics.iter().filter_map(OnceLock::get);
        let mut all: Vec<_> = known.map(|statistics| statistics.snapshot()).collect();
        all.sort_by_key(|task| task.name.name());
        all
    }

    pub(crate) fn tasks(&self) -> Vec<TaskStatus> {
        let mut tasks: BTreeMap<TaskId, Arc<TaskCell>> = lock(&self.sleepers).clone();
        for kind in TaskKind::ALL {
            self.pool.queue(kind).for_each(|task| {
                if std::ptr::eq(&**task.owner(), self) {
                    tasks.insert(task.id(), task.clone());
                }
            });
        }
        tasks.values().map(|task| task.status()).collect()
    }
}

impl fmt::Debug for OwnerCore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OwnerCore")
            .field("name", &self.name)
            .field("task_count", &self.task_count())
            .field("orders", &self.orders())
            .finish_non_exhaustive()
    }
}
