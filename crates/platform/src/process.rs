//! The process: its signals, limits, memory and the lock on its data directory.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

/// SIGTERM and SIGINT, watched from the moment that this value is made. SIGUSR1, by which other
/// programs are told that their log was moved, does nothing.
pub struct Termination(mpsc::Receiver<&'static str>);

/// What SIGHUP means, which comes when a terminal closes, and from who rotates logs.
#[derive(Clone, Copy, Debug)]
pub enum Hangup {
    /// The process goes on, and this is called.
    GoesOn(fn()),
    /// The end, as SIGTERM.
    Ends,
}

impl Termination {
    /// Watches the signals: they no longer end the process at once. A second one does, whatever
    /// the first has set going.
    pub fn watch(hangup: Hangup) -> io::Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
        let watched = [SIGTERM, SIGINT, SIGHUP, SIGUSR1];
        let mut signals = signal_hook::iterator::Signals::new(watched)?;
        let (sender, receiver) = mpsc::channel();
        crate::threads::spawn("Signals", move || {
            let mut is_ending = false;
            for signal in signals.forever() {
                let name = match (signal, hangup) {
                    (SIGUSR1, _) => continue,
                    (SIGHUP, Hangup::GoesOn(tell)) => {
                        tell();
                        continue;
                    }
                    (SIGHUP, Hangup::Ends) => "SIGHUP",
                    (SIGINT, _) => "SIGINT",
                    _ => "SIGTERM",
                };
                if is_ending {
                    std::process::exit(1);
                }
                is_ending = true;
                // Nobody listening means that the process is ending already.
                sender.send(name).ok();
            }
        })?;
        Ok(Self(receiver))
    }

    /// Blocks until the first signal has come and returns its name.
    pub fn wait(&self) -> &'static str {
        self.0.recv().unwrap_or("SIGTERM")
    }

    /// Blocks until the first signal has come, at most for `patience`, and returns its name.
    pub fn wait_for(&self, patience: std::time::Duration) -> Option<&'static str> {
        match self.0.recv_timeout(patience) {
            Ok(name) => Some(name),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            Err(mpsc::RecvTimeoutError::Disconnected) => Some("SIGTERM"),
        }
    }

    /// The first signal's name, if it has come.
    pub fn has_come(&self) -> Option<&'static str> {
        self.0.try_recv().ok()
    }
}

/// A flag that SIGINT or SIGTERM raises, for tools that end early with what they have. A second
/// signal ends the process at once, with the exit code of a tool that was interrupted.
pub fn termination_flag() -> io::Result<Arc<AtomicBool>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    const INTERRUPTED: i32 = 130;
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        // In this order: the first signal finds the flag still down.
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, flag.clone())?;
        signal_hook::flag::register(signal, flag.clone())?;
    }
    Ok(flag)
}

/// SIGINT for a tool that goes on behind it: it ends the process, but for the times at which it is
/// caught.
pub struct Interrupts {
    ends_process: Arc<AtomicBool>,
    has_come: Arc<AtomicBool>,
}

impl Interrupts {
    /// Watches the signal from now on.
    pub fn watch() -> io::Result<Self> {
        use signal_hook::consts::SIGINT;
        let interrupts = Self {
            ends_process: Arc::new(AtomicBool::new(true)),
            has_come: Arc::new(AtomicBool::new(false)),
        };
        let ends_process = Arc::clone(&interrupts.ends_process);
        signal_hook::flag::register_conditional_default(SIGINT, ends_process)?;
        signal_hook::flag::register(SIGINT, Arc::clone(&interrupts.has_come))?;
        Ok(interrupts)
    }

    /// Catches the signal until the value that is returned is dropped.
    pub fn catch(&self) -> Caught<'_> {
        self.has_come.store(false, Ordering::Relaxed);
        self.ends_process.store(false, Ordering::Relaxed);
        Caught(self)
    }
}

/// As long as this lives SIGINT is caught.
pub struct Caught<'a>(&'a Interrupts);

impl Caught<'_> {
    /// Whether the signal has come.
    pub fn has_come(&self) -> bool {
        self.0.has_come.load(Ordering::Relaxed)
    }
}

impl Drop for Caught<'_> {
    fn drop(&mut self) {
        self.0.ends_process.store(true, Ordering::Relaxed);
    }
}

/// What this process makes from now on, files, folders and sockets, is its user's alone: documents,
/// passwords and keys are among it.
pub fn keep_files_private() {
    use rustix::fs::Mode;
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
}

