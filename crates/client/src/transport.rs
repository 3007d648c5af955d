//! What the bytes of a connection go through.

use std::fmt::Debug;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// A stream that blocks, as one of the operating system does: a test puts another one there.
pub trait Transport: Read + Write + Debug + Send {}

impl<T: Read + Write + Debug + Send> Transport for T {}

/// A connection's stream.
#[derive(Debug)]
pub(crate) enum Stream {
    Socket(TcpStream),
    Other(Box<dyn Transport>),
}

impl Read for Stream {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.read(target),
            Self::Other(stream) => stream.read(target),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket(socket) => socket.write(bytes),
            Self::Other(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Socket(socket) => socket.flush(),
            Self::Other(stream) => stream.flush(),
        }
    }
}
