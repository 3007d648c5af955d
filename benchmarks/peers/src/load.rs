//! What to ask for: keys, values, connections.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use anyhow::Result;
use rustls::ClientConfig;

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

/// What is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// Bytes that do not compress.
    #[default]
    Incompressible,
    /// Objects with fields of about 100 bytes.
    Json,
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
    /// How it is encrypted, where it is.
    pub tls: Option<Arc<ClientConfig>>,
}

impl Target {
    /// One that is spoken to in the clear.
    pub fn plain(address: SocketAddr, dialect: Dialect, login: Option<Login>) -> Self {
        Self { address, dialect, login, tls: None }
    }

    /// A connection in the clear that is ready for operations.
    pub fn connect(&self) -> Result<TcpStream> {
        assert!(self.tls.is_none(), "who wants encryption opens a wire");
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        if let Some(login) = &self.login {
            couchbase::bootstrap(&mut stream, login)?;
        }
        Ok(stream)
    }
}

/// Bytes of a key, unless longer ones are asked for.
pub const KEY_BYTES: usize = 16;

/// Key number `index`.
pub fn key(index: usize) -> [u8; KEY_BYTES] {
    let mut key = *b"key:000000000000";
    let mut rest = index;
    for digit in key.iter_mut().rev().take(12) {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    key
}

impl Values {
    /// One of so many bytes, the same in every run.
    pub fn of(self, size: usize) -> Vec<u8> {
        match self {
            Self::Incompressible => {
                let mut value = vec![0; size];
                platform::Random::from_seed(1).fill(&mut value);
                value
            }
            Self::Json => json_object(size),
        }
    }
}

/// An object with as many fields as there is room for. That in the middle is the one that
/// [`Dialect::SubDocument`] asks for.
fn json_object(size: usize) -> Vec<u8> {
    const FIELD_BYTES: usize = 100;
    let count = size / FIELD_BYTES;
    let field = |index| {
        let name = if index == count / 2 { "field".to_owned() } else { format!("name{index:03}") };
        format!("\"{name}\":\"{}\"", "text ".repeat(17))
    };
    let fields: Vec<String> = (0..count).map(field).collect();
    format!("{{{}}}", fields.join(",")).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_and_values_have_their_size() {
        assert_eq!(&key(0), b"key:000000000000");
        assert_eq!(&key(1_234_567), b"key:000001234567");
        assert_eq!(Values::Incompressible.of(100).len(), 100);
        assert_ne!(Values::Incompressible.of(100), vec![0; 100]);
        let object = Values::Json.of(4096);
        assert!((3800..=4096).contains(&object.len()), "{} bytes", object.len());
        let object: serde_json::Value = serde_json::from_slice(&object).expect("an object");
        assert!(object["field"].is_string());
    }
}
