//! A pool without threads: tasks run one by one, when told, on simulated time.

use std::time::Duration;

use platform::{Clock, Instant, Random};

use crate::pool::ExecutorPool;
use crate::task::TaskKind;
use crate::threads::worker;

/// Drives an [`ExecutorPool`] on the calling thread. The same seed and the same calls give the same
/// order of runs.
#[derive(Debug)]
pub struct DeterministicPool {
    pool: ExecutorPool,
    random: Random,
}

impl DeterministicPool {
    /// A pool on `clock`, which must be a simulated one. `seed` decides which kind of task goes
    /// first when several wait.
    pub fn new(clock: Clock, seed: u64) -> Self {
        let pool = ExecutorPool::without_threads(clock);
        Self { pool, random: Random::from_seed(seed) }
    }

    /// The pool as its users see it. [`crate::Owner::unregister`] runs tasks on its caller.
    pub fn pool(&self) -> &ExecutorPool {
        &self.pool
    }

    /// Runs one task that waits. False when none does.
    pub fn run_one(&mut self) -> bool {
        let mut waiting = TaskKind::ALL.to_vec();
        waiting.retain(|&kind| self.pool.queued_count(kind) > 0);
        if waiting.is_empty() {
            return false;
        }
        let choice = self.random.below(waiting.len() as u64) as usize;
        let task = self.pool.core().queue(waiting[choice]).try_pop();
        worker::process(task.expect("nobody else takes tasks"), self.pool.clock().now());
        true
    }

    /// Runs tasks until none waits, time standing still. Returns the number of runs. Panics after
    /// `runs_max`: some task then answers [`crate::Next::Again`] for ever.
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
        while let Some(time) = self.pool.core().timers.next_time()
            && time <= end
        {
            self.move_clock_to(time);
            self.pool.core().timers.expire(time.max(self.pool.clock().now()));
            runs += self.run_until_idle(runs_max);
        }
        self.move_clock_to(end);
        runs
    }

    fn move_clock_to(&self, time: Instant) {
        let clock = self.pool.clock();
        clock.advance(time.since(clock.now()));
    }
}
