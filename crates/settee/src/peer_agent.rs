//! Asking a node's management port, by TLS where nodes speak that.

use std::time::Duration;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cluster::NodeAddress;
use tls::Connector;
use ureq::Agent;
use ureq::http::Response;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// Bytes of what a node tells: all users and groups, or a plan of many buckets.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// Asks one node, and waits so long for the connection and for each answer.
pub(crate) struct PeerAgent {
    pub(crate) agent: Agent,
    base: String,
}

impl PeerAgent {
    /// Asks the node at this address; only by TLS where there is a connector.
    ///
    /// # Errors
    /// The node has no port behind TLS, or what the connector has cannot be used.
    pub(crate) fn new(
        node: &NodeAddress,
        connector: Option<&Connector>,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .timeout_connect(Some(patience))
            .timeout_global(Some(patience));
        let host = &node.host;
        let Some(connector) = connector else {
            let base = format!("http://{host}:{}", node.management_port);
            return Ok(Self { agent: config.build().into(), base });
        };
        let ports = node.tls.context(
            "the map says no mgmtSSL of the node, and nodes speak TLS alone (--tls-node-ca): give \
             the map both ports behind TLS",
        )?;
        let config = config.https_only(true).tls_config(tls_config(connector)?);
        let base = format!("https://{host}:{}", ports.management);
        Ok(Self { agent: config.build().into(), base })
    }

    /// The address of a resource.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

/// The header that says who asks.
pub(crate) fn authorization(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// What a node has answered.
pub(crate) fn body_of(mut answer: Response<ureq::Body>) -> anyhow::Result<String> {
    let reader = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX);
    Ok(reader.read_to_string()?)
}

fn tls_config(connector: &Connector) -> anyhow::Result<TlsConfig> {
    let certificate = |der: &[u8]| Certificate::from_der(der).to_owned();
    let authorities = connector.authorities();
    let roots: Vec<_> = authorities.iter().map(|one| certificate(one)).collect();
    let (chain, key) = connector.identity();
    let shown = if chain.is_empty() {
        None
    } else {
        let chain: Vec<_> = chain.iter().map(|one| certificate(one)).collect();
        Some(ClientCert::new_with_certs(&chain, PrivateKey::from_pem(&key)?))
    };
    let config = TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&roots))
        .client_cert(shown)
        .unversioned_rustls_crypto_provider(tls::crypto_provider());
    Ok(config.build())
}
