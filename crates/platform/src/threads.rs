//! Threads: named, joined, with an operating-system priority of their own.

use std::io;
use std::thread::{JoinHandle, Scope, ScopedJoinHandle};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The lowest ordinary priority, for work that must not disturb the front end.
pub const NICE_LOWEST: i32 = 19;

/// Starts a named thread. Linux shows the first 15 bytes of `name`.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
}

/// Starts a named thread that ends before `scope` does, with the nice value and the CPUs of the
/// calling one.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    body: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, body)
}

/// Lets the calling thread do nothing for a while. For tools that wait for other processes: what
/// runs in a node waits on the executor's timers.
pub fn pause(duration: std::time::Duration) {
    std::thread::sleep(duration);
}

/// Sets the nice value (-20..=19) of the calling thread. Raising priority needs a privilege that
/// the process may not have; lowering always works.
pub fn set_own_nice(nice: i32) -> io::Result<()> {
    // On Linux PRIO_PROCESS with a thread id sets that one thread (setpriority(2)).
    rustix::process::setpriority_process(Some(rustix::thread::gettid()), nice)?;
    Ok(())
}

/// The nice value of the calling thread.
pub fn own_nice() -> io::Result<i32> {
    Ok(rustix::process::getpriority_process(Some(rustix::thread::gettid()))?)
}

/// Lets the calling thread run on `cpus` only, numbered as the system does. An error when none of
/// them may be used.
pub fn set_own_cpus(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("no CPU {cpu}")));
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set)?;
    Ok(())
}

/// The CPUs that the calling thread may run on.
pub fn own_cpus() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// CPU time that the calling thread has used, nanoseconds. A system call of a fifth of a
/// microsecond or so.
pub fn own_cpu_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap_or(0)
}

/// How many CPUs this process may use, cgroup limits included; at least 1.
pub fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_bound_to_a_cpu() {
        let cpu = *own_cpus().unwrap().last().unwrap();
        let thread = spawn("bound", move || {
            assert!(set_own_cpus(&[CpuSet::MAX_CPU]).is_err());
            set_own_cpus(&[cpu]).unwrap();
            assert_eq!(own_cpus().unwrap(), [cpu]);
        });
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn a_nice_value_belongs_to_one_thread() {
        let before = own_nice().unwrap();
        let thread = spawn("nice", || {
            set_own_nice(NICE_LOWEST).unwrap();
            assert_eq!(own_nice().unwrap(), NICE_LOWEST);
        });
        thread.unwrap().join().unwrap();
        assert_eq!(own_nice().unwrap(), before);
    }
}
