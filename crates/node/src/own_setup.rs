//! What a node was told of itself while it ran: kept in its data directory, and true as long as it
//! is alone. In a cluster the map says it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use cluster::{
    CLUSTER_NAME_RULE, ExternalAddress, HOST_RULE, NodeAddress, is_cluster_name, is_host,
};
use platform::{FileError, FileErrorKind};

use crate::kept_files::KeptFiles;
use serde::{Deserialize, Serialize};

/// What is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnSetup {
    /// The cluster's name, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cluster_name: Option<String>,
    /// Another host name than the one that the node is started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) host: Option<SaidHost>,
    /// Where it is reached from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) external: Option<ExternalAddress>,
}

/// A host name that counts until the node is started with another one than it was then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaidHost {
    started_with: String,
    host: String,
}

/// Why a node goes on saying of itself what it did. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnSetupError {
    /// It never will say that.
    Invalid(String),
    /// The data directory does not take it.
    Failed(String),
}

impl OwnSetup {
    /// Has clients be told `host`, of a node that was started with `started_with`.
    pub(crate) fn rename(&mut self, started_with: &str, host: String) {
        let started_with = started_with.to_owned();
        self.host = (host != started_with).then_some(SaidHost { started_with, host });
    }

    /// The address of a node that was started with `address`.
    pub(crate) fn applied_to(&self, address: &NodeAddress) -> NodeAddress {
        let said = self.host.as_ref().filter(|said| said.started_with == address.host);
        let host = said.map_or(&address.host, |said| &said.host).clone();
        NodeAddress { host, external: self.external.clone(), ..address.clone() }
    }

    /// The hosts that clients are told.
    fn hosts(&self) -> impl Iterator<Item = &String> {
        let host = self.host.as_ref().map(|said| &said.host);
        host.into_iter().chain(self.external.as_ref().map(|external| &external.hostname))
    }

    /// Refuses what is said anew, behind `before`, and nobody can use.
    pub(crate) fn check_behind(&self, before: &Self) -> Result<(), OwnSetupError> {
        let is_new = |host: &&String| before.hosts().all(|known| known != *host);
        if let Some(other) = self.hosts().filter(is_new).find(|host| !is_host(host)) {
            let why = format!("`{other}` is no host name, which is {HOST_RULE}");
            return Err(OwnSetupError::Invalid(why));
        }
        self.cluster_name.iter().try_for_each(|name| check_cluster_name(name))
    }
}

/// Refuses a name that no cluster has.
pub(crate) fn check_cluster_name(name: &str) -> Result<(), OwnSetupError> {
    match is_cluster_name(name) {
        true => Ok(()),
        false => Err(OwnSetupError::Invalid(format!("A cluster's name has {CLUSTER_NAME_RULE}"))),
    }
}

/// Where it is kept.
pub(crate) struct OwnSetupFile {
    pub(crate) kept: Arc<KeptFiles>,
    path: PathBuf,
}

impl OwnSetupFile {
    pub(crate) fn new(kept: Arc<KeptFiles>, path: PathBuf) -> Self {
        Self { kept, path }
    }

    /// What was said last; nothing, if nothing ever was.
    pub(crate) fn read(&self) -> anyhow::Result<OwnSetup> {
        let content = match self.kept.read_all(&self.path) {
            Ok(content) => content,
            Err(error) if error.kind == FileErrorKind::NotFound => return Ok(OwnSetup::default()),
            Err(error) => return Err(error.into()),
        };
        serde_json::from_slice(&content).with_context(|| {
            let path = self.path.display();
            format!("{path} cannot be read; without it the node says what it is started with")
        })
    }

    /// Keeps it, durably.
    pub(crate) fn write(&self, setup: &OwnSetup) -> Result<(), FileError> {
        let text = serde_json::to_vec(setup).expect("names and ports are JSON");
        // A start must not find what was refused.
        self.kept.replace(&self.path, &text)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use platform::Files;
    use platform::simulated::{Call, Fault, FaultError, SimulatedFiles};

    use super::*;

    fn address(host: &str) -> NodeAddress {
        let host = host.to_owned();
        NodeAddress { host, data_port: 1, management_port: 2, tls: None, external: None }
    }

    #[test]
    fn what_was_said_is_there_after_a_restart() {
        let files = SimulatedFiles::new();
        files.create_directories(Path::new("/data")).unwrap();
        let file = || {
            let kept = KeptFiles::new(Arc::new(files.clone()));
            OwnSetupFile::new(Arc::new(kept), PathBuf::from("/data/own.json"))
        };
        assert_eq!(file().read().unwrap(), OwnSetup::default());
        let ports = [("kv".to_owned(), 31210)].into();
        let external = Some(ExternalAddress { hostname: "outside".to_owned(), ports });
        let mut setup = OwnSetup { external, ..OwnSetup::default() };
        setup.rename("a", "b".to_owned());
        file().write(&setup).unwrap();
        assert_eq!(file().read().unwrap(), setup);
        let call = Some(Call::SyncDirectory);
        files.fail(Fault { call, number: 1, error: FaultError::Io, from_then_on: false });
        assert!(file().write(&OwnSetup::default()).is_err());
        assert_eq!(file().read().unwrap(), setup, "what was refused is not there");
        files.replace_all(Path::new("/data/own.json"), b"{\"x\": 1}").unwrap();
        assert!(file().read().unwrap_err().to_string().contains("own.json"));
    }

    #[test]
    fn a_name_counts_until_the_node_is_started_with_another_one() {
        let mut setup = OwnSetup::default();
        setup.rename("a", "b".to_owned());
        assert_eq!(setup.applied_to(&address("a")).host, "b");
        assert_eq!(setup.applied_to(&address("c")).host, "c");
        setup.rename("a", "a".to_owned());
        assert_eq!(setup, OwnSetup::default());
    }

    #[test]
    fn what_no_map_could_say_is_refused() {
        for host in ["", "a b", "\u{fc}", "b:8091", "http://b", "[::1]"] {
            let mut renamed = OwnSetup::default();
            renamed.rename("a", host.to_owned());
            let external = ExternalAddress { hostname: host.to_owned(), ports: [].into() };
            let reached = OwnSetup { external: Some(external), ..OwnSetup::default() };
            for setup in [renamed, reached] {
                assert!(
                    matches!(
                        setup.check_behind(&OwnSetup::default()),
                        Err(OwnSetupError::Invalid(_))
                    ),
                    "{host}"
                );
            }
        }
        for (name, is_right) in [("mine \u{fc}", true), ("a\nb", false), (&"n".repeat(257), false)]
        {
            let cluster_name = Some(name.to_owned());
            let setup = OwnSetup { cluster_name, ..OwnSetup::default() };
            assert_eq!(setup.check_behind(&OwnSetup::default()).is_ok(), is_right, "{name}");
        }
    }
}
