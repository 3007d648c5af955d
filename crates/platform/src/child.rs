//! Processes that this one starts and ends.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// How often a process that is to stop is looked at.
const STOP_STEP: Duration = Duration::from_millis(1);

/// What is to be started.
#[derive(Clone, Debug)]
pub struct ChildCommand {
    /// The program's file.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Environment beside this process's own.
    pub environment: Vec<(OsString, OsString)>,
    /// Where everything that it prints is appended.
    pub log: PathBuf,
}

/// What can be done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildSignal {
    /// Asked to end.
    Terminate,
    /// Ended at once.
    Kill,
    /// Stopped until it is resumed.
    Pause,
    /// Continued.
    Resume,
}

/// How a process has ended; shown are its exit status or the signal that ended it, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildEnd(ExitStatus);

impl ChildEnd {
    /// Whether it did what it was to do: its exit status is 0.
    pub fn is_success(&self) -> bool {
        self.0.success()
    }
}

impl fmt::Display for ChildEnd {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A process that was started here, in a group of its own: a terminal's Ctrl-C does not reach it.
#[derive(Debug)]
pub struct Child(std::process::Child);

impl Child {
    /// Starts a process.
    pub fn spawn(command: &ChildCommand) -> io::Result<Self> {
        let log = fs::OpenOptions::new().create(true).append(true).open(&command.log)?;
        let child = Command::new(&command.program)
            .args(&command.arguments)
            .envs(command.environment.iter().cloned())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()?;
        Ok(Self(child))
    }

    /// Its id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// How it ended; `None` while it runs.
    pub fn has_ended(&mut self) -> io::Result<Option<ChildEnd>> {
        Ok(self.0.try_wait()?.map(ChildEnd))
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> io::Result<()> {
        self.0.wait().map(drop)
    }

    /// Sends it a signal; nothing happens to one that has ended. A pause has begun on return: until
    /// one of its threads takes the signal up, which may take a while on a busy machine, the others
    /// go on.
    pub fn signal(&mut self, signal: ChildSignal) -> io::Result<()> {
        // One that was waited for has given up its id, which may be another process's by now.
        if self.has_ended()?.is_some() {
            return Ok(());
        }
        let signal = match signal {
            ChildSignal::Terminate => Signal::TERM,
            ChildSignal::Kill => Signal::KILL,
            ChildSignal::Pause => Signal::STOP,
            ChildSignal::Resume => Signal::CONT,
        };
        kill_process(Pid::from_child(&self.0), signal)?;
        if signal == Signal::STOP { self.wait_until_stopped() } else { Ok(()) }
    }

    fn wait_until_stopped(&mut self) -> io::Result<()> {
        let id = WaitId::Pid(Pid::from_child(&self.0));
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        while self.has_ended()?.is_none() {
            match waitid(id.clone(), options) {
                Ok(None) => crate::threads::pause(STOP_STEP),
                Ok(Some(_)) => return Ok(()),
                // It has ended just now.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// The file of this process's program.
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Has the system end this process when the thread that started it ends. `false` when that has
/// happened already.
pub fn end_with_parent(parent_id: u32) -> io::Result<bool> {
    // Before the look at the parent: one that ends in between has the signal sent.
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    Ok(parent.is_some_and(|parent| u32::try_from(parent) == Ok(parent_id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleep(directory: &std::path::Path) -> ChildCommand {
        ChildCommand {
            program: PathBuf::from("/bin/sh"),
            arguments: vec!["-c".into(), "echo $WORD; exec sleep 1000".into()],
            environment: vec![("WORD".into(), "begun".into())],
            log: directory.join("log"),
        }
    }

    #[test]
    fn a_process_is_ended_and_what_it_printed_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let command = sleep(directory.path());
        for (round, signal) in [(1, ChildSignal::Terminate), (2, ChildSignal::Kill)] {
            let mut child = Child::spawn(&command).unwrap();
            while fs::read_to_string(&command.log).unwrap() != "begun\n".repeat(round) {
                std::thread::yield_now();
            }
            assert_eq!(child.has_ended().unwrap(), None);
            child.signal(ChildSignal::Pause).unwrap();
            let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
            assert!(stat.contains(") T "), "{stat}");
            child.signal(ChildSignal::Resume).unwrap();
            child.signal(signal).unwrap();
            child.wait().unwrap();
            assert!(child.has_ended().unwrap().is_some());
            child.signal(signal).unwrap();
        }
    }
}
