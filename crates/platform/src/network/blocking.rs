//! Blocking sockets of the standard library, for tools, and for servers that bring a runtime.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// A blocking listener on `address`, for control-plane servers that bring their own runtime. Port 0
/// takes any free one.
pub fn listen_standard(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address)
}

/// A blocking client connection, with small writes sent at once.
pub fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The same, given up after `timeout`.
pub fn connect_within(address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
