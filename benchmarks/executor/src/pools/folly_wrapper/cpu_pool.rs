//! Threads that run tasks: for each kind a queue of tasks and an executor that is only notified.
//!
//! An executor receives one notification "take one from the queue of tasks" for each of them, so
//! that tasks can be taken out of their queue when their bucket goes. Thus a run costs two pushes
//! and two pops.

use std::collections::VecDeque;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use executor::TaskKind;
use platform::{Clock, Instant, threads};

use super::inbox::Inbox;
use super::throttled_semaphore::ThrottledSemaphore;
use crate::pool_under_test::PoolThreads;
use crate::pools::original_task::OriginalTask;

/// One pool for each kind.
#[derive(Debug)]
pub(super) struct CpuPools {
    clock: Clock,
    inbox: Arc<Inbox>,
    threads: PoolThreads,
    pools: [CpuPool; TaskKind::ALL.len()],
}

#[derive(Debug, Default)]
struct CpuPool {
    tasks: Mutex<VecDeque<Element>>,
    /// The executor: a queue, and how many elements are in it.
    notifications: Mutex<VecDeque<Notification>>,
    available: ThrottledSemaphore,
}

/// A task and what is to be done with it.
#[derive(Debug)]
enum Element {
    Run(Arc<OriginalTask>),
    /// Drops a reference on a thread of the right kind.
    Reset(Arc<OriginalTask>),
}

#[derive(Debug)]
enum Notification {
    /// Stamped as Folly stamps its tasks.
    TakeOne {
        _added: Instant,
    },
    Stop,
}

impl CpuPools {
    pub(super) fn new(clock: Clock, inbox: Arc<Inbox>, threads: PoolThreads) -> Self {
        Self { clock, inbox, threads, pools: Default::default() }
    }

    pub(super) fn start_threads(pools: &Arc<Self>) -> Vec<JoinHandle<()>> {
        let mut started = Vec::new();
        for kind in TaskKind::ALL {
            for number in 0..pools.threads.of(kind) {
                let pools = pools.clone();
                let name = format!("{}{number}", kind.pool_name());
                let thread = threads::spawn(&name, move || pools.work(kind));
                started.push(thread.expect("there is room for threads"));
            }
        }
        started
    }

    /// Queues a run.
    pub(super) fn run(&self, task: Arc<OriginalTask>) {
        self.add(task.kind, Element::Run(task));
    }

    /// Queues the end of a reference.
    pub(super) fn reset(&self, task: Arc<OriginalTask>) {
        self.add(task.kind, Element::Reset(task));
    }

    /// Ends all threads after what is queued.
    pub(super) fn stop(&self) {
        for kind in TaskKind::ALL {
            for _ in 0..self.threads.of(kind) {
                self.pools[kind as usize].notify(Notification::Stop);
            }
        }
    }

    fn add(&self, kind: TaskKind, element: Element) {
        let pool = &self.pools[kind as usize];
        lock(&pool.tasks).push_back(element);
        pool.notify(Notification::TakeOne { _added: self.clock.now() });
    }

    fn work(&self, kind: TaskKind) {
        if kind.is_low_priority() {
            // A sandbox may forbid it; the pool works all the same.
            threads::set_own_nice(threads::NICE_LOWEST).ok();
        }
        let pool = &self.pools[kind as usize];
        loop {
            pool.available.wait();
            let notification = lock(&pool.notifications).pop_front();
            match notification {
                Some(Notification::TakeOne { .. }) => self.take_one(pool),
                Some(Notification::Stop) => return,
                None => panic!("the semaphore counts the notifications"),
            }
        }
    }

    fn take_one(&self, pool: &CpuPool) {
        // Orders the look into the queue after everything before the notification.
        fence(Ordering::SeqCst);
        let element = lock(&pool.tasks).pop_front();
        match element {
            Some(Element::Run(task)) => {
                if !task.execute(&self.clock) {
                    task.kill();
                }
                let id = task.id;
                self.inbox.post(move |scheduler| scheduler.after_run(id));
            }
            Some(Element::Reset(task)) => drop(task),
            None => {}
        }
    }
}

impl CpuPool {
    fn notify(&self, notification: Notification) {
        lock(&self.notifications).push_back(notification);
        self.available.post();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
