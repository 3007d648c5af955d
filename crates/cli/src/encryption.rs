//! TLS of tools: whether it is spoken, whom they believe, and who they say they are.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Once};

use anyhow::Context;
use platform::files::RealFiles;
use platform::{Clock, Files};
use tls::{CertificateDer, Connector, Material};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

use crate::output::note;

/// Said once, whatever is asked how often.
static WARNED: Once = Once::new();

/// The options of TLS.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct TlsArguments {
    /// Speak TLS at both of the node's ports; so do couchbases:// in --spec, and https:// in
    /// --management
    #[arg(id = "tls", long = "tls")]
    pub(crate) is_wanted: bool,
    /// Who signs the nodes' certificates (PEM); a node that made its own keeps it as
    /// certificates/ca.pem in its data directory
    #[arg(long, value_name = "FILE", env = "SETTEE_CA")]
    ca: Option<PathBuf>,
    /// Believe whoever answers: who is between can read the password
    #[arg(long)]
    no_verify: bool,
    /// A client's certificate and those between it and its authority (PEM): its user asks, and
    /// --user and --password do not count
    #[arg(long, value_name = "FILE", env = "SETTEE_CLIENT_CERT", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// The key of that certificate (PEM)
    #[arg(long, value_name = "FILE", env = "SETTEE_CLIENT_KEY", requires = "client_cert")]
    client_key: Option<PathBuf>,
}

impl TlsArguments {
    /// Whether a certificate says who asks.
    pub(crate) fn is_user_certified(&self) -> bool {
        self.client_cert.is_some()
    }

    /// What begins sessions with nodes that are believed, and shows them the client's certificate.
    ///
    /// # Errors
    /// Nobody says who is, or a file is not what it should be.
    pub(crate) fn connector(&self) -> anyhow::Result<Arc<Connector>> {
        let clock = Clock::real();
        let shown = self.shown()?;
        if self.no_verify {
            WARNED.call_once(|| {
                note(
                    "settee: WARNING: --no-verify: nobody checks whose certificate this is; \
                     whoever is between can read the password and all documents\n",
                );
            });
            return Ok(Arc::new(Connector::with_anyone(clock, &shown)?));
        }
        let path = self.ca.as_ref().context(
            "say who signs the node's certificate: --ca FILE; a node that made its own keeps it \
             as certificates/ca.pem in its data directory",
        )?;
        let node_authorities = read("--ca", path)?;
        let material = Material { node_authorities, ..shown };
        let connector = Connector::new(clock, &material);
        Ok(Arc::new(connector.with_context(|| format!("--ca {} cannot be used", path.display()))?))
    }

    /// The client's certificate and its key; nothing where none is said.
    fn shown(&self) -> anyhow::Result<Material> {
        let (Some(chain), Some(key)) = (&self.client_cert, &self.client_key) else {
            return Ok(Material::default());
        };
        let (chain, key) = (read("--client-cert", chain)?, read("--client-key", key)?);
        let shown = Material { chain, key, ..Material::default() };
        // What is wrong with it is told apart from what is wrong with --ca.
        Connector::with_anyone(Clock::real(), &shown)
            .context("--client-cert and --client-key cannot be used")?;
        Ok(shown)
    }

    /// The same for requests over HTTP.
    ///
    /// # Errors
    /// As [`TlsArguments::connector`].
    pub(crate) fn http(&self) -> anyhow::Result<TlsConfig> {
        let connector = self.connector()?;
        let certificate = |der: &CertificateDer<'_>| Certificate::from_der(der).to_owned();
        let roots: Vec<_> = connector.authorities().iter().map(certificate).collect();
        let (chain, key) = connector.identity();
        let chain: Vec<_> = chain.iter().map(certificate).collect();
        let shown = if chain.is_empty() {
            None
        } else {
            Some(ClientCert::new_with_certs(&chain, PrivateKey::from_pem(&key)?))
        };
        let config = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&roots))
            .client_cert(shown)
            .disable_verification(self.no_verify)
            .unversioned_rustls_crypto_provider(tls::crypto_provider());
        Ok(config.build())
    }
}

fn read(flag: &str, path: &Path) -> anyhow::Result<Vec<u8>> {
    let content = RealFiles.read_all(path);
    content.with_context(|| format!("{flag} {} cannot be used", path.display()))
}

#[cfg(test)]
mod tests {
    use tls::Authority;

    use super::*;

    #[test]
    fn whom_to_believe_has_to_be_said() {
        let refused =
            |arguments: TlsArguments| format!("{:#}", arguments.connector().map(drop).unwrap_err());
        assert!(refused(TlsArguments::default()).contains("certificates/ca.pem"));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        let with_ca = || TlsArguments { ca: Some(path.clone()), ..TlsArguments::default() };
        assert!(refused(with_ca()).contains("ca.pem cannot be used"), "it is missing");
        RealFiles.replace_all(&path, b"nothing").unwrap();
        assert!(refused(with_ca()).contains("no BEGIN CERTIFICATE"));
    }

    #[test]
    fn a_clients_certificate_and_its_key_are_read_from_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let authority = Authority::generate("of clients", platform::WallTime(0)).unwrap();
        let pem = authority.issue_to_client("bob", platform::WallTime(0)).unwrap();
        RealFiles.replace_all(&path("bob.pem"), pem.as_bytes()).unwrap();
        RealFiles.replace_all(&path("nothing.pem"), b"nothing").unwrap();
        let shown = |certificate: &str, key: &str| TlsArguments {
            no_verify: true,
            client_cert: Some(path(certificate)),
            client_key: Some(path(key)),
            ..TlsArguments::default()
        };
        assert!(shown("bob.pem", "bob.pem").is_user_certified());
        assert!(!shown("bob.pem", "bob.pem").connector().unwrap().identity().0.is_empty());
        assert!(shown("bob.pem", "bob.pem").http().unwrap().client_cert().is_some());
        for (certificate, key, why) in [
            ("missing.pem", "bob.pem", "--client-cert"),
            ("bob.pem", "missing.pem", "--client-key"),
            ("nothing.pem", "bob.pem", "the certificate"),
            ("bob.pem", "nothing.pem", "the key"),
        ] {
            let refused = format!("{:#}", shown(certificate, key).connector().unwrap_err());
            assert!(refused.contains(why) && refused.contains("cannot be used"), "{refused}");
        }
    }

    #[test]
    fn who_believes_anyone_has_said_so() {
        let arguments = TlsArguments { no_verify: true, ..TlsArguments::default() };
        assert!(arguments.connector().is_ok() && arguments.http().is_ok());
    }
}