/// Makes a file its user's alone that may have been made before [`keep_files_private`].
pub fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS: u32 = 0o077;
    let mut permissions = fs::metadata(path)?.permissions();
    if permissions.mode() & OTHERS != 0 {
        permissions.set_mode(permissions.mode() & !OTHERS);
        fs::set_permissions(path, permissions)?;
    }
    Ok(())
}

/// An exclusive lock on a file, held as long as this value lives, released by the system when the
/// process dies however it dies.
#[derive(Debug)]
pub struct FileLock {
    _file: Option<fs::File>,
}

impl FileLock {
    /// A lock that nobody else could hold.
    pub(crate) fn of_nobody_else() -> Self {
        Self { _file: None }
    }

    /// Takes the lock on `path`, creating the file. `Ok(None)` when another process holds it.
    pub fn try_acquire(path: &Path) -> io::Result<Option<Self>> {
        let mut options = fs::OpenOptions::new();
        let file = options.create(true).truncate(false).read(true).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: Some(file) })),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// This process's id.
pub fn id() -> u32 {
    std::process::id()
}

/// A path for temporary files that nobody else has: in the system's directory for such, with
/// `prefix`, this process's id and a random part. Nothing is created.
pub fn temporary_path(prefix: &str) -> std::path::PathBuf {
    let random = crate::entropy::Entropy::real().next_u64();
    std::env::temp_dir().join(format!("{prefix}-{}-{random:016x}", id()))
}

/// Raises the soft limit of open files to the hard limit and returns it.
pub fn raise_open_files_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    current.unwrap_or(u64::MAX)
}

/// Bytes of physical memory that this process occupies, 0 where the system does not say.
pub fn resident_bytes() -> u64 {
    let pages = fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|statm| statm.split_whitespace().nth(1)?.parse::<u64>().ok())
        .unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

/// CPU time that this process has used, user and system, in nanoseconds.
pub fn cpu_time_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// CPU time that this process has used: in its own code, and in the system for it. To a tick of
/// the system's clock. Zero where the system does not say.
pub fn cpu_times() -> [std::time::Duration; 2] {
    // Source: proc(5), /proc/pid/stat: fields 14 and 15, of which the second is in brackets.
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let mut ticks = fields.skip(11).map(|field| field.parse::<u64>().unwrap_or(0));
    let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
    let mut next = || {
        let milliseconds = ticks.next().unwrap_or(0) * 1000 / ticks_per_second;
        std::time::Duration::from_millis(milliseconds)
    };
    [next(), next()]
}

/// Physical memory that this process may use, in bytes: the machine's, or the limit of a control
/// group that it is in when that is lower.
pub fn memory_limit_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|info| {
            let line = info.lines().find(|line| line.starts_with("MemTotal:"))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        })
        .map_or(1 << 30, |kibibytes| kibibytes * 1024);
    machine.min(crate::cgroup::memory_limit_bytes().unwrap_or(u64::MAX))
}

/// Bytes that this process has read from files and written to them, by calls and by pages of maps,
/// each counted at least once: whether it goes on, not how much it does. 0 where the system does
/// not say.
pub fn file_traffic_bytes() -> u64 {
    // Source: proc(5), /proc/pid/io.
    const COUNTED: [&str; 4] = ["rchar", "wchar", "read_bytes", "write_bytes"];
    let counters = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let counters = counters.lines().filter_map(|line| line.split_once(": "));
    let counted = counters.filter(|(name, _)| COUNTED.contains(name));
    counted.filter_map(|(_, bytes)| bytes.parse::<u64>().ok()).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn a_lock_has_one_holder_and_ends_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let held = FileLock::try_acquire(&path).unwrap();
        assert!(held.is_some());
        assert!(FileLock::try_acquire(&path).unwrap().is_none());
        drop(held);
        assert!(FileLock::try_acquire(&path).unwrap().is_some());
    }

    #[test]
    fn the_first_signal_raises_the_flag_and_ends_nothing() {
        use rustix::process::{Signal, getpid, kill_process};
        let flag = termination_flag().unwrap();
        assert!(!flag.load(Ordering::Relaxed));
        kill_process(getpid(), Signal::INT).unwrap();
        let clock = crate::Clock::real();
        let deadline = clock.now().after(std::time::Duration::from_secs(10));
        while !flag.load(Ordering::Relaxed) {
            assert!(clock.now() < deadline, "the signal has not arrived");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_is_written_to_a_file_is_traffic() {
        let before = file_traffic_bytes();
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("file"), vec![1; 1 << 16]).unwrap();
        assert!(file_traffic_bytes() >= before + (1 << 16));
    }

    #[test]
    fn the_process_knows_its_memory() {
        assert!(resident_bytes() > 0);
        assert!(memory_limit_bytes() > resident_bytes());
    }
}
