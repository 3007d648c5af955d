//! A certificate that servers of a benchmark share, and clients trust.

use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

/// Where all servers of a benchmark are.
pub const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A certificate for [`HOST`] and its key, ECDSA over P-256, in files that go with it.
pub struct Certificate {
    directory: TempDir,
    encoded: CertificateDer<'static>,
}

impl Certificate {
    /// Makes one, signed by itself.
    pub fn make() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("peers-").tempdir()?;
        let key = KeyPair::generate()?;
        let made = CertificateParams::new([HOST.to_string()])?.self_signed(&key)?;
        let this = Self { directory, encoded: made.der().clone() };
        std::fs::write(this.chain(), made.pem())?;
        std::fs::write(this.key(), key.serialize_pem())?;
        Ok(this)
    }

    /// The certificate's file, PEM.
    pub fn chain(&self) -> PathBuf {
        self.file("chain.pem")
    }

    /// Its key's file, PEM.
    pub fn key(&self) -> PathBuf {
        self.file("key.pem")
    }

    /// What clients have that trust it, and nothing else.
    pub fn client(&self) -> Result<Arc<ClientConfig>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.encoded.clone())?;
        Ok(Arc::new(ClientConfig::builder().with_root_certificates(roots).with_no_client_auth()))
    }

    fn file(&self, name: &str) -> PathBuf {
        let directory: &Path = self.directory.path();
        directory.join(name)
    }
}
