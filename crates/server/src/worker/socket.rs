//! A connection's socket, with or without TLS.

use std::io::{self, ErrorKind, IoSlice, Read, Write};

use platform::network::Stream;
use tls::{Acceptor, Arrival, SESSION_BYTES, TlsStream};

use crate::client_memory::Holder;

/// What the system may hold unsent of a client's answers, in bytes, beside what the node holds.
const CLIENT_QUEUE_BYTES_MAX: u32 = 256 << 10;
/// The same of somebody who has not logged in.
const STRANGER_QUEUE_BYTES_MAX: u32 = 16 << 10;

/// What a connection reads and writes. A session lies elsewhere: plain ones are no larger for it.
pub(super) enum Socket {
    Plain(Stream),
    Tls(Box<TlsStream<Stream>>),
}

impl Socket {
    /// A session on a socket that was just accepted.
    pub(super) fn tls(stream: Stream, acceptor: &Acceptor) -> io::Result<Self> {
        Ok(Self::Tls(Box::new(acceptor.accept(stream)?)))
    }

    /// What a poll watches.
    pub(super) fn stream(&mut self) -> &mut Stream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.socket_mut(),
        }
    }

    fn stream_ref(&self) -> &Stream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.socket(),
        }
    }

    /// Bounds what the system holds for a peer that does not read. A client's requests may be
    /// received before its turn, as it may make the node hold something.
    pub(super) fn settle(&mut self, holder: Holder) {
        let stream = self.stream();
        stream.bound_queue(match holder {
            Holder::Client | Holder::Guest => CLIENT_QUEUE_BYTES_MAX,
            Holder::Stranger => STRANGER_QUEUE_BYTES_MAX,
        });
        stream.allow_ahead(holder != Holder::Stranger);
    }

    /// Reads once. A short read of a socket has drained it: the next bytes bring an edge of their
    /// own.
    #[inline]
    pub(super) fn read(&mut self, target: &mut [u8]) -> io::Result<Arrival> {
        match self {
            Self::Plain(stream) => read_plain(stream, target),
            Self::Tls(stream) => stream.read(target),
        }
    }

    /// Bytes that it has taken and that wait for their reader.
    #[inline]
    pub(super) fn unsent_bytes(&self) -> usize {
        match self {
            Self::Plain(stream) => stream.unsent_bytes(),
            Self::Tls(stream) => stream.unsent_bytes() + stream.socket().unsent_bytes(),
        }
    }

    /// Whether the system has all that it has taken. If not, an edge says when it has.
    pub(super) fn has_sent(&self) -> bool {
        self.stream_ref().has_sent()
    }

    /// Bytes that it makes the node hold beside those: what was received and not read, and a
    /// session. How many of those strangers have is bounded where they are let in.
    #[inline]
    pub(super) fn held_bytes(&self, holder: Holder) -> usize {
        let session_bytes = match (self, holder) {
            (Self::Plain(_), _) | (Self::Tls(_), Holder::Stranger) => 0,
            (Self::Tls(_), Holder::Client | Holder::Guest) => SESSION_BYTES,
        };
        session_bytes + self.stream_ref().unread_bytes()
    }

    /// Nothing more is said.
    pub(super) fn say_goodbye(&mut self) {
        match self {
            Self::Plain(_) => {}
            Self::Tls(stream) => stream.say_goodbye(),
        }
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    #[inline]
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write_vectored(slices),
            Self::Tls(stream) => stream.write_vectored(slices),
        }
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.flush(),
        }
    }
}

fn read_plain(stream: &mut Stream, target: &mut [u8]) -> io::Result<Arrival> {
    let arrival = |bytes, has_more, is_end| Arrival { bytes, has_more, is_end };
    match stream.read(target) {
        Ok(0) => Ok(arrival(0, false, true)),
        Ok(bytes) => Ok(arrival(bytes, bytes == target.len(), false)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(arrival(0, false, false)),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(arrival(0, true, false)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_without_tls_is_no_larger_for_those_with() {
        assert_eq!(size_of::<Socket>(), size_of::<Stream>());
    }
}
