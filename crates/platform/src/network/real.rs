//! Waiting for the operating system's sockets, through mio.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use super::readiness::{Readiness, Token};

/// Readiness events taken at a time.
const EVENTS_MAX: usize = 1024;

/// epoll with the memory for its answers.
#[derive(Debug)]
pub(super) struct Poll {
    poll: mio::Poll,
    events: mio::Events,
}

impl Poll {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { poll: mio::Poll::new()?, events: mio::Events::with_capacity(EVENTS_MAX) })
    }

    pub(super) fn registry(&self) -> &mio::Registry {
        self.poll.registry()
    }

    pub(super) fn waker(&self, token: Token) -> io::Result<mio::Waker> {
        mio::Waker::new(self.poll.registry(), mio::Token(token.0))
    }

    /// A signal ends a wait, too.
    pub(super) fn wait(
        &mut self,
        ready: &mut Vec<Readiness>,
        patience: Option<Duration>,
    ) -> io::Result<()> {
        match self.poll.poll(&mut self.events, patience) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        ready.extend(self.events.iter().map(|event| Readiness {
            token: Token(event.token().0),
            is_readable: event.is_readable(),
            is_ending: event.is_read_closed() || event.is_error(),
        }));
        Ok(())
    }
}

impl AsRawFd for Poll {
    fn as_raw_fd(&self) -> RawFd {
        self.poll.as_raw_fd()
    }
}
