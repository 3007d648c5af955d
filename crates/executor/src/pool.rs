//! The pool as its users see it: it starts, takes tasks, tells of them, and ends.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use platform::Clock;

use crate::loop_handle::LoopHandle;
use crate::loops::{self, Looping, SteppedLoop};
use crate::options::{PoolOptions, ThreadCounts};
use crate::owner::core::OwnerCore;
use crate::owner::terms::{OwnerIsGone, OwnerScope};
use crate::owner::{Owner, wait_until_empty};
use crate::pool_core::PoolCore;
use crate::statistics::{TaskStatisticsSnapshot, Workload};
use crate::task::cell::{TaskCell, TaskHandle};
use crate::task::kind::{TaskClass, TaskKind};
use crate::task::name::TaskName;
use crate::task::state::TaskState;
use crate::task::{Next, Task, TaskContext};
use crate::threads::Threads;
use crate::threads::work::process;
use crate::timers::{Resolution, Timers};

/// Runs tasks. A handle: clones are the same pool. The pool shuts down when [`shutdown`] is called
/// or its last handle is dropped.
///
/// [`shutdown`]: ExecutorPool::shutdown
#[derive(Clone, Debug)]
pub struct ExecutorPool(Arc<Running>);

#[derive(Debug)]
struct Running {
    core: Arc<PoolCore>,
    threads: Mutex<Threads>,
}

/// Shards of timers for each CPU, so that threads seldom meet at one.
const TIMER_SHARDS_PER_CPU: usize = 4;

/// Names of the one-shot tasks of [`ExecutorPool::add`].
static ONE_SHOTS: [TaskName; TaskKind::ALL.len()] = [
    one_shot("OneShotReader", TaskKind::Reader),
    one_shot("OneShotWriter", TaskKind::Writer),
    one_shot("OneShotAuxIo", TaskKind::AuxIo),
    one_shot("OneShotNonIo", TaskKind::NonIo),
];

const fn one_shot(name: &'static str, kind: TaskKind) -> TaskName {
    TaskName::new(name, kind).priority(0).expected(Duration::from_secs(1))
}

impl ExecutorPool {
    /// Starts the threads of `options` and one more for deadlines.
    pub fn start(clock: Clock, options: PoolOptions) -> io::Result<Self> {
        let shards = platform::threads::available_cpus() * TIMER_SHARDS_PER_CPU;
        let timers = Timers::new(Resolution::TenMilliseconds, shards.next_power_of_two());
        let pool = Self(Arc::new(Running {
            core: Arc::new(PoolCore::new(clock, timers, true)),
            threads: Mutex::new(Threads::new(&options)),
        }));
        pool.threads_mut().start_timer(&pool.0.core)?;
        for kind in TaskKind::ALL {
            pool.set_threads(kind, options.threads(kind))?;
        }
        Ok(pool)
    }

    /// A pool without threads, for [`crate::DeterministicPool`].
    pub(crate) fn without_threads(clock: Clock) -> Self {
        let core = Arc::new(PoolCore::new(clock, Timers::new(Resolution::Exact, 1), false));
        Self(Arc::new(Running { core, threads: Mutex::default() }))
    }

    /// Starts or ends threads of `kind` until there are `counts`. A thread that is to end finishes
    /// its task first; this does not wait for it. No task is lost: what waits is run by the other
    /// threads, or by later ones when there are none. On an error some threads may be missing.
    pub fn set_threads(&self, kind: TaskKind, counts: ThreadCounts) -> io::Result<()> {
        self.threads_mut().set_counts(&self.0.core, kind, counts)
    }

    /// The threads of `kind`, without those that are about to end.
    pub fn threads(&self, kind: TaskKind) -> ThreadCounts {
        self.threads_mut().counts(kind)
    }

    fn threads_mut(&self) -> MutexGuard<'_, Threads> {
        self.0.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers an owner of tasks. On a pool that has shut down it is unregistered from the start.
    pub fn register_owner(&self, name: &str) -> Owner {
        self.register(OwnerCore::new(name, self.0.core.clone(), None))
    }

    /// Registers an owner whose tasks run, and are destroyed, within `scope`.
    pub fn register_owner_within(&self, name: &str, scope: impl OwnerScope + 'static) -> Owner {
        self.register(OwnerCore::new(name, self.0.core.clone(), Some(Box::new(scope))))
    }

    fn register(&self, owner: OwnerCore) -> Owner {
        let core = Arc::new(owner);
        self.0.core.add_owner(&core);
        Owner { core }
    }

    /// Adds a task and runs it as soon as a thread is free.
    pub fn schedule(
        &self,
        owner: &Owner,
        name: &'static TaskName,
        task: impl Task + 'static,
    ) -> Result<TaskHandle, OwnerIsGone> {
        let cell = self.enter(owner, name, TaskState::notified(), task)?;
        TaskCell::push(cell.clone(), &owner.core);
        Ok(TaskHandle(cell))
    }

