//! TLS of tools: whether it is spoken, and whom they believe.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use anyhow::Context;
use platform::files::RealFiles;
use platform::{Clock, Files};
use tls::{Connector, Material};
use ureq::tls::{Certificate, RootCerts, TlsConfig};

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
}

impl TlsArguments {
    /// What begins sessions with nodes that are believed.
    ///
    /// # Errors
    /// Nobody says who is, or the file is none of authorities.
    pub(crate) fn connector(&self) -> anyhow::Result<Arc<Connector>> {
        let clock = Clock::real();
        if self.no_verify {
            WARNED.call_once(|| {
                note(
                    "settee: WARNING: --no-verify: nobody checks whose certificate this is; \
                     whoever is between can read the password and all documents\n",
                );
            });
            return Ok(Arc::new(Connector::with_anyone(clock)?));
        }
        let path = self.ca.as_ref().context(
            "say who signs the node's certificate: --ca FILE; a node that made its own keeps it \
             as certificates/ca.pem in its data directory",
        )?;
        let read = || format!("--ca {} cannot be used", path.display());
        let node_authorities = RealFiles.read_all(path).with_context(read)?;
        let material = Material { node_authorities, ..Material::default() };
        Ok(Arc::new(Connector::new(clock, &material).with_context(read)?))
    }

    /// The same for requests over HTTP.
    ///
    /// # Errors
    /// As [`TlsArguments::connector`].
    pub(crate) fn http(&self) -> anyhow::Result<TlsConfig> {
        let authorities = self.connector()?.authorities();
        let roots = authorities.iter().map(|one| Certificate::from_der(one).to_owned());
        let config = TlsConfig::builder()
            .root_certs(RootCerts::new_with_certs(&roots.collect::<Vec<_>>()))
            .disable_verification(self.no_verify)
            .unversioned_rustls_crypto_provider(tls::crypto_provider());
        Ok(config.build())
    }
}

#[cfg(test)]
mod tests {
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
    fn who_believes_anyone_has_said_so() {
        let arguments = TlsArguments { no_verify: true, ..TlsArguments::default() };
        assert!(arguments.connector().is_ok() && arguments.http().is_ok());
    }
}
