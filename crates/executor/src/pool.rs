//! The pool: threads, queues and timers, and what users do with them.

use std::any::Any;
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use platform::{Clock, threads};

use crate::options::PoolOptions;
use crate::owner::{Owner, OwnerCore, OwnerIsGone, Shutdown};
use crate::run_queue::RunQueue;
use crate::statistics::{StatisticsByName, TaskStatisticsSnapshot};
use crate::task::{Next, Task, TaskClass, TaskContext, TaskKind, TaskName};
use crate::task_cell::{TaskCell, TaskHandle, TaskId};
use crate::worker;

/// Runs tasks. A handle: clones are the same pool. The pool shuts down when [`shutdown`] is called
/// or its last handle is dropped.
///
/// [`shutdown`]: ExecutorPool::shutdown
#[derive(Clone, Debug)]
pub struct ExecutorPool(Arc<Running>);

#[derive(Debug)]
struct Running {
    core: Arc<PoolCore>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What all parts of a pool share.
#[derive(Debug)]
pub(crate) struct PoolCore {
    pub(crate) clock: Clock,
    pub(crate) statistics: StatisticsByName,
    pub(crate) timers: crate::timers::Timers,
    queues: [RunQueue; TaskKind::ALL.len()],
    next_task_id: AtomicU64,
    /// Whether tasks run on threads of the pool, or one by one when somebody says so.
    has_threads: bool,
    owners: Mutex<Owners>,
    /// What the first task that panicked said.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

#[derive(Debug, Default)]
struct Owners {
    all: Vec<Weak<OwnerCore>>,
    is_shut_down: bool,
}

/// Names of the one-shot tasks of [`ExecutorPool::add`].
static ONE_SHOTS: [TaskName; TaskKind::ALL.len()] = [
    one_shot("OneShotReader", TaskKind::Reader),
    one_shot("OneShotWriter", TaskKind::Writer),
    one_shot("OneShotAuxIo", TaskKind::AuxIo),
    one_shot("OneShotNonIo", TaskKind::NonIo),
];

const fn one_shot(name: &'static str, kind: TaskKind) -> TaskName {
    TaskName {
        name,
        kind,
        class: TaskClass::Normal,
        priority: 0,
        expected_duration: Duration::from_secs(1),
    }
}

impl ExecutorPool {
    /// Starts the threads of `options` and one more for deadlines.
    pub fn start(clock: Clock, options: PoolOptions) -> io::Result<Self> {
        let pool = Self(Arc::new(Running {
            core: Arc::new(PoolCore::new(clock, true)),
            threads: Mutex::default(),
        }));
        for (kind, class, name) in options.thread_names() {
            let core = pool.0.core.clone();
            pool.start_thread(&name, move || {
                if kind.is_low_priority() {
                    // A sandbox may forbid it; the pool works all the same, less politely.
                    threads::set_own_nice(threads::NICE_LOWEST).ok();
                }
                worker::work(&core, kind, class);
            })?;
        }
        let core = pool.0.core.clone();
        pool.start_thread("TimerPool0", move || core.timers.run(&core.clock))?;
        Ok(pool)
    }

    /// A pool without threads, for [`crate::DeterministicPool`].
    pub(crate) fn without_threads(clock: Clock) -> Self {
        let core = Arc::new(PoolCore::new(clock, false));
        Self(Arc::new(Running { core, threads: Mutex::default() }))
    }

    fn start_thread(&self, name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let thread = threads::spawn(name, body)?;
        self.0.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        Ok(())
    }

    /// Registers an owner of tasks. On a pool that has shut down it is unregistered from the start.
    pub fn register_owner(&self, name: &str) -> Owner {
        let core = Arc::new(OwnerCore::new(name));
        self.0.core.add_owner(&core);
        Owner { core, pool: self.0.core.clone() }
    }

    /// Adds a task and runs it as soon as a thread is free.
    pub fn schedule(
        &self,
        owner: &Owner,
        name: &'static TaskName,
        task: impl Task + 'static,
    ) -> Result<TaskHandle, OwnerIsGone> {
        let handle = self.schedule_asleep(owner, name, task)?;
        handle.wake();
        Ok(handle)
    }

