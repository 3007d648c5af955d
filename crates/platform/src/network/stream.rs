//! Sockets that never block.

use std::io::{self, IoSlice, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::SockRef;

use super::uring;
use crate::simulated::network as simulated;

/// Silence of a peer after which it is asked whether it is there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
/// Time between two such questions.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Questions without an answer after which it is taken for gone.
const KEEPALIVE_PROBES: u32 = 6;

/// A socket that accepts connections.
#[derive(Debug)]
pub enum Listener {
    /// Of the operating system.
    Real(mio::net::TcpListener),
    /// Of a simulated network.
    Simulated(simulated::Listener),
}

/// A connection. What cannot be done at once is answered `WouldBlock`.
#[derive(Debug)]
pub enum Stream {
    /// Of the operating system.
    Real(mio::net::TcpStream),
    /// The same, looked after by a loop with a ring.
    Uring(uring::Stream),
    /// Of a simulated network.
    Simulated(simulated::Stream),
}

impl Listener {
    /// The next connection, on which small writes are sent at once and a peer that has gone without
    /// a word is noticed within two minutes.
    pub fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Real(listener) => {
                let (stream, _) = listener.accept()?;
                prepare_accepted(&stream);
                Ok(Stream::Real(stream))
            }
            Self::Simulated(listener) => Ok(Stream::Simulated(listener.accept()?)),
        }
    }

    /// Where it listens.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Real(listener) => listener.local_addr(),
            Self::Simulated(listener) => Ok(listener.address()),
        }
    }
}

impl Stream {
    /// A connection that was made by blocking calls.
    pub fn from_standard(stream: std::net::TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::Real(mio::net::TcpStream::from_std(stream)))
    }

    /// Where its peer is.
    pub fn peer_address(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Real(stream) => stream.peer_addr(),
            Self::Uring(stream) => stream.peer_address(),
            Self::Simulated(stream) => Ok(stream.peer_address()),
        }
    }

    /// From now on no more is taken while the system holds `bytes_max` that it has not sent. Left
    /// alone it takes 2.5 MiB of a peer on the same machine that reads nothing, and some thousand
    /// of those use up what all TCP of the machine may have. Best effort: a socket that takes no
    /// option serves all the same. Source: tcp(7), TCP_NOTSENT_LOWAT.
    pub fn bound_queue(&self, bytes_max: u32) {
        match self {
            Self::Real(stream) => {
                SockRef::from(stream).set_tcp_notsent_lowat(bytes_max).ok();
            }
            Self::Uring(stream) => {
                SockRef::from(stream.socket()).set_tcp_notsent_lowat(bytes_max).ok();
            }
            // Its queues are bounded.
            Self::Simulated(_) => {}
        }
    }

    /// From now on its loop may receive before it is read, and send after it was written, or not.
    /// Who sends small requests one after the other then needs no calls of its own; what was
    /// received ahead is the node's to hold, and [`Stream::unread_bytes`] says how much it is. One
    /// that nobody has allowed anything reads and writes by calls; others may do the same.
    pub fn allow_ahead(&self, is_allowed: bool) {
        if let Self::Uring(stream) = self {
            stream.allow_ahead(is_allowed);
        }
    }

    /// Bytes that were received and not read.
    #[inline]
    pub fn unread_bytes(&self) -> usize {
        match self {
            Self::Uring(stream) => stream.unread_bytes(),
            Self::Real(_) | Self::Simulated(_) => 0,
        }
    }

    /// Bytes that were written and that the system did not take when it was first tried. When that
    /// changes, it is an edge.
    #[inline]
    pub fn unsent_bytes(&self) -> usize {
        match self {
            Self::Uring(stream) => stream.unsent_bytes(),
            Self::Real(_) | Self::Simulated(_) => 0,
        }
    }

    /// Whether the system has all that was written. If not, an edge says when it has. What it does
    /// not have is tried once when the stream is dropped.
    pub fn has_sent(&self) -> bool {
        match self {
            Self::Uring(stream) => stream.has_sent(),
            Self::Real(_) | Self::Simulated(_) => true,
        }
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Real(stream) => stream.read(target),
            Self::Uring(stream) => stream.read(target),
            Self::Simulated(stream) => stream.read(target),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Real(stream) => stream.write(bytes),
            Self::Uring(stream) => stream.write(&[IoSlice::new(bytes)]),
            Self::Simulated(stream) => stream.write(bytes),
        }
    }

    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Real(stream) => stream.write_vectored(slices),
            Self::Uring(stream) => stream.write(slices),
            Self::Simulated(stream) => {
                let first = slices.iter().find(|slice| !slice.is_empty());
                first.map_or(Ok(0), |slice| stream.write(slice))
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Has small writes on a connection that was accepted be sent at once, and a peer that has gone
/// without a word be noticed within two minutes: otherwise who waits for it to say or take
/// something waits for good. Best effort: a socket that takes no option serves all the same.
pub fn prepare_accepted(socket: impl AsFd) {
    use rustix::net::sockopt;
    let socket = socket.as_fd();
    sockopt::set_tcp_nodelay(socket, true).ok();
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
