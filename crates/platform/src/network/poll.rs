//! Waiting for sockets.

use std::io;
use std::time::Duration;

use super::readiness::{Readiness, Token};
use super::real;
use super::stream::{Listener, Stream};
use super::uring;
use crate::clock::Instant;
use crate::simulated::network as simulated;

/// Where one loop waits for its sockets.
#[derive(Debug)]
pub struct Poll(Kind);

#[derive(Debug)]
enum Kind {
    Real(real::Poll),
    Uring(Box<uring::Poll>),
    Simulated(simulated::Poll),
}

/// Adds sockets to a [`Poll`] and takes them out of it. A handle.
#[derive(Debug)]
pub struct Registry(RegistryKind);

#[derive(Debug)]
enum RegistryKind {
    Real(mio::Registry),
    Uring(uring::Shared),
    Simulated(simulated::Poll),
}

/// Ends a wait, from any thread.
#[derive(Debug)]
pub struct Waker(WakerKind);

#[derive(Debug)]
enum WakerKind {
    Real(mio::Waker),
    Uring(uring::Waker),
    Simulated(simulated::Poll, Token),
}

impl Poll {
    pub(super) fn real(poll: real::Poll) -> Self {
        Self(Kind::Real(poll))
    }

    pub(super) fn uring(poll: uring::Poll) -> Self {
        Self(Kind::Uring(Box::new(poll)))
    }

    pub(super) fn simulated(poll: simulated::Poll) -> Self {
        Self(Kind::Simulated(poll))
    }

    /// Waits until something is ready, at most for `patience`, and puts that into `ready`, which
    /// it empties first. Nothing may have come although the time is not over. A simulated network
    /// never has anybody wait.
    pub fn wait(
        &mut self,
        ready: &mut Vec<Readiness>,
        patience: Option<Duration>,
    ) -> io::Result<()> {
        ready.clear();
        match &mut self.0 {
            Kind::Real(poll) => poll.wait(ready, patience),
            Kind::Uring(poll) => poll.wait(ready, patience),
            Kind::Simulated(poll) => {
                poll.take_ready(ready);
                Ok(())
            }
        }
    }

    /// What adds sockets to it.
    pub fn registry(&self) -> io::Result<Registry> {
        Ok(Registry(match &self.0 {
            Kind::Real(poll) => RegistryKind::Real(poll.registry().try_clone()?),
            Kind::Uring(poll) => RegistryKind::Uring(poll.shared().clone()),
            Kind::Simulated(poll) => RegistryKind::Simulated(poll.clone()),
        }))
    }

    /// A waker whose wakes come as `token`. One for each poll.
    pub fn waker(&self, token: Token) -> io::Result<Waker> {
        Ok(Waker(match &self.0 {
            Kind::Real(poll) => WakerKind::Real(poll.waker(token)?),
            Kind::Uring(poll) => WakerKind::Uring(poll.waker(token)?),
            Kind::Simulated(poll) => WakerKind::Simulated(poll.clone(), token),
        }))
    }

    /// Whether a wait would bring something now. Of a simulated network alone.
    pub fn is_ready(&self) -> bool {
        match &self.0 {
            Kind::Real(_) | Kind::Uring(_) => {
                panic!("only a simulated network is looked at without waiting")
            }
            Kind::Simulated(poll) => poll.is_ready(),
        }
    }

    /// When the simulated network delivers something next, to whomever.
    pub fn next_delivery(&self) -> Option<Instant> {
        match &self.0 {
            Kind::Real(_) | Kind::Uring(_) => None,
            Kind::Simulated(poll) => poll.next_delivery(),
        }
    }
}

impl Registry {
    /// Has a listener's arrivals come as `token`.
    pub fn watch_listener(&self, listener: &mut Listener, token: Token) -> io::Result<()> {
        match (&self.0, listener) {
            (RegistryKind::Real(registry), Listener::Real(listener)) => {
                registry.register(listener, mio::Token(token.0), mio::Interest::READABLE)
            }
            (RegistryKind::Uring(shared), Listener::Real(listener)) => {
                shared.watch_listener(listener, token)
            }
            (RegistryKind::Simulated(poll), Listener::Simulated(listener)) => {
                listener.watch(poll, token);
                Ok(())
            }
            _ => Err(other_network()),
        }
    }

    /// Has a stream's news come as `token`: more to read, and room again for what could not be
    /// written. A stream that cannot be watched is closed.
    pub fn watch(&self, stream: Stream, token: Token) -> io::Result<Stream> {
        const INTEREST: mio::Interest = mio::Interest::READABLE.add(mio::Interest::WRITABLE);
        match (&self.0, stream) {
            (RegistryKind::Real(registry), Stream::Real(mut stream)) => {
                registry.register(&mut stream, mio::Token(token.0), INTEREST)?;
                Ok(Stream::Real(stream))
            }
            (RegistryKind::Uring(shared), Stream::Real(stream)) => {
                Ok(Stream::Uring(uring::Stream::adopt(stream, shared, token)))
            }
            (RegistryKind::Simulated(poll), Stream::Simulated(stream)) => {
                stream.watch(poll, token);
                Ok(Stream::Simulated(stream))
            }
            _ => Err(other_network()),
        }
    }

    /// No more news of a stream are wanted.
    pub fn forget(&self, stream: &mut Stream) -> io::Result<()> {
        match (&self.0, stream) {
            (RegistryKind::Real(registry), Stream::Real(stream)) => registry.deregister(stream),
            (RegistryKind::Uring(_), Stream::Uring(stream)) => {
                stream.forget();
                Ok(())
            }
            (RegistryKind::Simulated(_), Stream::Simulated(stream)) => {
                stream.forget();
                Ok(())
            }
            _ => Err(other_network()),
        }
    }
}

impl Waker {
    /// Ends the wait that is on, or the next one.
    pub fn wake(&self) {
        match &self.0 {
            // The one failure of an eventfd write is a full counter, and then there is a wake.
            WakerKind::Real(waker) => waker.wake().unwrap_or(()),
            WakerKind::Uring(waker) => waker.wake(),
            WakerKind::Simulated(poll, token) => poll.wake(*token),
        }
    }
}

fn other_network() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "a socket is of another network than its poll")
}
