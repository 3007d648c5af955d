//! The network: readiness polling and sockets, through mio, and the one place that binds.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

pub use mio::event::Event;
pub use mio::net::{TcpListener, TcpStream};
pub use mio::{Events, Interest, Poll, Registry, Token, Waker};

/// Silence of a peer after which it is asked whether it is there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// Time between two such questions.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Questions without an answer after which it is taken for gone.
const KEEPALIVE_PROBES: u32 = 6;

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

/// Prepares a connection that was just accepted: small writes are sent at once, and a peer that has
/// gone without a word is noticed within two minutes. Best effort: a socket that takes no option
/// serves all the same.
pub fn prepare_accepted(socket: &TcpStream) {
    use rustix::net::sockopt;
    socket.set_nodelay(true).ok();
    if sockopt::set_socket_keepalive(socket, true).is_ok() {
        sockopt::set_tcp_keepidle(socket, KEEPALIVE_IDLE).ok();
        sockopt::set_tcp_keepintvl(socket, KEEPALIVE_INTERVAL).ok();
        sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES).ok();
    }
}

/// Whether an accept failed because of the one connection that was next: others wait behind it.
/// Source: accept(2), "Error handling".
pub fn is_about_one_connection(error: &io::Error) -> bool {
    use rustix::io::Errno;
    const ERRORS: [Errno; 10] = [
        Errno::INTR,
        Errno::CONNABORTED,
        Errno::PROTO,
        Errno::NETDOWN,
        Errno::NOPROTOOPT,
        Errno::HOSTDOWN,
        Errno::HOSTUNREACH,
        Errno::OPNOTSUPP,
        Errno::NETUNREACH,
        Errno::PERM,
    ];
    Errno::from_io_error(error).is_some_and(|errno| ERRORS.contains(&errno))
}

/// The addresses of a host name, or of an address in text form. Never empty.
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the host has no address"));
    }
    Ok(addresses)
}
