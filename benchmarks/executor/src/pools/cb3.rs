//! The original's first design: one mutex over all tasks, a mutex and a heap or two for each kind.
//!
//! Re-created from a description of its structure. `schedule`, `wake` and `snooze` go through the
//! pool's mutex and find the task by its number; a queue has ready tasks by priority and future
//! tasks by wake time. To change the wake time of a future task is a linear search and, unless the
//! task is the last one of the heap, making the whole heap again. Every schedule and wake signals a
//! condition variable if anybody sleeps at it; sleeping workers look by themselves every two
//! seconds.

mod future_queue;
mod task_queue;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use executor::TaskKind;
use platform::{Clock, Instant, threads};

use super::original_task::{NEVER, OriginalTask};
use crate::pool_under_test::{ArmsTimers, PoolThreads, PoolUnderTest, WakesTasks};
use task_queue::TaskQueue;

/// The pool.
#[derive(Debug)]
pub struct Cb3 {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// A timer: the task's number, and what it does when it runs.
#[derive(Debug)]
pub struct Cb3Timer {
    id: u64,
    has_fired: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Shared {
    clock: Clock,
    next_id: AtomicU64,
    /// The mutex of the pool.
    locator: Mutex<BTreeMap<u64, Arc<OriginalTask>>>,
    queues: [TaskQueue; TaskKind::ALL.len()],
}

impl Shared {
    fn locator(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<OriginalTask>>> {
        self.locator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self, kind: TaskKind) -> &TaskQueue {
        &self.queues[kind as usize]
    }

    /// Adds a task; it runs when its wake time comes.
    fn schedule(
        &self,
        kind: TaskKind,
        wake_time: Instant,
        body: impl FnMut(&OriginalTask) -> bool + Send + 'static,
    ) -> u64 {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let task = Arc::new(OriginalTask::new(id, kind, wake_time, body));
        let mut locator = self.locator();
        locator.insert(id, task.clone());
        self.queue(kind).schedule(task);
        id
    }

    fn wake(&self, id: u64) -> bool {
        let locator = self.locator();
        let Some(task) = locator.get(&id) else { return false };
        self.queue(task.kind).wake(task, self.clock.now());
        true
    }

    fn snooze(&self, id: u64, delay: Duration) -> bool {
        let locator = self.locator();
        let Some(task) = locator.get(&id) else { return false };
        self.queue(task.kind).snooze(task, self.clock.now().after(delay));
        true
    }

    /// Forgets a task. Whoever drops the last reference destroys it, outside of the mutex.
    fn remove(&self, id: u64) -> Option<Arc<OriginalTask>> {
        let removed = self.locator().remove(&id);
        if let Some(task) = &removed {
            task.kill();
        }
        removed
    }

    fn work(&self, kind: TaskKind) {
        if kind.is_low_priority() {
            // A sandbox may forbid it; the pool works all the same.
            threads::set_own_nice(threads::NICE_LOWEST).ok();
        }
        let queue = self.queue(kind);
        while let Some(task) = queue.fetch(&self.clock) {
            if task.execute(&self.clock) {
                queue.reschedule(task, self.clock.now());
            } else {
                drop(self.remove(task.id));
            }
        }
    }
}

impl PoolUnderTest for Cb3 {
    const NAME: &'static str = "cb3";

    fn start(threads: PoolThreads) -> Self {
        let shared = Arc::new(Shared {
            clock: Clock::real(),
            next_id: AtomicU64::new(1),
            locator: Mutex::default(),
            queues: Default::default(),
        });
        let mut pool = Self { shared, threads: Vec::new() };
        for kind in TaskKind::ALL {
            for number in 0..threads.of(kind) {
                let shared = pool.shared.clone();
                let name = format!("{}{number}", kind.pool_name());
                let thread = threads::spawn(&name, move || shared.work(kind));
                pool.threads.push(thread.expect("there is room for threads"));
            }
        }
        pool
    }

    fn schedule(&self, job: impl FnOnce() + Send + 'static) {
        let mut job = Some(job);
        let now = self.shared.clock.now();
        self.shared.schedule(TaskKind::NonIo, now, move |_| {
            if let Some(job) = job.take() {
                job();
            }
            false
        });
    }

    fn shutdown(self) {
        self.shared.queues.iter().for_each(TaskQueue::stop);
        for thread in self.threads {
            thread.join().expect("tasks of benchmarks do not panic");
        }
        // The original cancels one by one, searching the heap for each; that is not measured.
        self.shared.queues.iter().for_each(TaskQueue::clear);
        let tasks = std::mem::take(&mut *self.shared.locator());
        drop(tasks);
    }
}

impl WakesTasks for Cb3 {
    type Sleeper = u64;

    fn sleeper(&self, mut run: impl FnMut() + Send + 'static) -> u64 {
        self.shared.schedule(TaskKind::NonIo, NEVER, move |task| {
            task.set_wake_time(NEVER);
            run();
            true
        })
    }

    fn wake(&self, sleeper: &u64) {
        assert!(self.shared.wake(*sleeper), "the sleeper was scheduled");
    }
}

impl ArmsTimers for Cb3 {
    type Timer = Cb3Timer;

    /// A snooze signals nobody: a sleeping worker sees it when it looks by itself.
    const TICK: Duration = task_queue::SLEEP_MAX;

    fn timer(&self) -> Cb3Timer {
        let has_fired = Arc::new(AtomicBool::new(false));
        let fired = has_fired.clone();
        let id = self.shared.schedule(TaskKind::NonIo, NEVER, move |task| {
            task.set_wake_time(NEVER);
            fired.store(true, Ordering::Release);
            true
        });
        Cb3Timer { id, has_fired }
    }

    fn arm(&self, timer: &mut Cb3Timer, delay: Duration) {
        assert!(self.shared.snooze(timer.id, delay), "the timer was scheduled");
    }

    fn has_fired(&self, timer: &Cb3Timer) -> bool {
        timer.has_fired.load(Ordering::Acquire)
    }
}
