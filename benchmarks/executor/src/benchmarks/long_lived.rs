//! `LongLivedScheduleRun`: each thread has some tasks that sleep; it wakes one after the other and
//! waits until that has run.

use std::time::Duration;

use super::Cell;
use crate::baton::{Baton, Waiting};
use crate::harness::{self, Load, Measured, Stop};
use crate::pool_under_test::{PoolThreads, WakesTasks};

/// One thread and its tasks.
struct Waker<'a, P: WakesTasks> {
    pool: &'a P,
    sleepers: Vec<P::Sleeper>,
    baton: &'static Baton,
    waiting: Waiting,
}

/// Measures one pool for `duration`.
pub fn measure<P: WakesTasks>(cell: &Cell, duration: Duration) -> Measured {
    let pool = P::start(PoolThreads { non_io: cell.threads, others: 1 });
    let waiting = cell.waiting.expect("callers wait for their tasks");
    let measured = harness::measure(cell.threads, duration, |_| {
        let baton = Baton::for_this_thread();
        let sleeper = || pool.sleeper(|| baton.count_and_post());
        let sleepers = (0..cell.items / cell.threads).map(|_| sleeper()).collect();
        Waker { pool: &pool, sleepers, baton, waiting }
    });
    pool.shutdown();
    measured
}

impl<P: WakesTasks> Load for Waker<'_, P> {
    fn run(&mut self, stop: &Stop) -> u64 {
        let mut operations = 0;
        loop {
            for sleeper in &self.sleepers {
                self.pool.wake(sleeper);
                self.baton.wait(self.waiting);
                operations += 1;
                assert_eq!(self.baton.runs(), operations, "{}: a wake is a run", P::NAME);
                if stop.is_set() {
                    return operations;
                }
            }
        }
    }
}
