//! The socket of a connection to another node, with or without TLS.

use std::io::{self, ErrorKind, Read, Write};

use platform::network::Stream;
use tls::{Connector, Handshake, TlsStream};

/// What a connection reads and writes. Neither blocks.
pub(super) enum LineSocket {
    Plain(Stream),
    Tls(Box<TlsStream<Stream>>),
}

/// What a read has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Bytes(usize),
    /// Nothing; the next edge of the socket brings more.
    Nothing,
    /// Nothing yet: more is there without another edge.
    Again,
    End,
}

impl LineSocket {
    /// A session with the node at `host`, on a socket that is being connected.
    pub(super) fn tls(stream: Stream, host: &str, connector: &Connector) -> io::Result<Self> {
        Ok(Self::Tls(Box::new(connector.connect(host, stream)?)))
    }

    /// Reads once.
    pub(super) fn read(&mut self, target: &mut [u8]) -> io::Result<Received> {
        match self {
            Self::Plain(stream) => read_plain(stream, target),
            Self::Tls(stream) => read_tls(stream, target),
        }
    }

    /// Takes what it can; 0 where it takes nothing now. What a session has taken is as good as
    /// sent, but it has to be given its turn, also with nothing.
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match self {
            Self::Plain(_) if bytes.is_empty() => Ok(0),
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) if bytes.is_empty() || stream.is_shaking_hands() => {
                stream.flush().map(|()| 0)
            }
            Self::Tls(stream) => stream.write(bytes),
        };
        match written {
            // A connection that is not made yet is one that cannot be written to.
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) =>
            {
                Ok(0)
            }
            written => written,
        }
    }
}

fn read_plain(stream: &mut Stream, target: &mut [u8]) -> io::Result<Received> {
    match stream.read(target) {
        Ok(0) => Ok(Received::End),
        Ok(size) => Ok(Received::Bytes(size)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Received::Nothing),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Received::Again),
        Err(error) => Err(error),
    }
}

fn read_tls(stream: &mut TlsStream<Stream>, target: &mut [u8]) -> io::Result<Received> {
    if stream.is_shaking_hands() {
        return match stream.shake_hands()? {
            Handshake::Waits => Ok(Received::Nothing),
            // What came behind the handshake may be in the session already.
            Handshake::GoesOn | Handshake::Done => Ok(Received::Again),
        };
    }
    let arrival = stream.read(target)?;
    match arrival.bytes {
        0 if arrival.is_end => Ok(Received::End),
        0 if arrival.has_more => Ok(Received::Again),
        0 => Ok(Received::Nothing),
        bytes => Ok(Received::Bytes(bytes)),
    }
}
