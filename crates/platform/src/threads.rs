//! Threads: named, joined, with an operating-system priority of their own.

use std::io;
use std::thread::JoinHandle;

/// The lowest ordinary priority, for work that must not disturb the front end.
pub const NICE_LOWEST: i32 = 19;

/// Starts a named thread. Linux shows the first 15 bytes of `name`.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body)
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

/// How many CPUs this process may use, cgroup limits included; at least 1.
pub fn available_cpus() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

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
