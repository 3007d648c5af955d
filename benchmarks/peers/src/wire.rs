//! A connection of the load generator, in the clear or behind TLS, that never blocks.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use anyhow::Result;
use mio::net::TcpStream;
use rustls::ClientConnection;

use crate::couchbase;
use crate::load::Target;

/// The socket, and what encrypts for it.
pub struct Wire {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Wire {
    /// One that is ready for operations.
    pub fn open(target: &Target) -> Result<Self> {
        let Some(config) = &target.tls else {
            return Self::new(target.connect()?, None);
        };
        let mut socket = std::net::TcpStream::connect(target.address)?;
        socket.set_nodelay(true)?;
        let name = target.address.ip().into();
        let mut tls = ClientConnection::new(Arc::clone(config), name)?;
        let mut stream = rustls::Stream::new(&mut tls, &mut socket);
        // Until the handshake is over.
        stream.flush()?;
        if let Some(login) = &target.login {
            couchbase::bootstrap(&mut stream, login)?;
        }
        Self::new(socket, Some(Box::new(tls)))
    }

    fn new(socket: std::net::TcpStream, tls: Option<Box<ClientConnection>>) -> Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket: TcpStream::from_std(socket), tls })
    }

    /// For a poll.
    pub fn socket(&mut self) -> &mut TcpStream {
        &mut self.socket
    }

    /// Whether a read that does not fill its buffer has left nothing in the socket. TLS gives one
    /// record after the other.
    pub fn is_empty_after_short_read(&self) -> bool {
        self.tls.is_none()
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.socket.read(buffer) };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
            if tls.read_tls(&mut self.socket)? == 0 {
                return Ok(0);
            }
            tls.process_new_packets().map_err(io::Error::other)?;
        }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What is encrypted already goes first, so that this side of it stays small.
        self.flush()?;
        let Some(tls) = &mut self.tls else { return self.socket.write(bytes) };
        let size = tls.writer().write(bytes)?;
        match self.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(size),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        while tls.wants_write() {
            tls.write_tls(&mut self.socket)?;
        }
        Ok(())
    }
}
