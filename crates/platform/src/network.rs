//! The network: sockets that never block and the waiting for them, real or simulated; and, for
//! tools and the control plane, the one place that opens blocking sockets.

mod blocking;
mod poll;
pub(crate) mod readiness;
mod real;
mod stream;
#[cfg(test)]
mod tests;
mod uring;

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use crate::simulated::network::Host;

pub use blocking::{connect, connect_within, listen_standard};
pub use poll::{Poll, Registry, Waker};
pub use readiness::{Readiness, Token};
pub use stream::{Listener, Stream, is_about_one_connection, prepare_accepted};

/// A machine's way to others. A handle: clones lead to the same network.
#[derive(Clone, Debug, Default)]
pub struct Network(Kind);

#[derive(Clone, Debug, Default)]
enum Kind {
    #[default]
    Real,
    /// The same, whose clients are waited for through io_uring.
    Uring,
    Simulated(Host),
}

impl Network {
    /// The network of the operating system.
    pub fn real() -> Self {
        Self(Kind::Real)
    }

    /// The same, with loops of io_uring for clients.
    ///
    /// # Errors
    /// The kernel or a sandbox does not let them: it is older than Linux 6.1, or forbids rings.
    pub fn with_uring() -> io::Result<Self> {
        uring::Poll::probe()?;
        Ok(Self(Kind::Uring))
    }

    /// A place to wait for sockets of this network.
    pub fn poll(&self) -> io::Result<Poll> {
        match &self.0 {
            Kind::Real | Kind::Uring => Ok(Poll::real(real::Poll::new()?)),
            Kind::Simulated(host) => Ok(Poll::simulated(host.poll())),
        }
    }

    /// The same for who serves many clients with small requests.
    pub fn poll_for_clients(&self) -> io::Result<Poll> {
        match &self.0 {
            Kind::Uring => Ok(Poll::uring(uring::Poll::new()?)),
            Kind::Real | Kind::Simulated(_) => self.poll(),
        }
    }

    /// A listener on `address`; port 0 takes any free one.
    pub fn listen(&self, address: SocketAddr) -> io::Result<Listener> {
        match &self.0 {
            Kind::Real | Kind::Uring => Ok(Listener::Real(mio::net::TcpListener::bind(address)?)),
            Kind::Simulated(host) => Ok(Listener::Simulated(host.listen(address)?)),
        }
    }

    /// A connection that is being made. Small writes are sent at once.
    pub fn connect(&self, address: SocketAddr) -> io::Result<Stream> {
        match &self.0 {
            Kind::Real | Kind::Uring => {
                let stream = mio::net::TcpStream::connect(address)?;
                // A socket that takes no option serves all the same.
                stream.set_nodelay(true).ok();
                Ok(Stream::Real(stream))
            }
            Kind::Simulated(host) => Ok(Stream::Simulated(host.connect(address)?)),
        }
    }
}

impl From<Host> for Network {
    /// A simulated network, as one of its machines sees it.
    fn from(host: Host) -> Self {
        Self(Kind::Simulated(host))
    }
}

/// What limits count an address as: an IPv6 address stands for its network of 64 bits, as whoever
/// has one has them all.
pub fn counted_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        address => address,
    }
}

/// The addresses of a host name, or of an address in text form. Never empty.
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
    }
    Ok(addresses)
}
