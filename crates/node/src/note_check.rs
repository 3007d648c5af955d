//! What of a data directory a start would not take, or goes on without: all of it, for people who
//! look at the directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bucket::{DirectoryCheck, OpenError};
use platform::Files;

use crate::administrator;
use crate::bucket_settings::BucketSettings;
use crate::data_directory::{
    BucketPlaces, CLUSTER_MAP_NAME, DataDirectory, LOST_USERS, MARK_NAME, OWN_SETUP_NAME,
    USERS_NAME,
};
use crate::kept_files::KeptFiles;
use crate::own_setup::OwnSetupFile;
use crate::remembered_map::RememberedMap;

/// One of the small files of a data directory that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteFault {
    /// The file.
    pub path: PathBuf,
    /// What is wrong, and what to do, for people.
    pub what: String,
}

/// Reads what a start reads of the data directory at `path` before documents, as a start does.
/// Nothing is made. No node uses it.
pub fn faults_of_notes(files: &Arc<dyn Files>, path: &Path) -> Vec<NoteFault> {
    let at = |name: &str| path.join(name);
    let map = RememberedMap::new(Arc::clone(files), at(CLUSTER_MAP_NAME), "default");
    let kept = Arc::new(KeptFiles::new(Arc::clone(files)));
    let own_setup = OwnSetupFile::new(kept, at(OWN_SETUP_NAME));
    let mark = DataDirectory::look_at(&**files, path, &[]);
    let read = [
        (MARK_NAME, mark.map(drop)),
        (USERS_NAME, administrator::check_users(&**files, &at(USERS_NAME))),
        (CLUSTER_MAP_NAME, map.check()),
        (OWN_SETUP_NAME, own_setup.read().map(drop)),
    ];
    let faults = read.into_iter().filter_map(|(name, read)| Some(fault(at(name), &read.err()?)));
    let mut faults: Vec<NoteFault> = faults.collect();
    if DataDirectory::has_lost_users(&**files, path) {
        faults.push(NoteFault { path: at(USERS_NAME), what: LOST_USERS.to_owned() });
    }
    let places = BucketPlaces::of(path);
    let buckets = places.own_buckets(&**files).unwrap_or_default();
    let own = buckets.iter().filter_map(|name| places.bucket(&**files, name).ok());
    for directory in own.chain(places.taken_over(&**files)) {
        add_bucket(&**files, &directory, &mut faults);
    }
    faults
}

fn add_bucket(files: &dyn Files, directory: &Path, faults: &mut Vec<NoteFault>) {
    if let Err(error) = BucketSettings::default().with_kept(files, directory) {
        faults.push(fault(directory.join(bucket::SETTINGS_NAME), &error));
    }
    let DirectoryCheck { refusals, missed } = bucket::check_directory(files, directory, None);
    faults.extend(refusals.into_iter().map(|refusal| {
        let path = refusal.path().unwrap_or(directory).to_owned();
        fault(path, &anyhow::Error::new::<OpenError>(refusal))
    }));
    let missed = missed.into_iter();
    faults.extend(missed.map(|(path, what)| NoteFault { path, what: what.to_owned() }));
}

/// The error in words that do not begin with the file, which is told beside them.
fn fault(path: PathBuf, error: &anyhow::Error) -> NoteFault {
    let words = format!("{error:#}");
    let what = words.strip_prefix(&path.display().to_string()).unwrap_or(&words);
    let what = what.trim_start_matches([':', ' ']).to_owned();
    NoteFault { path, what }
}

#[cfg(test)]
mod tests {
    use platform::Entropy;
    use platform::files::RealFiles;

    use super::*;

    #[test]
    fn each_small_file_that_a_start_does_not_take_is_told_with_a_way_out() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path();
        let opened = DataDirectory::open(&RealFiles, &Entropy::real(), path, &[]).unwrap();
        let bucket = opened.bucket(&RealFiles, "orders").unwrap();
        drop(opened);
        RealFiles.create_directories(&bucket).unwrap();
        let real: Arc<dyn Files> = Arc::new(RealFiles);
        assert_eq!(faults_of_notes(&real, path), []);
        let sound = r#"{"format": 1, "name": "orders", "uuid": "", "vbucket_count": 64}"#;
        RealFiles.replace_all(&bucket.join("bucket.json"), sound.as_bytes()).unwrap();
        assert_eq!(faults_of_notes(&real, path), []);
        // Each with what its words have.
        for (name, word) in [
            ("users.json", "--user"),
            ("cluster-map.json", "--leave-cluster"),
            ("own-setup.json", "without it"),
            ("buckets/orders/settings.json", "settee bucket edit"),
            ("buckets/orders/manifest.json", "move it away"),
            ("buckets/orders/absent-vbuckets.json", "from a backup"),
            ("buckets/orders/clean-stop", "is damaged"),
            ("buckets/orders/bucket.json", "from a backup"),
            ("settee.json", "is damaged"),
        ] {
            let file = path.join(name);
            let before = RealFiles.read_all(&file).ok();
            RealFiles.replace_all(&file, b"{\"name").unwrap();
            let faults = faults_of_notes(&real, path);
            let [NoteFault { path: told, what }] = &faults[..] else {
                panic!("{name}: {faults:?}")
            };
            assert_eq!(*told, file, "{what}");
            assert!(what.contains(word), "{name}: {what}");
            assert!(!what.contains(&*file.to_string_lossy()), "{name}: {what}");
            match before {
                Some(before) => RealFiles.replace_all(&file, &before).unwrap(),
                None => RealFiles.remove(&file).unwrap(),
            }
        }
    }
}
