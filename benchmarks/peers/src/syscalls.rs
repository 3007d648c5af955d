//! System calls of a process, counted by perf.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Result;
use rustix::process::{Pid, Signal, kill_process};

/// How long perf takes to attach to every thread, on a busy machine. It does not say when it has.
const ATTACH_TIME: Duration = Duration::from_millis(700);

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
        let child = child.ok()?;
        std::thread::sleep(ATTACH_TIME);
        Some(Self(child))
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