    /// Adds a task, as [`ExecutorPool::schedule`] does, of which nobody needs a handle.
    pub fn schedule_detached(
        &self,
        owner: &Owner,
        name: &'static TaskName,
        task: impl Task + 'static,
    ) -> Result<(), OwnerIsGone> {
        let cell = self.enter(owner, name, TaskState::notified(), task)?;
        TaskCell::push(cell, &owner.core);
        Ok(())
    }

    /// Adds a task that runs when it is woken for the first time.
    pub fn schedule_asleep(
        &self,
        owner: &Owner,
        name: &'static TaskName,
        task: impl Task + 'static,
    ) -> Result<TaskHandle, OwnerIsGone> {
        let cell = self.enter(owner, name, TaskState::asleep(), task)?;
        if !owner.core.admit_sleeper(&cell) {
            cell.destroy();
            return Err(OwnerIsGone);
        }
        Ok(TaskHandle(cell))
    }

    fn enter(
        &self,
        owner: &Owner,
        name: &'static TaskName,
        state: TaskState,
        task: impl Task + 'static,
    ) -> Result<Arc<TaskCell>, OwnerIsGone> {
        let is_own = std::ptr::eq(&*self.0.core, owner.core.pool());
        assert!(is_own, "an owner belongs to the pool that registered it");
        owner.core.enter()?;
        Ok(TaskCell::new(name, owner.core.clone(), state, task))
    }

    /// Runs `work` once on a thread of `kind`.
    pub fn add(
        &self,
        owner: &Owner,
        kind: TaskKind,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), OwnerIsGone> {
        let mut work = Some(work);
        self.schedule_detached(owner, &ONE_SHOTS[kind as usize], move |_: &TaskContext<'_>| {
            if let Some(work) = work.take() {
                work();
            }
            Next::Finished
        })
    }

    /// Starts a readiness loop on a thread of its own, or, in a pool without threads, among what is
    /// run step by step. Linux shows the first 15 bytes of `name`.
    pub fn spawn_loop(&self, name: &str, looping: impl Looping) -> io::Result<LoopHandle> {
        if self.0.core.has_threads {
            let thread = platform::threads::spawn(name, move || loops::run(looping))?;
            return Ok(LoopHandle::of_thread(thread));
        }
        let stepped = Arc::new(SteppedLoop::new(name, Box::new(looping), self.clock()));
        self.0.core.add_loop(Arc::clone(&stepped));
        Ok(LoopHandle::of_steps(stepped, self.clock().clone()))
    }

    /// Whether tasks run by themselves, or one by one when somebody says so.
    pub fn has_threads(&self) -> bool {
        self.0.core.has_threads
    }

    /// In a pool without threads runs one task on the caller, who waits for what tasks do. Whether
    /// there was one.
    pub fn help(&self) -> bool {
        let core = &self.0.core;
        if core.has_threads {
            return false;
        }
        let task = TaskKind::ALL.iter().find_map(|&kind| core.queue(kind).try_pop());
        task.map(|task| process(task, core.clock.now())).is_some()
    }

    /// What the tasks of all owners have done, by name.
    pub fn statistics(&self) -> Vec<TaskStatisticsSnapshot> {
        let mut by_name = BTreeMap::<_, TaskStatisticsSnapshot>::new();
        for task in self.0.core.owners().iter().flat_map(|owner| owner.statistics()) {
            match by_name.get_mut(task.name.name()) {
                Some(known) => known.merge(&task),
                None => {
                    by_name.insert(task.name.name(), task);
                }
            }
        }
        by_name.into_values().collect()
    }

    /// The threads of each kind and what waits for them.
    pub fn workload(&self) -> [Workload; TaskKind::ALL.len()] {
        let threads = self.threads_mut();
        TaskKind::ALL.map(|kind| {
            let (queue, counts) = (self.0.core.queue(kind), threads.counts(kind));
            Workload {
                kind,
                normal_threads: counts.normal,
                quick_threads: counts.quick,
                sleeping_threads: queue.sleeping_count(),
                normal_ready: queue.len(TaskClass::Normal),
                quick_ready: queue.len(TaskClass::Quick),
            }
        })
    }

    /// How many tasks of `kind` wait for a thread.
    pub fn queued_count(&self, kind: TaskKind) -> usize {
        let queue = self.0.core.queue(kind);
        queue.len(TaskClass::Quick) + queue.len(TaskClass::Normal)
    }

    /// How many tasks the timer thread has in view: those with a deadline, and those whose
    /// deadline was cleared before the time at which it was to be looked at.
    pub fn timer_count(&self) -> usize {
        self.0.core.timers.len()
    }

    /// How often a thread of the pool has returned from waiting. Stands still while nothing is due.
    pub fn wakeups(&self) -> u64 {
        self.0.core.wakeups()
    }

    /// The clock that tells deadlines.
    pub fn clock(&self) -> &Clock {
        &self.0.core.clock
    }

    /// Unregisters all owners by force and ends all threads. Loops without a thread get no more
    /// turns; the others end as they are told to. A task must not do that: it would wait
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
        for owner in self.core.end_all_owners() {
            wait_until_empty(&self.core, &owner);
        }
        self.core.forget_loops();
        self.core.stop_threads();
        self.threads.lock().unwrap_or_else(PoisonError::into_inner).join();
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
