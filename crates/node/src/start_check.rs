//! Whether a node could start, found out without starting one.

use std::sync::Arc;

use platform::{Clock, Files};
use tls::CertificateStore;

use crate::config::NodeConfig;
use crate::data_directory::{CERTIFICATES_NAME, CLUSTER_MAP_NAME, DataDirectory, FoundDirectory};
use crate::remembered_map::RememberedMap;
use crate::tls_part::sources_of;

/// Reads what a start with `config` would read before it changes anything: whose the data directory
/// is, the cluster map, and certificates that were given. Nothing is made, and no lock is taken, so
/// that a node may run meanwhile.
///
/// # Errors
/// What would keep the node from starting.
pub fn check_start(
    clock: &Clock,
    files: &Arc<dyn Files>,
    config: &NodeConfig,
) -> anyhow::Result<FoundDirectory> {
    let names: Vec<&str> = config.buckets.iter().map(|bucket| bucket.name.as_str()).collect();
    let found = DataDirectory::look_at(&**files, &config.data_dir, &names)?;
    let map = config.data_dir.join(CLUSTER_MAP_NAME);
    let remembered = RememberedMap::new(Arc::clone(files), map, config.default_bucket());
    if !config.leave_cluster {
        remembered.starting_place(config)?;
    }
    if let Some(tls) = &config.tls {
        let sources = sources_of(config, tls, config.data_dir.join(CERTIFICATES_NAME));
        CertificateStore::check(clock.clone(), &**files, &sources)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use platform::files::RealFiles;

    use super::*;
    use crate::config::TlsConfig;

    fn checked(directory: &Path, change: Change) -> Result<FoundDirectory, String> {
        let data_dir = directory.join("data");
        let mut config = NodeConfig { data_dir, ..NodeConfig::default() };
        change(&mut config, directory);
        let files: Arc<dyn Files> = Arc::new(RealFiles);
        check_start(&Clock::real(), &files, &config).map_err(|error| format!("{error:#}"))
    }

    /// Changes a configuration for a directory with a file `key.pem` that is no key.
    type Change = fn(&mut NodeConfig, &Path);

    #[test]
    fn what_would_keep_a_node_from_starting_is_found_and_nothing_is_made() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path();
        assert_eq!(checked(directory, |_, _| {}), Ok(FoundDirectory::Unused));
        assert!(RealFiles.list(directory).unwrap().is_empty());
        RealFiles.replace_all(&directory.join("key.pem"), b"no key").unwrap();
        let cases: [(&str, Change); 4] = [
            ("key.pem", |config, directory| config.data_dir = directory.to_owned()),
            ("missing.json", |config, _| config.cluster_map = Some(PathBuf::from("missing.json"))),
            ("missing.pem", |config, _| {
                let certificate = Some(PathBuf::from("missing.pem"));
                config.tls = Some(TlsConfig { certificate, ..TlsConfig::default() });
            }),
            ("certificate", |config, directory| {
                let file = Some(directory.join("key.pem"));
                let (certificate, key) = (file.clone(), file);
                config.tls = Some(TlsConfig { certificate, key, ..TlsConfig::default() });
            }),
        ];
        for (what, change) in cases {
            let why = checked(directory, change).unwrap_err();
            assert!(why.contains(what), "{what}: {why}");
        }
    }
}
