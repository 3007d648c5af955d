//! Events of a process, counted by perf.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};

/// How long perf may take to attach to every thread.
const ATTACH_TIME_MAX: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(10);
/// From the last thread attached to the count running.
const ENABLE_TIME: Duration = Duration::from_millis(100);

/// What perf can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PerfEvent {
    /// Calls into the kernel. Counting them slows whoever makes them.
    Syscalls,
    /// Instructions, in the program and in the kernel for it. A virtual machine may have no
    /// counter for them.
    Instructions,
}

/// A count that runs.
pub struct PerfCount {
    perf: Child,
    event: PerfEvent,
}

impl PerfEvent {
    /// As perf calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Syscalls => "raw_syscalls:sys_enter",
            Self::Instructions => "instructions",
        }
    }
}

impl PerfCount {
    /// Begins to count an event of all threads of `pid`. None where there is no perf.
    pub fn start(event: PerfEvent, pid: u32) -> Option<Self> {
        let perf = Command::new("perf")
            .args(["stat", "-x,", "-e", event.name(), "-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut count = Self { perf: perf.ok()?, event };
        count.wait_until_attached(pid);
        Some(count)
    }

    /// perf does not say when it counts, but it holds one descriptor for each thread by then.
    /// Where it may not count it ends, which [`PerfCount::finish`] finds out.
    fn wait_until_attached(&mut self, pid: u32) {
        let started = Instant::now();
        let threads = count_entries(&format!("/proc/{pid}/task"), |_| true);
        let own = format!("/proc/{}/fd", self.perf.id());
        while started.elapsed() < ATTACH_TIME_MAX && matches!(self.perf.try_wait(), Ok(None)) {
            if count_entries(&own, is_perf_event) >= threads {
                std::thread::sleep(ENABLE_TIME);
                return;
            }
            std::thread::sleep(POLL);
        }
    }

    /// Ends the count and returns it. None where perf is not permitted to count.
    pub fn finish(self) -> Result<Option<u64>> {
        if let Some(pid) = i32::try_from(self.perf.id()).ok().and_then(Pid::from_raw) {
            // perf prints its counts on SIGINT. It has ended already where it may not count.
            kill_process(pid, Signal::INT).or_else(|error| match error {
                rustix::io::Errno::SRCH => Ok(()),
                other => Err(other),
            })?;
        }
        let output = self.perf.wait_with_output()?;
        Ok(count_in(&String::from_utf8_lossy(&output.stderr), self.event))
    }
}

/// The count in what `perf stat -x,` prints: `29,,raw_syscalls:sys_enter,...`. Where there is no
/// such counter it stands `<not supported>` in its place.
fn count_in(text: &str, event: PerfEvent) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(event.name()))?;
    line.split(',').next()?.parse().ok()
}

fn count_entries(directory: &str, wanted: impl Fn(&fs::DirEntry) -> bool) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(wanted).count()
}

fn is_perf_event(descriptor: &fs::DirEntry) -> bool {
    let target = fs::read_link(descriptor.path());
    target.is_ok_and(|target| target.to_string_lossy().contains("[perf_event]"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_a_number_or_none() {
        let counted = "29,,raw_syscalls:sys_enter,580000,100.00,,\n";
        assert_eq!(count_in(counted, PerfEvent::Syscalls), Some(29));
        assert_eq!(count_in(counted, PerfEvent::Instructions), None);
        let not_counted = "<not supported>,,instructions,0,100.00,,\n";
        assert_eq!(count_in(not_counted, PerfEvent::Instructions), None);
        assert_eq!(count_in("", PerfEvent::Syscalls), None);
    }
}
