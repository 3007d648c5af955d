//! Who takes part in which benchmark.

use std::time::Duration;

use anyhow::Result;

use crate::benchmarks::idle::{self, Idle, IdleTimes};
use crate::benchmarks::tail::{self, Latencies, LongTasks};
use crate::benchmarks::{Benchmark, Cell, long_lived, one_shot, timeout_add_cancel};
use crate::folly::FollyProgram;
use crate::harness::Measured;
use crate::pool_under_test::PoolUnderTest;
use crate::pools::cb3::Cb3;
use crate::pools::folly_wrapper::{FollyWrapper, FollyWrapperDrained};
use crate::pools::rayon_pool::Rayon;
use crate::pools::settee::{Settee, SetteeAdd};
use crate::pools::tokio_pool::Tokio;

/// Ratios are to this one.
pub const BASE: &str = Settee::NAME;

/// An operation takes it up to half a millisecond, so that more time only shows the same again.
const CB3_TIMEOUTS_SECONDS_MAX: Duration = Duration::from_millis(250);

type MeasureCell = fn(&Cell, Duration) -> Measured;

/// One pool, in one way to use it.
#[derive(Debug)]
pub enum Contender {
    /// Runs in this process.
    InProcess(InProcess),
    /// Runs as a child process.
    Folly(FollyProgram),
}

/// What a pool of this process takes part in.
#[derive(Clone, Copy, Debug)]
pub struct InProcess {
    name: &'static str,
    one_shot: Option<MeasureCell>,
    long_lived: Option<MeasureCell>,
    timeouts: Option<MeasureCell>,
    /// Waiting times at half load, measured for so long.
    pub tail: Option<fn(LongTasks, Duration) -> Latencies>,
    /// Costs of having nothing to do.
    pub idle: Option<fn(IdleTimes) -> Idle>,
}

impl InProcess {
    const fn none<P: PoolUnderTest>() -> Self {
        Self {
            name: P::NAME,
            one_shot: None,
            long_lived: None,
            timeouts: None,
            tail: None,
            idle: None,
        }
    }

    /// All pools of this process, ours first.
    pub const ALL: [Self; 7] = [
        Self {
            one_shot: Some(one_shot::measure::<Settee>),
            long_lived: Some(long_lived::measure::<Settee>),
            timeouts: Some(timeout_add_cancel::measure::<Settee>),
            tail: Some(tail::measure::<Settee>),
            idle: Some(idle::measure::<Settee>),
            ..Self::none::<Settee>()
        },
        Self { one_shot: Some(one_shot::measure::<SetteeAdd>), ..Self::none::<SetteeAdd>() },
        Self {
            one_shot: Some(one_shot::measure::<Cb3>),
            long_lived: Some(long_lived::measure::<Cb3>),
            timeouts: Some(|cell, duration| {
                timeout_add_cancel::measure::<Cb3>(cell, duration.min(CB3_TIMEOUTS_SECONDS_MAX))
            }),
            idle: Some(idle::measure::<Cb3>),
            ..Self::none::<Cb3>()
        },
        Self {
            one_shot: Some(one_shot::measure::<FollyWrapper>),
            long_lived: Some(long_lived::measure::<FollyWrapper>),
            timeouts: Some(timeout_add_cancel::measure::<FollyWrapper>),
            tail: Some(tail::measure::<FollyWrapper>),
            idle: Some(idle::measure::<FollyWrapper>),
            ..Self::none::<FollyWrapper>()
        },
        Self {
            timeouts: Some(timeout_add_cancel::measure::<FollyWrapperDrained>),
            ..Self::none::<FollyWrapperDrained>()
        },
        Self {
            one_shot: Some(one_shot::measure::<Tokio>),
            long_lived: Some(long_lived::measure::<Tokio>),
            timeouts: Some(timeout_add_cancel::measure::<Tokio>),
            tail: Some(tail::measure::<Tokio>),
            idle: Some(idle::measure::<Tokio>),
            ..Self::none::<Tokio>()
        },
        Self {
            one_shot: Some(one_shot::measure::<Rayon>),
            idle: Some(idle::measure::<Rayon>),
            ..Self::none::<Rayon>()
        },
    ];
}

impl Contender {
    /// All pools of this process, and Folly where it was found.
    pub fn all(folly: Option<FollyProgram>) -> Vec<Self> {
        let in_process = InProcess::ALL.map(Self::InProcess);
        in_process.into_iter().chain(folly.map(Self::Folly)).collect()
    }

    /// As reports name it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::InProcess(pool) => pool.name,
            Self::Folly(_) => FollyProgram::NAME,
        }
    }

    /// Whether the pool can do what the benchmark repeats.
    pub fn takes_part(&self, benchmark: Benchmark) -> bool {
        match self {
            Self::InProcess(pool) => pool.measure(benchmark).is_some(),
            Self::Folly(_) => FollyProgram::takes_part(benchmark),
        }
    }

    /// Measures one cell once. None where the pool does not take part.
    pub fn measure(&self, cell: &Cell, duration: Duration) -> Result<Option<Measured>> {
        if !self.takes_part(cell.benchmark) {
            return Ok(None);
        }
        match self {
            Self::InProcess(pool) => {
                Ok(pool.measure(cell.benchmark).map(|measure| measure(cell, duration)))
            }
            Self::Folly(program) => program.measure(cell, duration).map(Some),
        }
    }
}

impl InProcess {
    fn measure(&self, benchmark: Benchmark) -> Option<MeasureCell> {
        match benchmark {
            Benchmark::OneShotScheduleRun => self.one_shot,
            Benchmark::LongLivedScheduleRun => self.long_lived,
            Benchmark::TimeoutAddCancel => self.timeouts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pool_is_measured_in_every_cell_it_takes_part_in() {
        let contenders = Contender::all(None);
        assert_eq!(contenders[0].name(), BASE);
        for benchmark in Benchmark::ALL {
            let cells = benchmark.cells(true);
            let mut measured = 0;
            for contender in &contenders {
                for cell in &cells {
                    let sample = contender.measure(cell, Duration::from_millis(2));
                    let sample = sample.expect("nothing can fail here");
                    assert_eq!(sample.is_some(), contender.takes_part(benchmark));
                    if let Some(sample) = sample {
                        assert!(sample.operations > 0, "{}", cell.label(contender.name()));
                        measured += 1;
                    }
                }
            }
            let expected = match benchmark {
                Benchmark::OneShotScheduleRun => 6 * 3,
                Benchmark::LongLivedScheduleRun => 4 * 3,
                Benchmark::TimeoutAddCancel => 5,
            };
            assert_eq!(measured, expected, "{benchmark:?}");
        }
    }
}
