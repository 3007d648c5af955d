//! The network: readiness polling and sockets, through mio, and the one place that binds.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

pub use mio::event::Event;
pub use mio::net::{TcpListener, TcpStream};
pub use mio::{Events, Interest, Poll, Registry, Token, Waker};

/// A non-blocking listener on `address`; port 0 takes any free one.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
}

/// A blocking standard listener on `address`, for control-plane servers that bring their own
/// runtime. Port 0 takes any free one.
pub fn listen_standard(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    std::net::TcpListener::bind(address)
}

/// A blocking client connection, with small writes sent at once.
pub fn connect(address: SocketAddr) -> io::Result<std::net::TcpStream> {
    let stream = std::net::TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The same, given up after `timeout`.
pub fn connect_within(address: SocketAddr, timeout: Duration) -> io::Result<std::net::TcpStream> {
    let stream = std::net::TcpStream::connect_timeout(&address, timeout)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The addresses of a host name, or of an address in text form. Never empty.
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
    }
    Ok(addresses)
}
