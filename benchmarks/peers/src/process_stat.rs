//! What Linux says of a process: CPU time and memory.

use std::fs;

use anyhow::{Context, Result};

/// CPU time, user and system, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTime {
    /// Of all threads, ended ones included.
    pub all: f64,
    /// Of the threads that serve connections, where they can be told by their names.
    pub front_end: Option<f64>,
}

impl CpuTime {
    /// CPU time of a process until now. `front_end` is how the names of threads begin that serve
    /// connections; none if the process does not name them.
    pub fn of(pid: u32, front_end: Option<&str>) -> Result<Self> {
        let all = seconds(&fs::read_to_string(format!("/proc/{pid}/stat"))?)?;
        let Some(prefix) = front_end else { return Ok(Self { all, front_end: None }) };
        let mut sum = 0.0;
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let stat = fs::read_to_string(thread?.path().join("stat"))?;
            if stat.split_once('(').is_some_and(|(_, name)| name.starts_with(prefix)) {
                sum += seconds(&stat)?;
            }
        }
        Ok(Self { all, front_end: Some(sum) })
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        let front_end = self.front_end.zip(earlier.front_end).map(|(now, then)| now - then);
        Self { all: self.all - earlier.all, front_end }
    }
}

/// utime and stime, fields 14 and 15 of proc_pid_stat(5).
fn seconds(stat: &str) -> Result<f64> {
    let (_, fields) = stat.rsplit_once(") ").context("stat has a name in parentheses")?;
    let mut fields = fields.split_whitespace().skip(11);
    let mut ticks = || -> Result<f64> { Ok(fields.next().context("stat has fields")?.parse()?) };
    let ticks = ticks()? + ticks()?;
    Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
}

/// Bytes of physical memory that a process occupies.
pub fn resident_bytes(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()).context("no VmRSS")?;
    Ok(kibibytes.parse::<u64>()? * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_anything() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0";
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(seconds(stat).expect("well-formed"), 200.0 / ticks);
        assert!(seconds("7 (x) S 1").is_err());
    }

    #[test]
    fn this_process_has_memory_and_threads_with_names() {
        let pid = std::process::id();
        assert!(resident_bytes(pid).expect("readable") > 0);
        let time = CpuTime::of(pid, Some("no such thread")).expect("readable");
        assert_eq!(time.front_end, Some(0.0));
    }
}
