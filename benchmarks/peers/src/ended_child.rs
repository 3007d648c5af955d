//! A child process that does not outlive its owner.

use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

const END_TIME_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(2);

/// A running process. Dropping it asks it to end, waits, and kills it if it has not ended by then.
pub(crate) struct EndedChild(pub(crate) Child);

impl Drop for EndedChild {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            // Its id may be another process's by now.
            return;
        }
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        let asked = pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok());
        let started = Instant::now();
        while asked && started.elapsed() < END_TIME_MAX {
            if matches!(self.0.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(POLL);
        }
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            eprintln!("process {} cannot be ended: {error}", self.0.id());
        }
    }
}
