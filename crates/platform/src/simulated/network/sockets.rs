//! The sockets of a simulated network, as their owners hold them.

use std::io::{self, Read};
use std::net::SocketAddr;

use super::SimulatedNetwork;
use super::connections::EndNumber;
use super::poll::Poll;
use crate::network::readiness::Token;

/// Accepts connections until it is dropped.
#[derive(Debug)]
pub struct Listener {
    network: SimulatedNetwork,
    address: SocketAddr,
}

/// One end of a connection, which is closed when this is dropped.
#[derive(Debug)]
pub struct Stream {
    network: SimulatedNetwork,
    end: EndNumber,
}

impl Listener {
    pub(super) fn new(network: SimulatedNetwork, address: SocketAddr) -> Self {
        Self { network, address }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn accept(&self) -> io::Result<Stream> {
        let end = self.network.lock().accept(self.address)?;
        Ok(Stream::new(self.network.clone(), end))
    }

    pub(crate) fn watch(&self, poll: &Poll, token: Token) {
        self.network.lock().watch_listener(self.address, (poll.number(), token));
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.network.lock().close_listener(self.address);
    }
}

impl Stream {
    pub(super) fn new(network: SimulatedNetwork, end: EndNumber) -> Self {
        Self { network, end }
    }

    pub(crate) fn peer_address(&self) -> SocketAddr {
        self.network.lock().connections.peer_address(self.end)
    }

    pub(crate) fn watch(&self, poll: &Poll, token: Token) {
        self.network.lock().connections.watch(self.end, Some((poll.number(), token)));
    }

    pub(crate) fn forget(&self) {
        self.network.lock().connections.watch(self.end, None);
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.network.lock().write(self.end, bytes)
    }
}

impl Read for Stream {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        self.network.lock().read(self.end, target)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.network.lock().close(self.end);
    }
}
