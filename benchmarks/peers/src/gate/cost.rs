//! What a turn costs a node, and which counter of the machine says so.

use anyhow::{Context, Result, ensure};

use crate::perf_count::{PerfCount, PerfEvent};
use crate::process_counters::ProcessCounters;
use crate::servers::Program;

const MICROS_PER_SECOND: f64 = 1e6;
const FRONT_END: Option<&str> = Program::Settee.front_end_threads();

/// What a request costs the whole node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostCounter {
    /// What the machine counts is hardly disturbed by anything else that it does.
    Instructions,
    /// Where it cannot count, and virtual machines often cannot.
    CpuTime,
}

/// Of one request, on the average of a turn; of the node alone, all its threads.
#[derive(Clone, Copy, Debug)]
pub struct TurnCost {
    /// In units of the counter.
    pub cost: f64,
    /// Microseconds of CPU time of the threads that serve connections.
    pub front_end: f64,
    /// Minor page faults.
    pub minor_faults: f64,
    /// Context switches.
    pub context_switches: f64,
}

impl CostCounter {
    /// The best one that this machine has for this process.
    pub fn choose(pid: u32) -> Result<Self> {
        let Some(count) = PerfCount::start(PerfEvent::Instructions, pid) else {
            return Ok(Self::CpuTime);
        };
        Ok(if count.finish()?.is_some() { Self::Instructions } else { Self::CpuTime })
    }

    /// In a report.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Instructions => "instructions",
            Self::CpuTime => "us of CPU time",
        }
    }

    /// Where it comes from.
    pub fn source(self) -> &'static str {
        match self {
            Self::Instructions => "instructions, as perf counts them",
            Self::CpuTime => {
                "CPU time of all threads by /proc, in nanoseconds, for there is no \
                              counter of instructions here"
            }
        }
    }

    /// What these requests cost a process.
    pub fn measure(
        self,
        pid: u32,
        requests: usize,
        body: impl FnOnce() -> Result<()>,
    ) -> Result<TurnCost> {
        ensure!(requests > 0, "nothing to measure");
        let count = match self {
            Self::Instructions => PerfCount::start(PerfEvent::Instructions, pid),
            Self::CpuTime => None,
        };
        let before = ProcessCounters::of(pid, FRONT_END)?;
        body()?;
        let added = ProcessCounters::of(pid, FRONT_END)?.since(before);
        let cost = match self {
            Self::CpuTime => added.cpu.all * MICROS_PER_SECOND,
            Self::Instructions => {
                let counted = count.map(PerfCount::finish).transpose()?.flatten();
                counted.context("perf no longer counts instructions")? as f64
            }
        };
        let each = |total: f64| total / requests as f64;
        Ok(TurnCost {
            cost: each(cost),
            front_end: each(added.cpu.front_end.unwrap_or(0.0) * MICROS_PER_SECOND),
            minor_faults: each(added.minor_faults as f64),
            context_switches: each(added.context_switches as f64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_costs_what_its_requests_share() {
        let busy = || {
            let started = std::time::Instant::now();
            while started.elapsed().as_millis() < 20 {
                std::hint::spin_loop();
            }
            // Linux accounts for the time of a running thread when it stops.
            std::thread::sleep(std::time::Duration::from_millis(1));
            Ok(())
        };
        let pid = std::process::id();
        let turn = CostCounter::CpuTime.measure(pid, 10, busy).expect("readable");
        assert!(turn.cost > 0.0 && turn.context_switches > 0.0, "{turn:?}");
    }

    #[test]
    fn no_request_has_no_cost() {
        assert!(CostCounter::CpuTime.measure(std::process::id(), 0, || Ok(())).is_err());
    }
}
