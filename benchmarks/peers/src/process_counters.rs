//! What Linux has counted of a process since its start.

use std::fs;
use std::io;

use anyhow::{Context, Result};

use crate::process_stat::{CpuTime, unless_ended};

/// Totals of all threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessCounters {
    /// Seconds on a CPU, user and system.
    pub cpu: CpuTime,
    /// Faults that were served without reading a disk, also of threads that have ended.
    pub minor_faults: u64,
    /// Of threads that live: how often they waited, and how often their CPU was taken.
    pub context_switches: u64,
}

impl ProcessCounters {
    /// Until now. `front_end` is how the names of threads begin that serve connections.
    pub fn of(pid: u32, front_end: Option<&str>) -> Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Ok(Self {
            cpu: CpuTime::of(pid, front_end)?,
            minor_faults: minor_faults_in(&stat)?,
            context_switches: context_switches_of(pid)?,
        })
    }

    /// What was added since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu: self.cpu.since(earlier.cpu),
            minor_faults: self.minor_faults - earlier.minor_faults,
            // A thread that has ended meanwhile took its own ones with it.
            context_switches: self.context_switches.saturating_sub(earlier.context_switches),
        }
    }
}

/// Field 10 of `stat`. The name in field 2 stands in parentheses and may contain everything.
fn minor_faults_in(stat: &str) -> Result<u64> {
    let (_, behind_name) = stat.rsplit_once(')').context("stat has a name in parentheses")?;
    let faults = behind_name.split_whitespace().nth(7).context("stat has ten fields")?;
    Ok(faults.parse()?)
}

fn context_switches_of(pid: u32) -> Result<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))?.collect::<io::Result<Vec<_>>>()?;
    let of_thread = |thread: &fs::DirEntry| -> Result<u64> {
        let status = unless_ended(fs::read_to_string(thread.path().join("status")))?;
        status.map_or(Ok(0), |status| context_switches_in(&status))
    };
    threads.iter().map(of_thread).sum()
}

/// The sum of both lines of a thread's `status`.
fn context_switches_in(status: &str) -> Result<u64> {
    let of = |name: &str| -> Result<u64> {
        let rest = status.lines().find_map(|line| line.strip_prefix(name));
        Ok(rest.with_context(|| format!("no {name} in a status"))?.trim().parse()?)
    };
    Ok(of("voluntary_ctxt_switches:")? + of("nonvoluntary_ctxt_switches:")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_does_not_move_the_fields() {
        for name in ["settee", "a b) 7 (c"] {
            let stat = format!("17 ({name}) S 1 17 17 0 -1 4194560 4321 9 8 7 120 30 0 0\n");
            assert_eq!(minor_faults_in(&stat).expect("well-formed"), 4321);
        }
        for malformed in ["", "17 settee S", "17 (settee) S 1 2", "17 (x) S 1 2 3 4 5 6 seven"] {
            assert!(minor_faults_in(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn both_kinds_of_switches_count() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t40\nnonvoluntary_ctxt_switches:\t2\n";
        assert_eq!(context_switches_in(status).expect("well-formed"), 42);
        assert!(context_switches_in("voluntary_ctxt_switches:\t40\n").is_err());
    }

    #[test]
    fn this_process_counts_up() {
        let pid = std::process::id();
        let before = ProcessCounters::of(pid, None).expect("readable");
        assert!(before.minor_faults > 0 && before.cpu.all > 0.0);
        std::thread::sleep(std::time::Duration::from_millis(1));
        let added = ProcessCounters::of(pid, None).expect("readable").since(before);
        assert!(added.cpu.all < before.cpu.all + 60.0);
    }
}
