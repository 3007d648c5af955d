//! What new sessions are made of, which may be changed while others go on.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use platform::Clock;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use crate::client_auth::{ClientAuthState, ClientCertificates};
use crate::client_verifier::{ClientVerifier, NodeVerifier};
use crate::stream::TlsStream;

pub(crate) const CLIENT_AUTHORITIES: &str = "the authorities that sign clients' certificates";
pub(crate) const NODE_AUTHORITIES: &str = "the authorities that sign nodes' certificates";

/// What a node shows, and whom it believes. Texts are PEM.
#[derive(Clone, Default)]
pub struct Material {
    /// The node's certificate, and those between it and what clients trust.
    pub chain: Vec<u8>,
    /// Its key.
    pub key: Vec<u8>,
    /// The authorities that sign clients' certificates.
    pub client_authorities: Vec<u8>,
    /// What is asked of clients.
    pub clients: ClientCertificates,
    /// The authorities that sign other nodes' certificates; empty where nodes speak plainly.
    pub node_authorities: Vec<u8>,
}

/// Why material cannot be used, in words for whoever has written the files.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {why}")]
pub struct InvalidMaterial {
    /// Which of it.
    pub what: &'static str,
    /// What is wrong.
    pub why: String,
}

/// Makes sessions.
pub struct Acceptor {
    clock: Clock,
    current: Mutex<Arc<Current>>,
}

struct Current {
    config: Arc<ServerConfig>,
    clients: ClientCertificates,
    /// What finds other nodes among clients.
    nodes: Option<Arc<NodeVerifier>>,
}

/// Whose a client's certificate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It has shown none, another node's, or one with no name that is looked for: it logs in
    /// otherwise.
    None,
    /// This user's, if there is one.
    User(String),
    /// It has a certificate without a name, where a name must be.
    Nameless,
}

impl Acceptor {
    /// One that makes sessions of `material`.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn new(clock: Clock, material: &Material) -> Result<Self, InvalidMaterial> {
        let current = Current::of(&clock, material)?;
        Ok(Self { clock, current: Mutex::new(Arc::new(current)) })
    }

    /// From now on sessions are made of `material`. Those that are on go on as they are.
    ///
    /// # Errors
    /// It cannot be used: what was used before is used further.
    pub fn replace(&self, material: &Material) -> Result<(), InvalidMaterial> {
        let current = Arc::new(Current::of(&self.clock, material)?);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = current;
        Ok(())
    }

    /// A session on `socket`, which has just been accepted.
    ///
    /// # Errors
    /// The session cannot be made; its socket is closed.
    pub fn accept<S: Read + Write>(&self, socket: S) -> io::Result<TlsStream<S>> {
        let session = ServerConnection::new(self.config()).map_err(io::Error::other)?;
        Ok(TlsStream::new(session.into(), socket))
    }

    /// What sessions are made of, for whoever drives them otherwise.
    pub fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current().config)
    }

    /// Whose a verified chain is; the client's own certificate is its first.
    pub fn claim_of(&self, chain: &[CertificateDer<'_>]) -> Claim {
        let current = self.current();
        let Some(certificate) = chain.first() else { return Claim::None };
        let now = wall_time(&self.clock);
        // First: the name in another node's certificate is no user's, whatever the rules find in
        // it.
        if current.nodes.as_ref().is_some_and(|nodes| nodes.is_node(chain, now)) {
            return Claim::None;
        }
        match (current.clients.user_in(certificate), current.clients.state) {
            (_, ClientAuthState::Disable) => Claim::None,
            (Some(user), _) => Claim::User(user),
            (None, ClientAuthState::Enable) => Claim::None,
            (None, ClientAuthState::Mandatory) => Claim::Nameless,
        }
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Current {
    fn of(clock: &Clock, material: &Material) -> Result<Self, InvalidMaterial> {
        let invalid = |what, why: String| InvalidMaterial { what, why };
        let chain = certificates("the certificate", &material.chain)?;
        let key = PrivateKeyDer::from_pem_slice(&material.key)
            .map_err(|error| invalid("the key", error.to_string()))?;
        let clients = material.clients.clone();
        clients.check().map_err(|error| invalid("the rules for clients", error.to_string()))?;
        let provider = Arc::new(ring::default_provider());
        let time: Arc<dyn TimeProvider> = Arc::new(WallClock(clock.clone()));
        let mut nodes = None;
        let builder = ServerConfig::builder_with_details(Arc::clone(&provider), time)
            .with_safe_default_protocol_versions()
            .map_err(|error| invalid("TLS", error.to_string()))?;
        let builder = if clients.state == ClientAuthState::Disable {
            builder.with_no_client_auth()
        } else {
            if !material.node_authorities.is_empty() {
                let roots = authorities(NODE_AUTHORITIES, &material.node_authorities)?;
                let built = NodeVerifier::new(roots, Arc::clone(&provider));
                let built = built.map_err(|error| invalid(NODE_AUTHORITIES, error.to_string()))?;
                nodes = Some(Arc::new(built));
            }
            let roots = Arc::new(authorities(CLIENT_AUTHORITIES, &material.client_authorities)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            let verifier = match clients.state {
                ClientAuthState::Mandatory => verifier,
                _ => verifier.allow_unauthenticated(),
            };
            let verifier =
                verifier.build().map_err(|error| invalid(CLIENT_AUTHORITIES, error.to_string()))?;
            builder.with_client_cert_verifier(ClientVerifier::new(verifier, nodes.clone()))
        };
        let mut config = builder
            .with_single_cert(chain, key)
            .map_err(|error| invalid("the certificate and its key", error.to_string()))?;
        if clients.state != ClientAuthState::Disable {
            // Who resumes a session shows no certificate, so that nobody would look whether the one
            // of then still holds.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Self { config: Arc::new(config), clients, nodes })
    }
}

pub(crate) fn certificates(
    what: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, InvalidMaterial> {
    let invalid = |why: String| InvalidMaterial { what, why };
    let read = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
    let read = read.map_err(|error| invalid(error.to_string()))?;
    if read.is_empty() {
        return Err(invalid("there is none (no BEGIN CERTIFICATE)".to_owned()));
    }
    Ok(read)
}

/// Whom to believe.
pub(crate) fn authorities(
    what: &'static str,
    pem: &[u8],
) -> Result<RootCertStore, InvalidMaterial> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(what, pem)? {
        let added = roots.add(certificate);
        added.map_err(|error| InvalidMaterial { what, why: error.to_string() })?;
    }
    Ok(roots)
}

/// Time for whoever verifies certificates.
#[derive(Debug)]
pub(crate) struct WallClock(pub(crate) Clock);

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(wall_time(&self.0))
    }
}

fn wall_time(clock: &Clock) -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(clock.wall_time().seconds().into()))
}
