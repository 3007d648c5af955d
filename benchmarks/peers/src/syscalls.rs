//! System calls of a process, counted by perf.

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

/// A count that runs.
pub struct SyscallCount(Child);

impl SyscallCount {
    /// Begins to count the system calls of all threads of `pid`. None where there is no perf.
    pub fn start(pid: u32) -> Option<Self> {
        let child = Command::new("perf")
            .args(["stat", "-x,", "-e", "raw_syscalls:sys_enter", "-p", &pid.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let mut count = Self(child.ok()?);
        count.wait_until_attached(pid);
        Some(count)
    }

    /// perf does not say when it counts, but it holds one descriptor for each thread by then.
    /// Where it may not count it ends, which [`SyscallCount::finish`] finds out.
    fn wait_until_attached(&mut self, pid: u32) {
        let started = Instant::now();
        let threads = count_entries(&format!("/proc/{pid}/task"), |_| true);
        let own = format!("/proc/{}/fd", self.0.id());
        while started.elapsed() < ATTACH_TIME_MAX && matches!(self.0.try_wait(), Ok(None)) {
            if count_entries(&own, is_perf_event) >= threads {
                std::thread::sleep(ENABLE_TIME);
                return;
            }
            std::thread::sleep(POLL);
        }
    }

    /// Ends the count and returns it. None where perf is not permitted to count.
    pub fn finish(self) -> Result<Option<u64>> {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // perf prints its counts on SIGINT. It has ended already where it may not count.
            kill_process(pid, Signal::INT).or_else(|error| match error {
                rustix::io::Errno::SRCH => Ok(()),
                other => Err(other),
            })?;
        }
        let output = self.0.wait_with_output()?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().find(|line| line.contains("raw_syscalls:sys_enter"));
        Ok(line.and_then(|line| line.split(',').next()?.parse().ok()))
    }
}

fn count_entries(directory: &str, wanted: impl Fn(&fs::DirEntry) -> bool) -> usize {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(wanted).count()
}

fn is_perf_event(descriptor: &fs::DirEntry) -> bool {
    let target = fs::read_link(descriptor.path());
    target.is_ok_and(|target| target.to_string_lossy().contains("[perf_event]"))
}
