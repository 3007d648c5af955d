//! Whether a node could start, found out without starting one.

use std::sync::Arc;

use anyhow::Context;
use platform::{Clock, Entropy, Files};
use tls::CertificateStore;

use crate::administrator;
use crate::bucket_opener::{Planned, check_names};
use crate::bucket_settings::BucketSettings;
use crate::config::NodeConfig;
use crate::data_directory::{
    BucketPlaces, CERTIFICATES_NAME, CLUSTER_MAP_NAME, DataDirectory, FoundDirectory,
    OWN_SETUP_NAME, USERS_NAME,
};
use crate::kept_files::KeptFiles;
use crate::own_setup::OwnSetupFile;
use crate::remembered_map::RememberedMap;
use crate::tls_part::sources_of;

/// Reads what a start with `config` would read before it changes anything: whose the data directory
/// is, the cluster map, the users, what it was told of itself, what describes its buckets, their
/// journals, and its certificates. Nothing is made. A node may run meanwhile: what it has in the
/// directory and may have changed since it started, users and buckets, is left alone then.
///
/// # Errors
/// What would keep the node from starting.
pub fn check_start(
    clock: &Clock,
    files: &Arc<dyn Files>,
    entropy: &Entropy,
    config: &NodeConfig,
) -> anyhow::Result<FoundDirectory> {
    let names: Vec<&str> = config.buckets.iter().map(|bucket| bucket.name.as_str()).collect();
    let found = DataDirectory::look_at(&**files, &config.data_dir, &names)?;
    let map = config.data_dir.join(CLUSTER_MAP_NAME);
    let remembered = RememberedMap::new(Arc::clone(files), map, config.default_bucket());
    let before = remembered.last();
    // One that leaves forgets the map, which a check does not.
    let alone = config.leave_cluster && config.cluster_map.is_none();
    let plan = if alone { None } else { remembered.starting_place(config)?.plan };
    if !DataDirectory::is_in_use(&**files, &config.data_dir)? {
        let planned = Planned { before: before.as_ref(), now: plan.as_ref() };
        check_names(&**files, &BucketPlaces::of(&config.data_dir), config, planned)?;
        administrator::open_users(&**files, entropy, &config.data_dir.join(USERS_NAME), config)?;
        let kept = Arc::new(KeptFiles::new(Arc::clone(files)));
        OwnSetupFile::new(kept, config.data_dir.join(OWN_SETUP_NAME)).read()?;
        check_buckets(files, config)?;
    }
    if let Some(tls) = &config.tls {
        let sources = sources_of(config, tls, config.data_dir.join(CERTIFICATES_NAME));
        CertificateStore::check(clock.clone(), &**files, &sources)?;
    }
    Ok(found)
}

