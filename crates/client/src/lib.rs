//! A small routing, pipelining client for tools and tests.
//!
//! A [`Connection`] blocks; [`ClusterClient`] sends each document's requests to the node that owns
//! it. Tools that drive many connections at once open them here and then use [`ReceiveBuffer`].

pub mod cluster_client;
pub mod connection;
pub mod error;
pub mod fake_server;
mod handshake;
pub mod options;
pub mod receive_buffer;
pub mod response;
pub mod routing;
mod transport;

pub use cluster_client::ClusterClient;
pub use connection::Connection;
pub use error::{ClientError, status_name};
pub use fake_server::FakeServer;
pub use options::{ConnectionOptions, Login, ServerAddress};
pub use receive_buffer::ReceiveBuffer;
pub use response::OwnedResponse;
pub use routing::{PortKind, Routing};
pub use transport::Transport;
