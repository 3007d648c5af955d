//! `TimeoutAddCancel`: each thread arms its timers again, one after the other, for 10 to 30
//! seconds; nothing ever fires. So behave the timeouts of SyncWrites: one for each vBucket, moved
//! on before its time by nearly every write.

use std::time::Duration;

use platform::Random;

use super::Cell;
use crate::harness::{self, Load, Measured, Stop};
use crate::pool_under_test::{ArmsTimers, PoolThreads};

const DELAY_MILLIS_MIN: u64 = 10_000;
const DELAY_MILLIS_MAX: u64 = 30_000;

/// Every timer that is armed at all is armed for at least ten seconds. A measurement that took
/// longer would see timers fire that no thread came back to.
pub const SECONDS_MAX: f64 = 5.0;

/// One thread and its timers.
struct Armer<'a, P: ArmsTimers> {
    pool: &'a P,
    timers: Vec<P::Timer>,
    random: Random,
}

/// Measures one pool for `duration`. The pool has one NonIO thread, as nothing runs.
pub fn measure<P: ArmsTimers>(cell: &Cell, duration: Duration) -> Measured {
    let pool = P::start(PoolThreads { non_io: 1, others: 1 });
    let measured = harness::measure(cell.threads, duration, |index| {
        // Where the timers cannot be shared out evenly, the first threads have one more.
        let share = cell.items / cell.threads + usize::from(index < cell.items % cell.threads);
        Armer {
            pool: &pool,
            timers: (0..share).map(|_| pool.timer()).collect(),
            random: Random::from_seed(index as u64),
        }
    });
    pool.shutdown();
    measured
}

impl<P: ArmsTimers> Load for Armer<'_, P> {
    fn run(&mut self, stop: &Stop) -> u64 {
        let mut operations = 0;
        'time: loop {
            for timer in &mut self.timers {
                let more = self.random.below(DELAY_MILLIS_MAX - DELAY_MILLIS_MIN);
                self.pool.arm(timer, Duration::from_millis(DELAY_MILLIS_MIN + more));
                operations += 1;
                if stop.is_set() {
                    break 'time;
                }
            }
        }
        self.pool.settle();
        operations
    }

    fn check(&mut self) {
        for timer in &self.timers {
            assert!(!self.pool.has_fired(timer), "{}: a timer fired long before its time", P::NAME);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmarks::Benchmark;
    use crate::pools::settee::Settee;

    #[test]
    fn timers_that_cannot_be_shared_out_evenly_are_all_armed() {
        let benchmark = Benchmark::TimeoutAddCancel;
        let cell = Cell { benchmark, threads: 3, items: 10, waiting: None };
        let measured = measure::<Settee>(&cell, Duration::from_millis(20));
        assert!(measured.operations >= 10, "{measured:?}");
    }
}
