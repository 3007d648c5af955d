//! A connection that never blocks, whose requests are carried out in whichever order is best for
//! the node, as SDKs ask for.

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use client::{Connection, ConnectionOptions, ReceiveBuffer, ServerAddress};
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use protocol::{Feature, Frame};

use crate::couchbase::Login;

/// Bytes that a buffer of requests keeps when all have left.
const IDLE_BYTES_MAX: usize = 1 << 20;

pub(super) struct Link {
    stream: TcpStream,
    /// Requests. Invariant: `unsent[..sent]` has left.
    pub(super) unsent: Vec<u8>,
    sent: usize,
    received: ReceiveBuffer,
}

impl Link {
    /// Logs in, which blocks, and tells `registry` to watch the connection.
    pub(super) fn open(
        address: SocketAddr,
        login: &Login,
        registry: &Registry,
        token: Token,
    ) -> Result<Self> {
        let mut options = ConnectionOptions::new("soak");
        options.features = options.features.with(Feature::UnorderedExecution);
        options.login = Some(client::Login::new(&login.user, &login.password));
        options.bucket = Some(login.bucket.clone());
        let server = ServerAddress::new(address.ip().to_string(), address.port());
        let connection = Connection::open(&server, &options)?;
        ensure!(connection.features() == options.features, "the node does not grant all features");
        let stream = connection.into_stream();
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        Ok(Self { stream, unsent: Vec::new(), sent: 0, received: ReceiveBuffer::new() })
    }

    /// Sends as much as the system takes. The rest leaves when the connection is writable again.
    pub(super) fn flush(&mut self) -> Result<()> {
        while self.sent < self.unsent.len() {
            match self.stream.write(&self.unsent[self.sent..]) {
                Ok(size) => self.sent += size,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("the node closed a connection"),
            }
        }
        self.sent = 0;
        self.unsent.clear();
        self.unsent.shrink_to(IDLE_BYTES_MAX);
        Ok(())
    }

    /// Reads until nothing is left in the socket, and hands on every frame that is complete.
    pub(super) fn read(&mut self, mut take: impl FnMut(&Frame<'_>) -> Result<()>) -> Result<()> {
        loop {
            let filled = match self.received.fill_from(&mut self.stream) {
                Ok(filled) if filled.bytes == 0 => bail!("the node closed a connection"),
                Ok(filled) => filled,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("the node closed a connection"),
            };
            loop {
                let frame = self.received.next_frame();
                match frame.map_err(|error| anyhow::anyhow!("not the protocol: {error:?}"))? {
                    Some(frame) => take(&frame)?,
                    None => break,
                }
            }
            // Such a read emptied the socket; news comes with an event.
            if !filled.is_full {
                return Ok(());
            }
        }
    }
}
