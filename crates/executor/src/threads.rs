//! The threads of a pool: started, ended and counted.

pub(crate) mod patience;
mod upkeep;
pub(crate) mod work;
pub(crate) mod worker;

use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use platform::threads;

use crate::options::{PoolOptions, ThreadCounts, thread_name};
use crate::pool_core::PoolCore;
use crate::task::kind::{TaskClass, TaskKind};
use crate::threads::patience::measure_wake_cost;
use crate::threads::work::work;
use crate::threads::worker::Worker;

/// All threads that a pool has started and not joined.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// The CPUs that they may run on; all when `None`.
    cpus: Option<Arc<[usize]>>,
    gives_memory_back: bool,
    workers: Vec<WorkerThread>,
    timer: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct WorkerThread {
    kind: TaskKind,
    /// Unique among the threads of its kind and class, from 0 on.
    number: usize,
    worker: Arc<Worker>,
    thread: JoinHandle<()>,
}

impl Threads {
    pub(crate) fn new(options: &PoolOptions) -> Self {
        Self {
            cpus: options.cpus.clone().map(Arc::from),
            gives_memory_back: options.gives_memory_back,
            workers: Vec::new(),
            timer: None,
        }
    }

    /// Starts the thread that waits for deadlines.
    pub(crate) fn start_timer(&mut self, core: &Arc<PoolCore>) -> io::Result<()> {
        let core = core.clone();
        self.timer = Some(self.spawn("TimerPool0", move || {
            measure_wake_cost();
            core.timers.run(&core.clock, |limit| core.relieve_overdue(limit));
        })?);
        Ok(())
    }

    /// Starts or ends threads of `kind` until there are `counts`. Those that are to end finish the
    /// task that they run; what waits in the queue is left to the others, or to later ones.
    pub(crate) fn set_counts(
        &mut self,
        core: &Arc<PoolCore>,
        kind: TaskKind,
        counts: ThreadCounts,
    ) -> io::Result<()> {
        self.join_finished();
        for class in [TaskClass::Normal, TaskClass::Quick] {
            while self.count(kind, class) < counts.of(class) {
                self.start(core, kind, class)?;
            }
            while self.count(kind, class) > counts.of(class) {
                self.retire_one(core, kind, class);
            }
        }
        core.queue(kind).relieve();
        Ok(())
    }

    /// The threads of `kind` that are not about to end.
    pub(crate) fn counts(&self, kind: TaskKind) -> ThreadCounts {
        ThreadCounts {
            normal: self.count(kind, TaskClass::Normal),
            quick: self.count(kind, TaskClass::Quick),
        }
    }

    /// Waits for the end of all threads, which have been told to end.
    pub(crate) fn join(&mut self) {
        let workers = self.workers.drain(..).map(|member| member.thread);
        for thread in workers.chain(self.timer.take()) {
            assert!(thread.join().is_ok(), "threads of the pool do not panic, only tasks do");
        }
    }

    fn start(&mut self, core: &Arc<PoolCore>, kind: TaskKind, class: TaskClass) -> io::Result<()> {
        let worker = Arc::new(Worker::new(kind, class, self.gives_memory_back));
        let number = self.free_number(kind, class);
        let (core, body) = (core.clone(), worker.clone());
        let thread = self.spawn(&thread_name(kind, class, number), move || {
            if kind.is_low_priority() {
                // A sandbox may forbid it; the pool works all the same, less politely.
                threads::set_own_nice(threads::NICE_LOWEST).ok();
            }
            work(&body, &core);
        })?;
        self.workers.push(WorkerThread { kind, number, worker, thread });
        Ok(())
    }

    fn spawn(
        &self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> io::Result<JoinHandle<()>> {
        let cpus = self.cpus.clone();
        threads::spawn(name, move || {
            if let Some(cpus) = cpus
                && let Err(error) = threads::set_own_cpus(&cpus)
            {
                tracing::warn!(%error, ?cpus, "a thread cannot be bound to these CPUs");
            }
            body();
        })
    }

    /// Tells the thread of the highest number to end.
    fn retire_one(&self, core: &PoolCore, kind: TaskKind, class: TaskClass) {
        let candidates = self.serving(kind, class);
        let last = candidates.max_by_key(|member| member.number);
        let worker = &last.expect("there are more threads than wanted").worker;
        worker.retire();
        core.queue(kind).dismiss(worker);
    }

    fn serving(&self, kind: TaskKind, class: TaskClass) -> impl Iterator<Item = &WorkerThread> {
        self.workers.iter().filter(move |member| {
            member.kind == kind && member.worker.class() == class && !member.worker.is_retiring()
        })
    }

    fn count(&self, kind: TaskKind, class: TaskClass) -> usize {
        self.serving(kind, class).count()
    }

    fn free_number(&self, kind: TaskKind, class: TaskClass) -> usize {
        let is_free = |number: &usize| {
            !self.workers.iter().any(|member| {
                member.kind == kind && member.worker.class() == class && member.number == *number
            })
        };
        (0..).find(is_free).expect("numbers do not run out")
    }

    fn join_finished(&mut self) {
        for member in self.workers.extract_if(.., |member| member.thread.is_finished()) {
            assert!(member.thread.join().is_ok(), "threads of the pool do not panic");
        }
    }
}
