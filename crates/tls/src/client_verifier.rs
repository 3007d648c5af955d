//! Whose certificates are believed at a node's door: those of its clients, and of other nodes.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};

/// Finds other nodes: their certificates are for servers, too, and of authorities of their own.
#[derive(Debug)]
pub(crate) struct NodeVerifier(Arc<dyn ClientCertVerifier>);

impl NodeVerifier {
    /// One that believes `roots`.
    pub(crate) fn new(
        roots: RootCertStore,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.build().map(Self)
    }

    /// Whether a chain is another node's; its own certificate is the first.
    pub(crate) fn is_node(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> bool {
        let Some((certificate, rest)) = chain.split_first() else { return false };
        self.verify(certificate, rest, now).is_ok()
    }

    fn verify(
        &self,
        certificate: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if !is_for_servers(certificate) {
            return Err(rustls::CertificateError::InvalidPurpose.into());
        }
        self.0.verify_client_cert(certificate, rest, now)
    }
}

fn is_for_servers(certificate: &CertificateDer<'_>) -> bool {
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else { return false };
    let usage = parsed.extended_key_usage().ok().flatten();
    usage.is_some_and(|usage| usage.value.server_auth)
}

/// Believes clients' certificates, and nodes' beside them.
#[derive(Debug)]
pub(crate) struct ClientVerifier {
    clients: Arc<dyn ClientCertVerifier>,
    nodes: Option<Arc<NodeVerifier>>,
    /// Names of the authorities of both, for whoever has several certificates.
    hints: Vec<DistinguishedName>,
}

impl ClientVerifier {
    pub(crate) fn new(
        clients: Arc<dyn ClientCertVerifier>,
        nodes: Option<Arc<NodeVerifier>>,
    ) -> Arc<Self> {
        let mut hints = clients.root_hint_subjects().to_vec();
        let of_nodes = nodes.iter().flat_map(|nodes| nodes.0.root_hint_subjects());
        hints.extend(of_nodes.cloned());
        Arc::new(Self { clients, nodes, hints })
    }
}

impl ClientCertVerifier for ClientVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn client_auth_mandatory(&self) -> bool {
        self.clients.client_auth_mandatory()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let as_client = self.clients.verify_client_cert(end_entity, intermediates, now);
        match (as_client, &self.nodes) {
            (Err(error), Some(nodes)) => {
                nodes.verify(end_entity, intermediates, now).map_err(|_| error)
            }
            (verified, _) => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.clients.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.clients.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.clients.supported_verify_schemes()
    }
}
