//! A network in memory: machines with addresses, connections whose bytes take their time, cuts
//! between machines, and machines that lose power.
//!
//! Everything follows from the calls, the seed and the clock, which must be a simulated one: bytes
//! that were written are there for their reader once the clock has reached the time that was drawn
//! for them. Bytes of one direction of a connection keep their order. While two machines are cut
//! off from each other what they send waits, as with TCP, whose segments are sent again; it is
//! drawn a time when the cut heals. A machine that loses power says nothing: its peers find out
//! when they next send something after it is back, and are answered with a reset.

mod connections;
mod poll;
mod sockets;
mod state;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::{Clock, Instant};
pub use poll::Poll;
pub use sockets::{Listener, Stream};
use state::State;

/// A simulated network. A handle: clones are the same network.
#[derive(Clone, Debug)]
pub struct SimulatedNetwork(Arc<Mutex<State>>);

/// One machine's side of it, of which a [`Network`](crate::network::Network) is made.
#[derive(Clone, Debug)]
pub struct Host {
    network: SimulatedNetwork,
    address: IpAddr,
}

impl SimulatedNetwork {
    /// A network without machines. `seed` decides how long bytes take.
    pub fn new(clock: Clock, seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State::new(clock, seed))))
    }

    /// Bytes take between `min` and `max` from now on.
    pub fn set_latency(&self, min: Duration, max: Duration) {
        assert!(min <= max, "the longest latency is not the shortest");
        self.lock().set_latency(min, max);
    }

    /// The network as the machine at `address` sees it.
    pub fn host(&self, address: IpAddr) -> Host {
        Host { network: self.clone(), address }
    }

    /// Nothing passes between two machines until [`SimulatedNetwork::heal`].
    pub fn cut(&self, one: IpAddr, other: IpAddr) {
        self.lock().cut(one, other);
    }

    /// What was held back by cuts is on its way.
    pub fn heal(&self) {
        self.lock().heal();
    }

    /// A machine loses power: its sockets are gone without a word.
    pub fn power_cut(&self, address: IpAddr) {
        self.lock().power_cut(address);
    }

    /// When something arrives next that has not arrived yet.
    pub fn next_delivery(&self) -> Option<Instant> {
        self.lock().next_delivery()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    pub(crate) fn poll(&self) -> Poll {
        Poll::new(self.network.clone())
    }

    pub(crate) fn listen(&self, address: SocketAddr) -> io::Result<Listener> {
        let address = self.network.lock().listen(self.address, address.port())?;
        Ok(Listener::new(self.network.clone(), address))
    }

    pub(crate) fn connect(&self, address: SocketAddr) -> io::Result<Stream> {
        let end = self.network.lock().connect(self.address, address)?;
        Ok(Stream::new(self.network.clone(), end))
    }
}
