//! A readiness loop as the one who has started it holds it.

use std::sync::Arc;
use std::thread::JoinHandle;

use platform::Clock;

use crate::loops::SteppedLoop;

/// A loop that was started. Dropping this does not end it: whoever has started it tells it to.
#[derive(Debug)]
pub struct LoopHandle(Kind);

#[derive(Debug)]
enum Kind {
    Thread(JoinHandle<()>),
    Steps(Arc<SteppedLoop>, Clock),
}

/// The loop has panicked. Its sockets are closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopHasPanicked;

impl LoopHandle {
    pub(crate) fn of_thread(thread: JoinHandle<()>) -> Self {
        Self(Kind::Thread(thread))
    }

    pub(crate) fn of_steps(stepped: Arc<SteppedLoop>, clock: Clock) -> Self {
        Self(Kind::Steps(stepped, clock))
    }

    /// Waits until the loop is over, which it has been told to be.
    pub fn join(self) -> Result<(), LoopHasPanicked> {
        match self.0 {
            Kind::Thread(thread) => thread.join().map_err(|_| LoopHasPanicked),
            Kind::Steps(stepped, clock) => {
                stepped.finish(&clock);
                Ok(())
            }
        }
    }
}
