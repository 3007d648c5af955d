//! What to ask for: keys, values, connections.

use std::net::{SocketAddr, TcpStream};

use anyhow::Result;

use crate::couchbase::{self, Login};
use crate::dialect::{Dialect, Operation};

/// One point of measurement.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// What is done.
    pub operation: Operation,
    /// Requests that a connection sends before it waits for their responses.
    pub pipeline: usize,
    /// Bytes of a value.
    pub value_bytes: usize,
}

/// A server as one kind of client sees it.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where.
    pub address: SocketAddr,
    /// How.
    pub dialect: Dialect,
    /// As whom, where that is asked.
    pub login: Option<Login>,
}

impl Target {
    /// A connection that is ready for operations.
    pub fn connect(&self) -> Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        if let Some(login) = &self.login {
            couchbase::bootstrap(&mut stream, login)?;
        }
        Ok(stream)
    }
}

/// Key number `index`: 16 bytes.
pub fn key(index: usize) -> [u8; 16] {
    let mut key = *b"key:000000000000";
    let mut rest = index;
    for digit in key.iter_mut().rev().take(12) {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// Bytes that do not compress, the same in every run.
pub fn value(size: usize) -> Vec<u8> {
    let mut value = vec![0; size];
    platform::Random::from_seed(1).fill(&mut value);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_values_have_their_size() {
        assert_eq!(&key(0), b"key:000000000000");
        assert_eq!(&key(1_234_567), b"key:000001234567");
        assert_eq!(value(100).len(), 100);
        assert_ne!(value(100), vec![0; 100]);
    }
}
