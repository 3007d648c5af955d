//! The network: readiness polling and sockets, through mio, and the one place that binds.

use std::io;
use std::net::SocketAddr;

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
