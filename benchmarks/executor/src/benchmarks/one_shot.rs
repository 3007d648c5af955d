//! `OneShotScheduleRun`: as many benchmark threads as NonIO threads; each schedules a new task and
//! waits until it has run.

use std::time::Duration;

use super::Cell;
use crate::baton::{Baton, Waiting};
use crate::harness::{self, Load, Measured, Stop};
use crate::pool_under_test::{PoolThreads, PoolUnderTest};

/// One thread: one task at a time.
struct Caller<'a, P> {
    pool: &'a P,
    baton: &'static Baton,
    waiting: Waiting,
}

/// Measures one pool for `duration`.
pub fn measure<P: PoolUnderTest>(cell: &Cell, duration: Duration) -> Measured {
    let pool = P::start(PoolThreads { non_io: cell.threads, others: 1 });
    let waiting = cell.waiting.expect("callers wait for their tasks");
    let measured = harness::measure(cell.threads, duration, |_| Caller {
        pool: &pool,
        baton: Baton::for_this_thread(),
        waiting,
    });
    pool.shutdown();
    measured
}

impl<P: PoolUnderTest> Load for Caller<'_, P> {
    fn run(&mut self, stop: &Stop) -> u64 {
        let baton = self.baton;
        let mut operations = 0;
        loop {
            self.pool.schedule(|| baton.count_and_post());
            baton.wait(self.waiting);
            operations += 1;
            assert_eq!(baton.runs(), operations, "{}: a task runs once", P::NAME);
            if stop.is_set() {
                return operations;
            }
        }
    }
}
