//! One connection to one node: requests out, responses in, in order or by opaque.

use std::io::Write;
use std::net::TcpStream;

use document::CollectionId;
use platform::network;
use protocol::client::{Request, Response, encode_key};
use protocol::{Feature, FeatureSet, Magic, Opcode};

use crate::error::ClientError;
use crate::handshake;
use crate::options::{ConnectionOptions, ServerAddress};
use crate::receive_buffer::ReceiveBuffer;
use crate::response::OwnedResponse;
use crate::routing::PortKind;
use crate::transport::{Stream, Transport};

/// A blocking connection. After any error but [`ClientError::Refused`] it is of no further use.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    address: String,
    timeout: std::time::Duration,
    is_encrypted: bool,
    features: FeatureSet,
    /// Requests that were encoded and not sent.
    unsent: Vec<u8>,
    received: ReceiveBuffer,
}

impl Connection {
    /// Connects, says hello, logs in and selects the bucket.
    pub fn open(node: &ServerAddress, options: &ConnectionOptions) -> Result<Self, ClientError> {
        let socket = connect(node, options)?;
        let Some(connector) = &options.tls else {
            return Self::begin(Stream::Socket(socket), node, options);
        };
        let session = connector.connect_blocking(&node.host, socket);
        let session = session
            .map_err(|cause| ClientError::Unreachable { address: node.to_string(), cause })?;
        Self::over(session, node, options)
    }

    /// The same over a stream that is there.
    pub fn over(
        stream: impl Transport + 'static,
        node: &ServerAddress,
        options: &ConnectionOptions,
    ) -> Result<Self, ClientError> {
        Self::begin(Stream::Other(Box::new(stream)), node, options)
    }

    fn begin(
        stream: Stream,
        node: &ServerAddress,
        options: &ConnectionOptions,
    ) -> Result<Self, ClientError> {
        let mut connection = Self {
            stream,
            address: node.to_string(),
            timeout: options.timeout,
            is_encrypted: options.tls.is_some(),
            features: FeatureSet::NONE,
            unsent: Vec::new(),
            received: ReceiveBuffer::new(),
        };
        if !options.is_classic {
            connection.features = handshake::perform(&mut connection, options)?;
        }
        Ok(connection)
    }

    /// What the server granted.
    pub fn features(&self) -> FeatureSet {
        self.features
    }

    /// The ports of nodes to which this connection is one.
    pub fn port_kind(&self) -> PortKind {
        if self.is_encrypted { PortKind::Encrypted } else { PortKind::Plain }
    }

    /// Host and port, for messages.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Encodes a request. It leaves with [`Connection::flush`].
    pub fn send(&mut self, request: &Request<'_>) {
        request.encode(&mut self.unsent);
    }

    /// Sends what was encoded.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        let sent = self.stream.write_all(&self.unsent);
        self.unsent.clear();
        sent.map_err(|error| ClientError::from_io(&self.address, self.timeout, error))
    }

    /// The next response. What the server says unasked is skipped.
    pub fn receive(&mut self) -> Result<OwnedResponse, ClientError> {
        loop {
            match self.received.next_frame() {
                Ok(Some(frame)) if frame.header.magic == Magic::ServerRequest => continue,
                Ok(Some(frame)) => {
                    return match Response::from_frame(&frame) {
                        Some(response) => Ok(OwnedResponse::new(&response)),
                        None => Err(self.nonsense("a request came instead of a response")),
                    };
                }
                Ok(None) => {}
                Err(error) => return Err(self.nonsense(format!("{error:?}"))),
            }
            let filled = self.received.fill_from(&mut self.stream);
            let ended = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
            let filled =
                filled.and_then(|fill| if fill.bytes == 0 { Err(ended()) } else { Ok(()) });
            filled.map_err(|error| ClientError::from_io(&self.address, self.timeout, error))?;
        }
    }

    /// One round trip. No other request may be under way.
    pub fn call(&mut self, request: &Request<'_>) -> Result<OwnedResponse, ClientError> {
        self.send(request);
        self.flush()?;
        let response = self.receive()?;
        if response.opaque() != request.opaque {
            return Err(self.nonsense("the response belongs to another request"));
        }
        Ok(response)
    }

    /// The key of a document as this connection sends it: without its collection where the server
    /// has none.
    pub fn encode_name(&self, collection: CollectionId, name: &[u8], out: &mut Vec<u8>) {
        if self.features.contains(Feature::Collections) {
            encode_key(collection, name, out);
        } else {
            out.extend_from_slice(name);
        }
    }

    /// The statistics of `group` (its name, perhaps with an argument behind a space), in the order
    /// in which they come.
    pub fn statistics(&mut self, group: &str) -> Result<Vec<(String, String)>, ClientError> {
        self.send(&Request { key: group.as_bytes(), ..Request::new(Opcode::Stat) });
        self.flush()?;
        let mut statistics = Vec::new();
        loop {
            let response = self.receive()?;
            if !response.is_success() {
                return Err(self.refused("STAT", &response));
            }
            if response.key().is_empty() {
                return Ok(statistics);
            }
            let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
            statistics.push((text(response.key()), text(response.value())));
        }
    }

    /// The socket of a connection that was [opened](Connection::open) without TLS, for callers that
    /// bring their own loop. Nothing may be under way.
    pub fn into_stream(self) -> TcpStream {
        assert!(self.unsent.is_empty(), "every request was sent");
        assert_eq!(self.received.unread_size(), 0, "every response was read");
        match self.stream {
            Stream::Socket(socket) => socket,
            Stream::Other(stream) => panic!("{stream:?} is no socket"),
        }
    }

    pub(crate) fn refused(&self, operation: &'static str, response: &OwnedResponse) -> ClientError {
        let context = String::from_utf8_lossy(response.value());
        let context = context.trim_end_matches('\0');
        ClientError::Refused {
            address: self.address.clone(),
            operation,
            status: response.status_code(),
            context: if context.is_empty() { String::new() } else { format!(": {context}") },
        }
    }

    pub(crate) fn nonsense(&self, reason: impl Into<String>) -> ClientError {
        ClientError::Nonsense { address: self.address.clone(), reason: reason.into() }
    }
}

/// A socket to a node, for whoever puts something between it and a [`Connection`]. Reads and writes
/// wait as long as `options` say.
///
/// # Errors
/// Nobody is reached there.
pub fn connect(
    node: &ServerAddress,
    options: &ConnectionOptions,
) -> Result<TcpStream, ClientError> {
    let unreachable = |cause| ClientError::Unreachable { address: node.to_string(), cause };
    let addresses = network::resolve(&node.host, node.port).map_err(unreachable)?;
    let mut failure = None;
    for address in addresses {
        let connected = network::connect_within(address, options.timeout).and_then(|stream| {
            stream.set_read_timeout(Some(options.timeout))?;
            stream.set_write_timeout(Some(options.timeout))?;
            Ok(stream)
        });
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = Some(error),
        }
    }
    Err(unreachable(failure.expect("a host that was resolved has an address")))
}