    /// Adds a task that runs when it is woken for the first time.
    pub fn schedule_asleep(
        &self,
        owner: &Owner,
        name: &'static TaskName,
        task: impl Task + 'static,
    ) -> Result<TaskHandle, OwnerIsGone> {
        let core = &self.0.core;
        assert!(Arc::ptr_eq(core, &owner.pool), "an owner belongs to the pool that registered it");
        let id = TaskId(core.next_task_id.fetch_add(1, Ordering::Relaxed));
        let cell = TaskCell::new(id, name, owner.core.clone(), core.clone(), Box::new(task));
        let cell = Arc::new(cell);
        owner.core.insert(&cell)?;
        Ok(TaskHandle(cell))
    }

    /// Runs `work` once on a thread of `kind`.
    pub fn add(
        &self,
        owner: &Owner,
        kind: TaskKind,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<TaskHandle, OwnerIsGone> {
        let mut work = Some(work);
        self.schedule(owner, &ONE_SHOTS[kind as usize], move |_: &TaskContext<'_>| {
            if let Some(work) = work.take() {
                work();
            }
            Next::Finished
        })
    }

    /// What the tasks have done, by name.
    pub fn statistics(&self) -> Vec<TaskStatisticsSnapshot> {
        self.0.core.statistics.snapshot()
    }

    /// How many tasks of `kind` wait for a thread.
    pub fn queued_count(&self, kind: TaskKind) -> usize {
        self.0.core.queue(kind).len()
    }

    /// How many tasks have a deadline.
    pub fn timer_count(&self) -> usize {
        self.0.core.timers.len()
    }

    /// How often a thread of the pool has returned from waiting. Stands still while nothing is due.
    pub fn wakeups(&self) -> u64 {
        let core = &self.0.core;
        core.timers.wakeups() + core.queues.iter().map(RunQueue::wakeups).sum::<u64>()
    }

    /// The clock that tells deadlines.
    pub fn clock(&self) -> &Clock {
        &self.0.core.clock
    }

    /// Unregisters all owners by force and ends all threads. A task must not do that: it would wait
    /// for itself.
    pub fn shutdown(&self) {
        self.0.shutdown();
        self.0.core.resume_panic();
    }

    pub(crate) fn core(&self) -> &PoolCore {
        &self.0.core
    }
}

impl Running {
    fn shutdown(&self) {
        self.core.end_all_owners();
        self.core.timers.stop();
        self.core.queues.iter().for_each(RunQueue::stop);
        let threads =
            std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            assert!(thread.join().is_ok(), "threads of the pool do not panic, only tasks do");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shutdown();
        if !std::thread::panicking() {
            self.core.resume_panic();
        }
    }
}

impl PoolCore {
    fn new(clock: Clock, has_threads: bool) -> Self {
        Self {
            clock,
            statistics: StatisticsByName::default(),
            timers: crate::timers::Timers::default(),
            queues: Default::default(),
            next_task_id: AtomicU64::new(0),
            has_threads,
            owners: Mutex::default(),
            panic: Mutex::default(),
        }
    }

    pub(crate) fn queue(&self, kind: TaskKind) -> &RunQueue {
        &self.queues[kind as usize]
    }

    /// Waits until the last task of `owner` has been destroyed; its tasks must be ending already.
    pub(crate) fn wait_until_destroyed(&self, owner: &OwnerCore) {
        if self.has_threads {
            owner.wait_until_empty();
        } else {
            self.run_until_empty(owner);
        }
        self.resume_panic();
    }

    /// Without threads nobody else ends the tasks of `owner`.
    fn run_until_empty(&self, owner: &OwnerCore) {
        while !owner.is_empty() {
            let task = TaskKind::ALL.iter().find_map(|&kind| self.queue(kind).try_pop());
            worker::process(task.expect("a task that ends is in a queue"));
        }
    }

    /// Keeps what a task said when it panicked, for whoever waits next.
    pub(crate) fn record_panic(&self, panic: Box<dyn Any + Send>) {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
    }

    /// Goes on with the panic of a task, if there was one.
    fn resume_panic(&self) {
        let panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn add_owner(&self, owner: &Arc<OwnerCore>) {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.is_shut_down {
            owner.end_tasks(Shutdown::Force);
            return;
        }
        owners.all.retain(|owner| owner.strong_count() > 0);
        owners.all.push(Arc::downgrade(owner));
    }

    fn end_all_owners(&self) {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.is_shut_down = true;
        let all = std::mem::take(&mut owners.all);
        drop(owners);
        let all: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|owner| owner.end_tasks(Shutdown::Force));
        for owner in &all {
            if self.has_threads {
                owner.wait_until_empty();
            } else {
                self.run_until_empty(owner);
            }
        }
    }
}
