//! TLS 1.2 and 1.3 beside a socket.
//!
//! A [`TlsStream`] never blocks and is driven by whoever owns its socket; an [`Acceptor`] has the
//! certificate that new sessions show, and may be given another at any time; a [`Connector`] begins
//! sessions with other nodes; a [`CertificateStore`] keeps a node's certificates in files, PEM
//! (RFC 7468).
#![warn(clippy::indexing_slicing)]

mod acceptor;
mod anyone;
mod authority_directory;
mod certificate_facts;
mod client_auth;
mod client_verifier;
mod connector;
mod pem_files;
mod self_signed;
mod store;
mod stream;

pub use acceptor::{Acceptor, Claim, InvalidMaterial, Material};
pub use authority_directory::AuthorityDirectory;
pub use certificate_facts::CertificateFacts;
pub use client_auth::{ClientAuthState, ClientCertificates, InvalidRules, NamePath, NameRule};
pub use connector::Connector;
pub use pem_files::CertificateError;
pub use rustls::ServerConfig;
pub use rustls::pki_types::CertificateDer;
pub use self_signed::{Authority, IssueError};
pub use store::{CertificateSources, CertificateStore};
pub use stream::{Arrival, Handshake, SESSION_BYTES, TlsStream};

/// The names of the cipher suites that sessions have, the best first.
pub fn cipher_suites() -> Vec<String> {
    let suites = crypto_provider().cipher_suites.clone();
    suites.iter().map(|suite| format!("{:?}", suite.suite())).collect()
}

/// The cryptography of every session, for whoever makes sessions otherwise.
pub fn crypto_provider() -> std::sync::Arc<rustls::crypto::CryptoProvider> {
    std::sync::Arc::new(rustls::crypto::ring::default_provider())
}
