//! What is followed, as whom, and how that goes.

use std::sync::Arc;

use document::Vbid;
use platform::Entropy;
use tls::Connector;

use crate::consumer::StreamStatus;

/// Where another node is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerAddress {
    /// Its name in topologies.
    pub name: String,
    /// Host name or address.
    pub host: String,
    /// Its data port.
    pub port: u16,
    /// The same behind TLS, if it speaks that.
    pub tls_port: Option<u16>,
    /// The identity of the bucket that is followed there, if the map says it: as long as the node
    /// has another one of its name it is not followed.
    pub bucket_uuid: Option<String>,
}

/// A vBucket that is to follow another node's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Follow {
    /// The vBucket.
    pub vbid: Vbid,
    /// The node where it is active.
    pub peer: PeerAddress,
}

/// Who this node is when it speaks to others.
#[derive(Clone)]
pub struct FollowerLogin {
    /// Its name in topologies.
    pub node: String,
    /// Who logs in.
    pub user: String,
    /// The password.
    pub password: String,
    /// Where the logins' nonces come from.
    pub entropy: Entropy,
    /// What begins sessions with others, if none of them is spoken to without TLS.
    pub connector: Option<Arc<Connector>>,
}

/// How a connection to another node is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkStatus {
    /// Its name on both nodes.
    pub connection: String,
    /// The node.
    pub peer: PeerAddress,
    /// Whether streams can be asked for.
    pub is_open: bool,
    /// Whether it is by TLS.
    pub is_tls: bool,
    /// Bytes received and not acknowledged yet.
    pub unacknowledged_bytes: u32,
    /// How often it was connected.
    pub connects: u64,
    /// Its streams.
    pub streams: Vec<StreamStatus>,
}
