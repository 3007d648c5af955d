//! What the parts of a pool share: its clock, timers, queues and owners.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use platform::{Clock, Instant};

use crate::loops::SteppedLoop;
use crate::owner::core::OwnerCore;
use crate::owner::terms::Shutdown;
use crate::queue::RunQueue;
use crate::task::cell::TaskCell;
use crate::task::kind::TaskKind;
use crate::timers::Timers;

/// What all parts of a pool share.
#[derive(Debug)]
pub(crate) struct PoolCore {
    pub(crate) clock: Clock,
    pub(crate) timers: Timers<TaskCell>,
    queues: [RunQueue; TaskKind::ALL.len()],
    /// Whether tasks run on threads of the pool, or one by one when somebody says so.
    pub(crate) has_threads: bool,
    owners: Mutex<Owners>,
    /// The readiness loops of a pool without threads.
    loops: Mutex<Vec<Arc<SteppedLoop>>>,
    /// What the first task that panicked said.
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

#[derive(Debug, Default)]
struct Owners {
    all: Vec<Weak<OwnerCore>>,
    is_shut_down: bool,
}

impl PoolCore {
    pub(crate) fn new(clock: Clock, timers: Timers<TaskCell>, has_threads: bool) -> Self {
        Self {
            clock,
            timers,
            queues: Default::default(),
            has_threads,
            owners: Mutex::default(),
            loops: Mutex::default(),
            panic: Mutex::default(),
        }
    }

    pub(crate) fn queue(&self, kind: TaskKind) -> &RunQueue {
        &self.queues[kind as usize]
    }

    /// Wakes threads for tasks that have waited since before `limit` although some sleep. Answers
    /// whether younger ones wait.
    pub(crate) fn relieve_overdue(&self, limit: Instant) -> bool {
        self.queues.iter().fold(false, |waits, queue| queue.relieve_overdue(limit) | waits)
    }

    /// Keeps what a task said when it panicked, for whoever waits next.
    pub(crate) fn record_panic(&self, panic: Box<dyn Any + Send>) {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
    }

    /// Goes on with the panic of a task, if there was one.
    pub(crate) fn resume_panic(&self) {
        let panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    pub(crate) fn add_loop(&self, stepped: Arc<SteppedLoop>) {
        self.loops.lock().unwrap_or_else(PoisonError::into_inner).push(stepped);
    }

    /// The readiness loops of a pool without threads that are not over.
    pub(crate) fn loops(&self) -> Vec<Arc<SteppedLoop>> {
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        loops.retain(|stepped| !stepped.is_over());
        loops.clone()
    }

    /// Those get no more turns: what they hold, perhaps the pool itself, is let go of with their
    /// handles.
    pub(crate) fn forget_loops(&self) {
        let forgotten =
            std::mem::take(&mut *self.loops.lock().unwrap_or_else(PoisonError::into_inner));
        drop(forgotten);
    }

    pub(crate) fn add_owner(&self, owner: &Arc<OwnerCore>) {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        if owners.is_shut_down {
            owner.end_tasks(Shutdown::Force);
            return;
        }
        owners.all.retain(|owner| owner.strong_count() > 0);
        owners.all.push(Arc::downgrade(owner));
    }

    pub(crate) fn owners(&self) -> Vec<Arc<OwnerCore>> {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.all.iter().filter_map(Weak::upgrade).collect()
    }

    /// Takes no owners any more, and ends the tasks of all that there are, which it answers.
    pub(crate) fn end_all_owners(&self) -> Vec<Arc<OwnerCore>> {
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.is_shut_down = true;
        let all = std::mem::take(&mut owners.all);
        drop(owners);
        let all: Vec<_> = all.iter().filter_map(Weak::upgrade).collect();
        all.iter().for_each(|owner| owner.end_tasks(Shutdown::Force));
        all
    }

    /// How often a thread of the pool has returned from waiting.
    pub(crate) fn wakeups(&self) -> u64 {
        self.timers.wakeups() + self.queues.iter().map(RunQueue::wakeups).sum::<u64>()
    }

    /// Lets all threads go. All tasks have ended by then.
    pub(crate) fn stop_threads(&self) {
        self.timers.stop();
        self.queues.iter().for_each(RunQueue::stop);
    }
}
