//! A connection that never blocks, driven by readiness.

use std::io::{self, Write};

use client::{ClientError, Connection, ConnectionOptions, ReceiveBuffer, ServerAddress};
use platform::network::{Registry, Stream, Token};
use protocol::{FeatureSet, Frame};

/// Bytes that an idle send buffer keeps.
const IDLE_SIZE_MAX: usize = 1 << 20;

/// One connection of one client to one node.
#[derive(Debug)]
pub(super) struct Link {
    stream: Stream,
    /// Requests. Invariant: `unsent[..sent]` has left.
    unsent: Vec<u8>,
    sent: usize,
    received: ReceiveBuffer,
}

/// What reading brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Nothing for now.
    Nothing,
    /// Bytes, and nothing more for now.
    Last,
    /// Bytes, and perhaps more.
    Some,
}

impl Link {
    /// Connects, which blocks, and asks to hear of the connection under this token.
    pub(super) fn open(
        node: &ServerAddress,
        options: &ConnectionOptions,
        registry: &Registry,
        token: Token,
    ) -> Result<(Self, FeatureSet), ClientError> {
        let connection = Connection::open(node, options)?;
        let features = connection.features();
        let registered = Stream::from_standard(connection.into_stream())
            .and_then(|stream| registry.watch(stream, token));
        let stream = registered
            .map_err(|cause| ClientError::Unreachable { address: node.to_string(), cause })?;
        let received = ReceiveBuffer::new();
        Ok((Self { stream, unsent: Vec::new(), sent: 0, received }, features))
    }

    /// Where requests are encoded to.
    pub(super) fn requests(&mut self) -> &mut Vec<u8> {
        &mut self.unsent
    }

    /// Sends as much as the system takes. The rest leaves when the connection is writable again.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.sent < self.unsent.len() {
            match self.stream.write(&self.unsent[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.sent = 0;
        self.unsent.clear();
        self.unsent.shrink_to(IDLE_SIZE_MAX);
        Ok(())
    }

    /// Reads once.
    pub(super) fn fill(&mut self) -> io::Result<Arrival> {
        loop {
            match self.received.fill_from(&mut self.stream) {
                Ok(filled) if filled.bytes == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(filled) => {
                    return Ok(if filled.is_full { Arrival::Some } else { Arrival::Last });
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Arrival::Nothing);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The next frame that is complete.
    pub(super) fn next_frame(&mut self) -> io::Result<Option<Frame<'_>>> {
        self.received.next_frame().map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("not the protocol: {error:?}"))
        })
    }
}
