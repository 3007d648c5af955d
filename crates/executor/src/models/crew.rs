//! A pool whose threads are the model's.

use std::sync::Arc;
use std::time::Duration;

use platform::{Clock, WallTime};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

use crate::pool::ExecutorPool;
use crate::task::kind::{TaskClass, TaskKind};
use crate::task::name::TaskName;
use crate::task::{Next, TaskContext};
use crate::threads::work::work;
use crate::threads::worker::Worker;

const KIND: TaskKind = TaskKind::NonIo;

pub(super) static NORMAL: TaskName = TaskName::new("Normal", KIND);
pub(super) static QUICK: TaskName = TaskName::new("Quick", KIND).quick();
/// Believed to end at once.
pub(super) static BRIEF: TaskName = TaskName::new("Brief", KIND).expected(Duration::ZERO);

/// A pool of one kind of task, on simulated time.
pub(super) struct Crew {
    pub(super) pool: ExecutorPool,
    workers: Vec<(Arc<Worker>, thread::JoinHandle<()>)>,
}

impl Crew {
    pub(super) fn new(classes: &[TaskClass]) -> Self {
        let pool = ExecutorPool::without_threads(Clock::simulated(WallTime(0)));
        let mut crew = Self { pool, workers: Vec::new() };
        classes.iter().for_each(|&class| crew.start(class));
        crew
    }

    pub(super) fn start(&mut self, class: TaskClass) {
        let worker = Arc::new(Worker::new(KIND, class, false));
        let (pool, body) = (self.pool.clone(), worker.clone());
        self.workers.push((worker, thread::spawn(move || work(&body, pool.core()))));
    }

    /// As [`ExecutorPool::set_threads`] ends one.
    pub(super) fn retire(&self, index: usize) {
        let worker = &self.workers[index].0;
        worker.retire();
        let queue = self.pool.core().queue(KIND);
        queue.dismiss(worker);
        queue.relieve();
    }

    pub(super) fn relieve(&self) {
        self.pool.core().queue(KIND).relieve();
    }

    /// Ends all threads.
    pub(super) fn stop(self) {
        self.pool.core().queue(KIND).stop();
        self.workers.into_iter().for_each(|(_, thread)| thread.join().unwrap());
    }
}

/// Counts up to something that threads wait for.
#[derive(Default)]
pub(super) struct Tally(Mutex<u32>, Condvar);

impl Tally {
    pub(super) fn add(&self) {
        *self.0.lock().unwrap() += 1;
        self.1.notify_all();
    }

    pub(super) fn count(&self) -> u32 {
        *self.0.lock().unwrap()
    }

    pub(super) fn wait_for(&self, count: u32) {
        let mut sum = self.0.lock().unwrap();
        while *sum < count {
            sum = self.1.wait(sum).unwrap();
        }
    }
}

/// A task that adds to a tally, once.
pub(super) fn adds_to(tally: &Arc<Tally>) -> impl FnMut(&TaskContext<'_>) -> Next + Send + use<> {
    let tally = tally.clone();
    move |_| {
        tally.add();
        Next::Finished
    }
}
