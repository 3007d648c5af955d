//! The node's part in TLS: its certificates, and the door behind which they are shown.

use std::path::PathBuf;
use std::sync::Arc;

use cluster::TlsPorts;
use server::TlsDoor;
use tls::{CertificateSources, CertificateStore};

use crate::certificate_reminder;
use crate::config::{NodeConfig, TlsConfig};
use crate::data_directory::DataDirectory;
use crate::doors::open_door;
use crate::world::World;

/// What a node has that speaks TLS.
pub(crate) struct TlsPart {
    pub(crate) certificates: Arc<CertificateStore>,
    pub(crate) ports: TlsPorts,
    pub(crate) door: TlsDoor,
}

impl TlsPart {
    /// Reads or makes the certificates, and opens the door.
    pub(crate) fn open(
        world: &World,
        config: &NodeConfig,
        tls: &TlsConfig,
        directory: &DataDirectory,
    ) -> anyhow::Result<Self> {
        let sources = sources_of(config, tls, directory.certificates());
        let files = Arc::clone(&world.files);
        let certificates = CertificateStore::open(world.clock.clone(), files, sources)?;
        certificate_reminder::warn(&certificates);
        let (listener, data) = open_door(&world.network, config, tls.port, "--tls-port")?;
        let acceptor = Arc::clone(certificates.acceptor());
        Ok(Self {
            certificates: Arc::new(certificates),
            ports: TlsPorts { data, management: tls.management_port },
            door: TlsDoor { listener, acceptor },
        })
    }
}

/// Where certificates are: `directory` is the node's own for them.
pub(crate) fn sources_of(
    config: &NodeConfig,
    tls: &TlsConfig,
    directory: PathBuf,
) -> CertificateSources {
    CertificateSources {
        directory,
        certificate: tls.certificate.clone(),
        key: tls.key.clone(),
        client_authorities: tls.client_authorities.clone(),
        node_authorities: tls.node_authorities.clone(),
        advertised_host: config.advertised_host(),
    }
}