/// Reads what buckets that are there say of themselves, and compares it with what is said of them;
/// and their journals.
fn check_buckets(shared: &Arc<dyn Files>, config: &NodeConfig) -> anyhow::Result<()> {
    let files = &**shared;
    let places = BucketPlaces::of(&config.data_dir);
    let mut names = places.own_buckets(files)?;
    // Another server's, which a start opens where it names them.
    for BucketSettings { name, .. } in &config.buckets {
        if !names.contains(name) && places.has_bucket(files, name)? {
            names.push(name.clone());
        }
    }
    for name in names {
        let directory = places.bucket(files, &name)?;
        let said = config.buckets.iter().find(|said| said.name == name);
        let said = said.cloned().unwrap_or_else(|| config.found_bucket(&name));
        // Nothing is opened by it.
        let said = said.bucket_config(0);
        let check = bucket::check_directory(files, &directory, Some(&said));
        let refusal = check.refusals.into_iter().next();
        refusal.map_or(Ok(()), Err).with_context(|| format!("the bucket `{name}`"))?;
        let kept = BucketSettings::default().with_kept(files, &directory);
        kept.with_context(|| format!("the settings of the bucket `{name}`"))?;
        let journal = bucket::check_journal(shared, &directory);
        journal.with_context(|| format!("the bucket `{name}`"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use platform::files::RealFiles;

    use super::*;
    use crate::config::{MakesBuckets, TlsConfig};

    const SEGMENT: &[u8] =
        include_bytes!("../../storage/tests/fixtures/journal/j.0000000000000001");

    fn checked(directory: &Path, change: Change) -> Result<FoundDirectory, String> {
        let data_dir = directory.join("data");
        let mut config = NodeConfig { data_dir, ..NodeConfig::default() };
        change(&mut config, directory);
        let files: Arc<dyn Files> = Arc::new(RealFiles);
        check_start(&Clock::real(), &files, &Entropy::simulated(1), &config)
            .map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn a_lost_journal_is_accepted_of_a_bucket_that_nobody_names_too() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        let opened = DataDirectory::open(&RealFiles, &Entropy::simulated(1), &data, &[]).unwrap();
        let bucket = opened.bucket(&RealFiles, "orders").unwrap();
        drop(opened);
        RealFiles.create_directories(&bucket).unwrap();
        let description = r#"{"format": 1, "name": "orders", "uuid": "", "vbucket_count": 64}"#;
        for (name, text) in [("bucket.json", description), ("journal-in-use", "damaged")] {
            RealFiles.replace_all(&bucket.join(name), text.as_bytes()).unwrap();
        }
        let nobody_names: Change = |config, _| config.makes_buckets = MakesBuckets::Once;
        let refusal = checked(root.path(), nobody_names).unwrap_err();
        assert!(refusal.contains("`orders`") && refusal.contains("journal"), "{refusal}");
        let accepts: Change = |config, _| {
            config.makes_buckets = MakesBuckets::Once;
            config.buckets[0].accept_lost_journal = true;
        };
        checked(root.path(), accepts).unwrap();
    }

    #[test]
    fn a_journal_that_is_damaged_in_the_middle_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        let opened = DataDirectory::open(&RealFiles, &Entropy::simulated(1), &data, &[]).unwrap();
        let journal = opened.bucket(&RealFiles, "default").unwrap().join("journal");
        drop(opened);
        RealFiles.create_directories(&journal).unwrap();
        let description = r#"{"format": 1, "name": "default", "uuid": "", "vbucket_count": 64}"#;
        let place = journal.with_file_name("bucket.json");
        RealFiles.replace_all(&place, description.as_bytes()).unwrap();
        let segment = journal.join("j.0000000000000001");
        let mut content = SEGMENT.to_vec();
        RealFiles.replace_all(&segment, &content).unwrap();
        checked(root.path(), |_, _| {}).unwrap();
        // In the first of its groups.
        content[4096 + 40] ^= 1;
        RealFiles.replace_all(&segment, &content).unwrap();
        let refusal = checked(root.path(), |_, _| {}).unwrap_err();
        assert!(refusal.contains("`default`") && refusal.contains("at byte 4096"), "{refusal}");
        assert!(refusal.contains("--accept-lost-journal"), "{refusal}");
        assert_eq!(RealFiles.read_all(&segment).unwrap(), content);
    }

    #[test]
    fn a_bucket_that_was_taken_over_beside_the_others_is_read_as_they_are() {
        for place in ["default", "data/default"] {
            let root = tempfile::tempdir().unwrap();
            let data = root.path().join("data");
            let bucket = data.join(place);
            RealFiles.create_directories(&bucket).unwrap();
            RealFiles.replace_all(&bucket.join("0.couch.1"), b"").unwrap();
            let names = ["default"];
            drop(DataDirectory::open(&RealFiles, &Entropy::simulated(1), &data, &names).unwrap());
            assert_eq!(checked(root.path(), |_, _| {}), Ok(FoundDirectory::OfNode));
            let description = bucket.join("bucket.json");
            RealFiles.replace_all(&description, b"{\"name").unwrap();
            let refusal = checked(root.path(), |_, _| {}).unwrap_err();
            assert!(refusal.contains("bucket.json"), "{place}: {refusal}");
            let files: Arc<dyn Files> = Arc::new(RealFiles);
            let faults = crate::note_check::faults_of_notes(&files, &data);
            assert!(faults.iter().any(|fault| fault.path == description), "{faults:?}");
        }
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
