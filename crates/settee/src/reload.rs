//! What SIGHUP has a node read again: certificates, and of the configuration file what can change
//! while the node runs.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use tls::CertificateStore;

use crate::logging;
use crate::settings::Settings;

/// The setting that is taken over from the file.
const CHANGEABLE: &str = "log-level";

/// What a node was started with that it may read again.
pub(crate) struct Reload {
    /// What was said at the command line and in the environment: it wins over the file.
    pub(crate) said: Settings,
    /// The file.
    pub(crate) file: Option<PathBuf>,
    /// All that the node was started with.
    pub(crate) begun_with: Settings,
    /// Its certificates, if it has any.
    pub(crate) certificates: Option<Arc<CertificateStore>>,
}

/// A signal belongs to the process, so this does, too.
static RELOAD: OnceLock<Reload> = OnceLock::new();

/// Carries out a SIGHUP. Log lines go to standard error, which whoever rotates them opens anew:
/// before a node has started there is nothing else to do.
pub(crate) fn on_hangup() {
    tracing::info!("SIGHUP: the node goes on; SIGTERM stops it in order");
    let Some(reload) = RELOAD.get() else { return };
    reload.read_certificates();
    if let Err(error) = reload.read_settings() {
        tracing::error!(
            error = format!("{error:#}"),
            "the settings stay as they are; correct the file and send SIGHUP again"
        );
    }
}

impl Reload {
    /// From now on SIGHUP is about this. The first node of a process counts.
    pub(crate) fn arm(self) {
        RELOAD.get_or_init(|| self);
    }

    fn read_certificates(&self) {
        let Some(certificates) = &self.certificates else { return };
        match certificates.reload() {
            Ok(()) => {
                tracing::info!("new TLS sessions show the certificate that was read now");
                if let Some(why) = certificates.warning() {
                    tracing::warn!(why, "the certificate that clients are shown is to be replaced");
                }
            }
            Err(error) => {
                tracing::error!(%error, "new TLS sessions show the certificate as before");
            }
        }
    }

    fn read_settings(&self) -> anyhow::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        let settings = self.said.clone().or(Settings::from_file(path)?);
        let config = settings.clone().resolve()?;
        logging::set_filter(&config.log_level).map_err(anyhow::Error::msg)?;
        let log_level = config.log_level;
        tracing::info!(path = %path.display(), log_level, "the configuration file is read again");
        for setting in self.begun_with.differences(&settings) {
            if setting != CHANGEABLE {
                tracing::warn!(setting, "it has changed in the file: it counts from a restart on");
            }
        }
        Ok(())
    }
}
