//! A pool without threads: tasks and readiness loops run one by one, when told, on simulated time.

use std::time::Duration;

use platform::{Clock, Instant, Random};

use crate::pool::ExecutorPool;
use crate::task::kind::TaskKind;
use crate::threads::work::process;

/// Drives an [`ExecutorPool`] on the calling thread. The same seed and the same calls give the same
/// order of runs.
#[derive(Debug)]
pub struct DeterministicPool {
    pool: ExecutorPool,
    random: Random,
}

impl DeterministicPool {
    /// A pool on `clock`, which must be a simulated one. `seed` decides which kind of task, or
    /// which loop, goes first when several wait.
    pub fn new(clock: Clock, seed: u64) -> Self {
        let pool = ExecutorPool::without_threads(clock);
        Self { pool, random: Random::from_seed(seed) }
    }

    /// The pool as its users see it. [`crate::Owner::unregister`] runs tasks on its caller.
    pub fn pool(&self) -> &ExecutorPool {
        &self.pool
    }

    /// Runs one task that waits, or gives a loop that is ready its turn. False when nothing is.
    pub fn run_one(&mut self) -> bool {
        let clock = self.pool.clock().clone();
        let mut waiting = TaskKind::ALL.to_vec();
        waiting.retain(|&kind| self.pool.queued_count(kind) > 0);
        let mut ready = self.pool.core().loops();
        ready.retain(|stepped| stepped.is_ready(&clock));
        let count = waiting.len() + ready.len();
        if count == 0 {
            return false;
        }
        let choice = self.random.below(count as u64) as usize;
        match waiting.get(choice) {
            Some(&kind) => {
                let task = self.pool.core().queue(kind).try_pop();
                process(task.expect("nobody else takes tasks"), clock.now());
            }
            None => ready[choice - waiting.len()].step(&clock),
        }
        true
    }

    /// Runs what waits until nothing does, time standing still. Returns the number of runs. Panics
    /// after `runs_max`: some task then answers [`crate::Next::Again`] for ever.
    pub fn run_until_idle(&mut self, runs_max: usize) -> usize {
        for runs in 0..=runs_max {
            if !self.run_one() {
                return runs;
            }
        }
        panic!("tasks are still waiting after {runs_max} runs");
    }

    /// Moves time on by `duration`, deadline by deadline, running what waits at each. Returns the
    /// number of runs; panics when more than `runs_max` are needed between two deadlines.
    pub fn advance(&mut self, duration: Duration, runs_max: usize) -> usize {
        let end = self.pool.clock().now().after(duration);
        let mut runs = self.run_until_idle(runs_max);
        while let Some(time) = self.next_time()
            && time <= end
        {
            self.move_clock_to(time);
            self.expire();
            runs += self.run_until_idle(runs_max);
        }
        self.move_clock_to(end);
        runs
    }

    /// When a task is due next, or a loop, or its network brings something.
    pub fn next_time(&self) -> Option<Instant> {
        let core = self.pool.core();
        let loops = core.loops().into_iter().filter_map(|stepped| stepped.next_time());
        core.timers.next_time().into_iter().chain(loops).min()
    }

    /// Has the tasks wait for their run whose deadline is not later than now.
    pub fn expire(&self) {
        self.pool.core().timers.expire(self.pool.clock().now());
    }

    fn move_clock_to(&self, time: Instant) {
        let clock = self.pool.clock();
        clock.advance(time.since(clock.now()));
    }
}
