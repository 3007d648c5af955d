//! What Linux says of a process: CPU time and memory.

use std::{fs, io};

use anyhow::{Context, Result};

/// CPU time, user and system, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuTime {
    /// Of all threads that live. The servers measured here keep theirs.
    pub all: f64,
    /// Of the threads that serve connections, where they can be told by their names.
    pub front_end: Option<f64>,
}

impl CpuTime {
    /// CPU time of a process until now. `front_end` is how the names of threads begin that serve
    /// connections; none if the process does not name them.
    pub fn of(pid: u32, front_end: Option<&str>) -> Result<Self> {
        let mut time = Self { all: 0.0, front_end: front_end.map(|_| 0.0) };
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let thread = thread?.path();
            let read = |file| unless_ended(fs::read_to_string(thread.join(file)));
            let (Some(schedstat), Some(name)) = (read("schedstat")?, read("comm")?) else {
                continue;
            };
            let used = seconds(&schedstat)?;
            time.all += used;
            if front_end.is_some_and(|prefix| name.starts_with(prefix)) {
                time.front_end = time.front_end.map(|sum| sum + used);
            }
        }
        Ok(time)
    }

    /// What was used since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        let front_end = self.front_end.zip(earlier.front_end).map(|(now, then)| now - then);
        Self { all: self.all - earlier.all, front_end }
    }
}

/// What was read of a thread; none if the thread ended after it was listed: its file is gone, or
/// (ESRCH) was open already and has nothing behind it.
pub(crate) fn unless_ended(read: io::Result<String>) -> io::Result<Option<String>> {
    const ESRCH: i32 = 3;
    match read {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.raw_os_error() == Some(ESRCH) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The first field of a thread's schedstat: nanoseconds on a CPU. The ticks of `stat` are too
/// coarse for short measurements and idle processes.
fn seconds(schedstat: &str) -> Result<f64> {
    let nanos = schedstat.split_whitespace().next().context("schedstat has fields")?;
    Ok(nanos.parse::<f64>()? / 1e9)
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
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn the_time_on_a_cpu_is_the_first_field() {
        assert_eq!(seconds("2500000000 12 3\n").expect("well-formed"), 2.5);
        for malformed in ["", "x 1 2"] {
            assert!(seconds(malformed).is_err(), "{malformed}");
        }
    }

    #[test]
    fn threads_that_end_while_they_are_listed_are_left_out() {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        std::thread::spawn(|| ()).join().expect("ends");
                    }
                });
            }
            let listings: Result<Vec<_>> =
                (0..2000).map(|_| CpuTime::of(std::process::id(), None)).collect();
            stop.store(true, Ordering::Relaxed);
            listings.expect("readable");
        });
    }

    #[test]
    fn this_process_has_memory_and_threads_with_names() {
        let pid = std::process::id();
        assert!(resident_bytes(pid).expect("readable") > 0);
        let time = CpuTime::of(pid, Some("no such thread")).expect("readable");
        assert_eq!(time.front_end, Some(0.0));
        assert!(time.all > 0.0);
    }
}
