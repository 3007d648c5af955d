//! The data directory: whose it is, and that no two nodes use it at once.
//!
//! ```text
//! settee.json      the mark of a data directory, with the node's and the cluster's identity, and
//!                  whether users were kept
//! lock             held by the node that uses it
//! users.json       names and hashed passwords
//! cluster-map.json the map that the node has carried out last, and its name there
//! own-setup.json   what the node was told of itself while it ran alone
//! buckets/<name>/  one directory a bucket, with its settings where they were said while it ran
//! ```
//!
//! One of the original's server is taken over: its bucket stays where it is, in `<name>/` or
//! `data/<name>/`, and everything else in the directory is left alone.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use bucket::DirectoryState;
use cluster::Uuid;
use platform::process::FileLock;
use platform::{Entropy, FileError, FileErrorKind, Files};
use serde::{Deserialize, Serialize};

pub(crate) const MARK_NAME: &str = "settee.json";
/// The beginning of a mark: see [`Files::replace_all`].
const MARK_BEGINNING_NAME: &str = "settee.new";
const LOCK_NAME: &str = "lock";
pub(crate) const USERS_NAME: &str = "users.json";
pub(crate) const CLUSTER_MAP_NAME: &str = "cluster-map.json";
pub(crate) const OWN_SETUP_NAME: &str = "own-setup.json";
pub(crate) const CERTIFICATES_NAME: &str = "certificates";
const BUCKETS_NAME: &str = "buckets";
/// What it means that the users are gone, and what to do.
pub(crate) const LOST_USERS: &str = "is missing, and was there: all users and groups are gone but \
     the administrator that a start names; put it back from a copy of the directory, or make them \
     again";
/// Behind which stands why.
const UNREADABLE: &str = "the data directory cannot be made or read; give another with --data-dir";
/// The version of the directory's layout.
const FORMAT: u32 = 1;

/// A data directory that this process may use, as long as this value lives.
pub struct DataDirectory {
    path: PathBuf,
    pub(crate) cluster_uuid: Uuid,
    /// The node's identity, made once for this directory.
    pub(crate) node_uuid: Uuid,
    /// Whether its mark notes that users were kept.
    had_users: bool,
    _lock: FileLock,
}

/// Whose a directory is that a node may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundDirectory {
    /// Nobody's: it is empty, or not there.
    Unused,
    /// A node's.
    OfNode,
    /// The original's, with one of the buckets in it.
    OfOriginal,
}

#[derive(Serialize, Deserialize)]
struct Mark {
    format: u32,
    cluster_uuid: String,
    /// Marks that were made before nodes had one have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node_uuid: Option<String>,
    /// Whether users were kept beside it: that they are gone is told.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_users: bool,
}

/// What a mark names.
#[derive(Clone, Copy)]
struct Marked {
    cluster_uuid: Uuid,
    node_uuid: Option<Uuid>,
    has_users: bool,
}

impl DataDirectory {
    /// Opens `path`, creating it when it is missing. Refuses a directory with anything in it that
    /// no node has made, unless the original's files of one of these buckets are among it, and one
    /// that another node uses.
    pub fn open(
        files: &dyn Files,
        entropy: &Entropy,
        path: &Path,
        bucket_names: &[&str],
    ) -> anyhow::Result<Self> {
        files.create_directories(path).context(UNREADABLE)?;
        // Before the lock, which makes a file: nothing is left in a directory of something else.
        Self::look_at(files, path, bucket_names)?;
        let lock = files
            .try_lock(&path.join(LOCK_NAME))
            .with_context(|| format!("cannot lock {}; {UNREADABLE}", path.display()))?;
        let Some(lock) = lock else {
            bail!(
                "another node uses {}; stop it first, or give another --data-dir",
                path.display()
            );
        };
        let (marked, node_uuid) = open_mark(files, entropy, &path.join(MARK_NAME))?;
        let Marked { cluster_uuid, has_users, .. } = marked;
        let path = path.to_path_buf();
        Ok(Self { path, cluster_uuid, node_uuid, had_users: has_users, _lock: lock })
    }

    /// Tells where users were kept, and are not any more.
    pub(crate) fn warn_of_lost_users(&self, files: &dyn Files) {
        let users = self.users();
        if self.had_users && files.exists(&users).is_ok_and(|exists| !exists) {
            tracing::warn!(file = %users.display(), "users.json {LOST_USERS}");
        }
    }

    /// Notes in the mark that users are kept.
    pub(crate) fn note_users(&self, files: &dyn Files) {
        if self.had_users {
            return;
        }
        let marked = Marked {
            cluster_uuid: self.cluster_uuid,
            node_uuid: Some(self.node_uuid),
            has_users: true,
        };
        // On a disk that takes nothing the next start notes it.
        drop(write_mark(files, &self.path.join(MARK_NAME), marked));
    }

    /// Whether users were kept in the data directory at `path`, and are not any more.
    pub(crate) fn has_lost_users(files: &dyn Files, path: &Path) -> bool {
        let mark = path.join(MARK_NAME);
        let content = files.read_all(&mark);
        let noted =
            content.is_ok_and(|content| read_mark(&mark, &content).is_ok_and(|it| it.has_users));
        noted && files.exists(&path.join(USERS_NAME)).is_ok_and(|exists| !exists)
    }

    /// What a start would find at `path`, if it would use that. Nothing is made.
    ///
    /// # Errors
    /// It cannot be read, has files of something else, or is of a newer version.
    pub(crate) fn look_at(
        files: &dyn Files,
        path: &Path,
        bucket_names: &[&str],
    ) -> anyhow::Result<FoundDirectory> {
        let names = match files.list(path) {
            Err(error) if error.kind == FileErrorKind::NotFound => Vec::new(),
            names => names.context(UNREADABLE)?,
        };
        let is_original = |name: &&str| original_bucket(files, path, name).is_some();
        if names.iter().any(|name| name == MARK_NAME) {
            let mark = path.join(MARK_NAME);
            read_mark(&mark, &files.read_all(&mark).context(UNREADABLE)?)?;
            return Ok(FoundDirectory::OfNode);
        }
        // A start that was cut off before it had its mark leaves its lock, and what it has begun.
        let is_beginning = |name: &String| name == LOCK_NAME || name == MARK_BEGINNING_NAME;
        if names.iter().all(is_beginning) {
            return Ok(FoundDirectory::Unused);
        }
        if has_described_bucket(files, path)? {
            return Ok(FoundDirectory::OfNode);
        }
        if bucket_names.iter().any(is_original) {
            return Ok(FoundDirectory::OfOriginal);
        }
        bail!(
            "{} holds files of something else ({}), and no couchstore files of the bucket \
             `{}`; give an empty or a new directory with --data-dir, or the name of \
             a bucket in it with --bucket",
            path.display(),
            first_names(&names),
            bucket_names.join("`, `")
        );
    }

    /// Whether a node uses the directory. It is asked by the lock, which is held for an instant.
    pub(crate) fn is_in_use(files: &dyn Files, path: &Path) -> Result<bool, FileError> {
        let lock = path.join(LOCK_NAME);
        Ok(files.exists(&lock)? && files.try_lock(&lock)?.is_none())
    }

    /// Takes a directory whose node is gone, whatever ended it. `None` when there is no node's
    /// directory, or one that is in use.
    pub(crate) fn take_abandoned(files: &dyn Files, path: &Path) -> Option<FileLock> {
        let has = |name| files.exists(&path.join(name)).unwrap_or(false);
        // The mark is made under the lock: who begins just now has none yet.
        let is_made = has(MARK_NAME) && has(LOCK_NAME);
        is_made.then(|| files.try_lock(&path.join(LOCK_NAME)).ok().flatten())?
    }

    /// Where the bucket called `name` is kept.
    ///
    /// # Errors
    /// The system does not say whether there is one: nobody may make another.
    pub fn bucket(&self, files: &dyn Files, name: &str) -> Result<PathBuf, FileError> {
        self.places().bucket(files, name)
    }

    /// Where its buckets are.
    pub(crate) fn places(&self) -> BucketPlaces {
        BucketPlaces(self.path.clone())
    }

    /// Makes the file of users its user's alone where an earlier version has left it to others.
    pub(crate) fn make_users_private(&self, files: &dyn Files) {
        match files.make_private(&self.users()) {
            Err(error) if error.kind != FileErrorKind::NotFound => {
                tracing::warn!(%error, "others may be able to read the hashed passwords");
            }
            _ => {}
        }
    }

    /// Where certificates are kept.
    pub(crate) fn certificates(&self) -> PathBuf {
        self.path.join(CERTIFICATES_NAME)
    }

    /// Where the cluster map is remembered.
    pub(crate) fn cluster_map(&self) -> PathBuf {
        self.path.join(CLUSTER_MAP_NAME)
    }

    /// Where is kept what the node was told of itself.
    pub(crate) fn own_setup(&self) -> PathBuf {
        self.path.join(OWN_SETUP_NAME)
    }

    /// Where users are kept.
    pub(crate) fn users(&self) -> PathBuf {
        self.path.join(USERS_NAME)
    }
}

/// Where a data directory has its buckets. Outlives the right to use it.
#[derive(Clone, Debug)]
pub(crate) struct BucketPlaces(PathBuf);

impl BucketPlaces {
    /// Those of the data directory at `path`.
    pub(crate) fn of(path: &Path) -> Self {
        Self(path.to_path_buf())
    }

    /// See [`DataDirectory::bucket`].
    pub(crate) fn bucket(&self, files: &dyn Files, name: &str) -> Result<PathBuf, FileError> {
        let own = self.0.join(BUCKETS_NAME).join(name);
        if files.exists(&own)? {
            return Ok(own);
        }
        Ok(original_bucket(files, &self.0, name).unwrap_or(own))
    }

    /// Whether there is a bucket of that name.
    pub(crate) fn has_bucket(&self, files: &dyn Files, name: &str) -> Result<bool, FileError> {
        let state = bucket::directory_state(files, &self.bucket(files, name)?)?;
        Ok(state == DirectoryState::Bucket)
    }

    /// Whether buckets have been made here, whatever has become of them.
    pub(crate) fn have_been_used(&self, files: &dyn Files) -> Result<bool, FileError> {
        files.exists(&self.0.join(BUCKETS_NAME))
    }

    /// Refuses to make a bucket beside one that is there and not among these: a name that was
    /// mistyped would look like a loss of all documents.
    pub(crate) fn check_buckets(&self, files: &dyn Files, names: &[&str]) -> anyhow::Result<()> {
        let mut others = self.buckets(files)?;
        others.retain(|name| !names.contains(&name.as_str()));
        for name in names {
            if !others.is_empty() && !files.exists(&self.bucket(files, name)?)? {
                bail!(
                    "{} has no bucket `{name}`, but `{}`; give that with --bucket, or another \
                     --data-dir for a new one",
                    self.0.display(),
                    others.join("`, `")
                );
            }
        }
        Ok(())
    }

    /// The buckets that are here, the original's among them.
    fn buckets(&self, files: &dyn Files) -> Result<Vec<String>, FileError> {
        let mut names = self.own_buckets(files)?;
        for place in [self.0.clone(), self.0.join("data")] {
            let found = files.list(&place).unwrap_or_default();
            let is_bucket = |name: &String| original_bucket(files, &self.0, name).is_some();
            names.extend(found.into_iter().filter(is_bucket));
        }
        Ok(names)
    }

    /// The buckets that are no original's.
    pub(crate) fn own_buckets(&self, files: &dyn Files) -> Result<Vec<String>, FileError> {
        let mut names = self.own_names(files)?;
        let own = self.0.join(BUCKETS_NAME);
        let mut failed = None;
        names.retain(|name| match bucket::directory_state(files, &own.join(name)) {
            Ok(state) => state == DirectoryState::Bucket,
            Err(error) => {
                failed = Some(error);
                false
            }
        });
        failed.map_or(Ok(names), Err)
    }

    /// Where the original's buckets are that a node has taken over in place.
    pub(crate) fn taken_over(&self, files: &dyn Files) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let inside = self.0.join("data");
        // A directory with a mark of its own is another node's.
        let is_others = files.exists(&inside.join(MARK_NAME)).unwrap_or(true);
        for place in [Some(&self.0), (!is_others).then_some(&inside)].into_iter().flatten() {
            for name in files.list(place).unwrap_or_default() {
                let path = place.join(&name);
                let is_its_place = || self.bucket(files, &name).is_ok_and(|known| known == path);
                if bucket::is_taken_over(files, &path) && is_its_place() {
                    found.push(path);
                }
            }
        }
        found
    }

    /// Removes what is left of buckets that were deleted, or never made to the end.
    pub(crate) fn sweep(&self, files: &dyn Files) {
        let own = self.0.join(BUCKETS_NAME);
        for name in self.own_names(files).unwrap_or_default() {
            let path = own.join(name);
            if bucket::directory_state(files, &path).ok() == Some(DirectoryState::NoDirectory) {
                tracing::warn!(path = %path.display(), "a file is no bucket, and is left alone");
            }
        }
        let own = self.own_names(files).unwrap_or_default().into_iter().map(|name| own.join(name));
        let originals = [self.0.clone(), self.0.join("data")].into_iter().flat_map(|place| {
            let names = files.list(&place).unwrap_or_default();
            let is_own = |name: &String| name.starts_with('.') || name == BUCKETS_NAME;
            names.into_iter().filter(move |name| !is_own(name)).map(move |it| place.join(it))
        });
        // Only what has the mark of a deletion: whatever else lies there may be anybody's.
        let is_original_gone = |path: &PathBuf| {
            bucket::directory_state(files, path).ok() == Some(DirectoryState::Deleted)
        };
        let is_own_gone = |path: &PathBuf| {
            let state = bucket::directory_state(files, path).ok();
            matches!(state, Some(DirectoryState::Deleted | DirectoryState::Unfinished))
        };
        let remains = own.filter(is_own_gone).chain(originals.filter(is_original_gone));
        for path in remains {
            let directory = path.display();
            match bucket::remove_remains(files, &path) {
                Ok(()) => tracing::info!(%directory, "removed what was left of a bucket"),
                Err(error) => tracing::warn!(%error, "what is left of a bucket cannot be removed"),
            }
        }
    }

    fn own_names(&self, files: &dyn Files) -> Result<Vec<String>, FileError> {
        let own = self.0.join(BUCKETS_NAME);
        let mut names = if files.exists(&own)? { files.list(&own)? } else { Vec::new() };
        // A restore that was cut off leaves one that begins with a dot.
        names.retain(|name| !name.starts_with('.'));
        Ok(names)
    }
}

/// Where the original's server keeps the bucket called `name`, if it does.
fn original_bucket(files: &dyn Files, path: &Path, name: &str) -> Option<PathBuf> {
    if name.starts_with('.') {
        return None;
    }
    let places = [path.join(name), path.join("data").join(name)];
    places.into_iter().find(|place| bucket::is_bucket_directory(files, place))
}

/// What the mark says, and the node's identity. What the mark lacks is made, and kept in it.
fn open_mark(files: &dyn Files, entropy: &Entropy, path: &Path) -> anyhow::Result<(Marked, Uuid)> {
    let found = match files.read_all(path) {
        Ok(content) => Some(read_mark(path, &content)?),
        Err(error) if error.kind == FileErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    if found.is_none() && has_described_bucket(files, path.parent().unwrap_or(path))? {
        tracing::warn!(
            file = %path.display(),
            "settee.json is missing, and is made anew: the node and the cluster have new identities"
        );
    }
    if let Some(marked) = found
        && let Some(node_uuid) = marked.node_uuid
    {
        return Ok((marked, node_uuid));
    }
    let cluster_uuid = found.map_or_else(|| Uuid::random(entropy), |found| found.cluster_uuid);
    let node_uuid = Uuid::random(entropy);
    let has_users = found.is_some_and(|found| found.has_users);
    let marked = Marked { cluster_uuid, node_uuid: Some(node_uuid), has_users };
    write_mark(files, path, marked)?;
    Ok((marked, node_uuid))
}

/// Whether a node has made a bucket in the directory at `path`, or has taken one over there,
/// whether its mark is there or not.
fn has_described_bucket(files: &dyn Files, path: &Path) -> Result<bool, FileError> {
    let buckets = path.join(BUCKETS_NAME);
    let names = match files.list(&buckets) {
        Err(error) if error.kind == FileErrorKind::NotFound => Vec::new(),
        Err(error) if error.kind == FileErrorKind::NotADirectory => Vec::new(),
        names => names?,
    };
    let own = names.iter().map(|name| buckets.join(name));
    let mut all = own.chain(BucketPlaces::of(path).taken_over(files));
    Ok(all.any(|directory| bucket::is_described(files, &directory)))
}

fn write_mark(files: &dyn Files, path: &Path, marked: Marked) -> Result<(), FileError> {
    let mark = Mark {
        format: FORMAT,
        cluster_uuid: marked.cluster_uuid.to_string(),
        node_uuid: marked.node_uuid.map(|uuid| uuid.to_string()),
        has_users: marked.has_users,
    };
    files.replace_all(path, &serde_json::to_vec_pretty(&mark).expect("a mark is JSON"))
}

fn read_mark(path: &Path, content: &[u8]) -> anyhow::Result<Marked> {
    let damaged = || {
        format!(
            "{} is damaged; a node makes another, with a new identity of the cluster, once it is \
             moved away",
            path.display()
        )
    };
    let mark: Mark = serde_json::from_slice(content).with_context(damaged)?;
    if mark.format != FORMAT {
        bail!("{} was written by a newer version; use that version", path.display());
    }
    let parse = |uuid: &String| Uuid::parse(uuid).with_context(damaged);
    let node_uuid = mark.node_uuid.as_ref().map(parse).transpose()?;
    Ok(Marked { cluster_uuid: parse(&mark.cluster_uuid)?, node_uuid, has_users: mark.has_users })
}

fn first_names(names: &[String]) -> String {
    let shown: Vec<&str> = names.iter().take(3).map(String::as_str).collect();
    let more = if names.len() > shown.len() { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::files::RealFiles;
    use platform::simulated::{Fault, FaultError, SimulatedFiles};

    #[test]
    fn a_directory_is_marked_locked_and_opened_again() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("new/data");
        let first = DataDirectory::open(&RealFiles, &Entropy::real(), &path, &["b"]).unwrap();
        let identities = |it: &DataDirectory| (it.cluster_uuid, it.node_uuid);
        let before = identities(&first);
        let second = DataDirectory::open(&RealFiles, &Entropy::real(), &path, &["b"])
            .err()
            .unwrap()
            .to_string();
        assert!(second.contains("another node uses"), "{second}");
        assert_eq!(first.bucket(&RealFiles, "b").unwrap(), path.join("buckets/b"));
        drop(first);
        let again = DataDirectory::open(&RealFiles, &Entropy::real(), &path, &["b"]).unwrap();
        assert_eq!(identities(&again), before);
        let beside = root.path().join("beside");
        let other = DataDirectory::open(&RealFiles, &Entropy::real(), &beside, &["b"]).unwrap();
        assert!(other.node_uuid != again.node_uuid && other.node_uuid != other.cluster_uuid);
    }

    #[test]
    fn a_directory_of_an_earlier_version_gets_a_nodes_identity_once() {
        const CLUSTER: &str = "0123456789abcdef0123456789abcdef";
        let root = tempfile::tempdir().unwrap();
        let mark = format!(r#"{{"format": 1, "cluster_uuid": "{CLUSTER}"}}"#);
        RealFiles.replace_all(&root.path().join(MARK_NAME), mark.as_bytes()).unwrap();
        let open = || {
            let path = root.path();
            let opened = DataDirectory::open(&RealFiles, &Entropy::real(), path, &["b"]).unwrap();
            assert_eq!(opened.cluster_uuid.to_string(), CLUSTER);
            opened.node_uuid
        };
        assert_eq!(open(), open());
    }

    #[test]
    fn a_directory_whose_mark_is_moved_away_gets_another() {
        let files = SimulatedFiles::new();
        let path = Path::new("/data");
        let open = || {
            let opened = DataDirectory::open(&files, &Entropy::real(), path, &["b"]);
            opened.map(|it| it.cluster_uuid).map_err(|error| error.to_string())
        };
        let before = open().unwrap();
        let bucket = path.join("buckets/b");
        files.create_directories(&bucket).unwrap();
        files.remove(&path.join(MARK_NAME)).unwrap();
        let refusal = open().unwrap_err();
        assert!(refusal.contains("something else"), "somebody else has buckets, too: {refusal}");
        let described = r#"{"format": 1, "name": "b", "uuid": "", "vbucket_count": 4}"#;
        files.replace_all(&bucket.join("bucket.json"), described.as_bytes()).unwrap();
        let after = open().unwrap();
        assert_ne!(after, before);
        assert_eq!(open(), Ok(after));
    }

    #[test]
    fn a_bucket_that_was_taken_over_says_whose_a_directory_without_its_mark_is() {
        for place in ["b", "data/b"] {
            let files = SimulatedFiles::new();
            let path = Path::new("/data");
            let bucket = path.join(place);
            files.create_directories(&bucket).unwrap();
            files.replace_all(&bucket.join("0.couch.1"), b"").unwrap();
            let found = |path| DataDirectory::look_at(&files, path, &["b"]).ok();
            assert_eq!(found(path), Some(FoundDirectory::OfOriginal));
            let opened = DataDirectory::open(&files, &Entropy::real(), path, &["b"]).unwrap();
            let described = r#"{"format": 1, "name": "b", "uuid": "", "vbucket_count": 4}"#;
            files.replace_all(&bucket.join("bucket.json"), described.as_bytes()).unwrap();
            assert_eq!(opened.places().taken_over(&files), [bucket]);
            // By which a start warns that it makes new identities.
            assert!(has_described_bucket(&files, path).unwrap(), "{place}");
            files.remove(&path.join(MARK_NAME)).unwrap();
            assert_eq!(found(path), Some(FoundDirectory::OfNode), "{place}");
        }
        // A node's directory is not the one that has it as `data`.
        let files = SimulatedFiles::new();
        let inside = Path::new("/srv/data");
        let bucket = inside.join("b");
        files.create_directories(&bucket).unwrap();
        files.replace_all(&bucket.join("0.couch.1"), b"").unwrap();
        files.replace_all(&bucket.join("bucket.json"), b"{}").unwrap();
        drop(DataDirectory::open(&files, &Entropy::real(), inside, &["b"]).unwrap());
        assert!(BucketPlaces::of(Path::new("/srv")).taken_over(&files).is_empty());
        assert_eq!(BucketPlaces::of(inside).taken_over(&files), [bucket]);
    }

    #[test]
    fn users_that_were_kept_and_are_gone_are_missed() {
        let files = SimulatedFiles::new();
        let path = Path::new("/data");
        let open = || DataDirectory::open(&files, &Entropy::real(), path, &["b"]).unwrap();
        let opened = open();
        files.replace_all(&opened.users(), b"{}").unwrap();
        assert!(!DataDirectory::has_lost_users(&files, path));
        opened.note_users(&files);
        files.remove(&opened.users()).unwrap();
        let before = opened.node_uuid;
        drop(opened);
        assert!(DataDirectory::has_lost_users(&files, path));
        assert!(open().had_users && open().node_uuid == before);
    }

    #[test]
    fn a_mistyped_bucket_is_not_made_beside_the_one_that_is_there() {
        let root = tempfile::tempdir().unwrap();
        let directory =
            DataDirectory::open(&RealFiles, &Entropy::real(), root.path(), &["orders"]).unwrap();
        directory.places().check_buckets(&RealFiles, &["orders"]).unwrap();
        let bucket = directory.bucket(&RealFiles, "orders").unwrap();
        RealFiles.create_directories(&bucket).unwrap();
        RealFiles.replace_all(&bucket.join("bucket.json"), b"{}").unwrap();
        RealFiles.create_directories(&root.path().join("buckets/.restoring-x")).unwrap();
        directory.places().check_buckets(&RealFiles, &["orders"]).unwrap();
        let error =
            directory.places().check_buckets(&RealFiles, &["order"]).unwrap_err().to_string();
        assert!(error.contains("`orders`") && error.contains("--bucket"), "{error}");
        assert!(!error.contains("restoring"), "{error}");
    }

    #[test]
    fn a_first_start_that_was_cut_off_before_its_mark_is_begun_anew() {
        let open = |files: &SimulatedFiles| {
            DataDirectory::open(files, &Entropy::real(), Path::new("/data"), &["b"])
        };
        let whole = SimulatedFiles::new();
        drop(open(&whole).unwrap());
        for number in 1..=whole.calls().total() {
            let files = SimulatedFiles::new();
            files.fail(Fault { call: None, number, error: FaultError::Io, from_then_on: true });
            assert!(open(&files).is_err(), "{number}");
            files.heal();
            let left = files.list(Path::new("/data")).unwrap_or_default();
            assert!(open(&files).is_ok(), "{number}: {left:?}");
        }
    }

    #[test]
    fn foreign_files_are_left_alone() {
        let root = tempfile::tempdir().unwrap();
        RealFiles.replace_all(&root.path().join("letter.txt"), b"Dear ...").unwrap();
        let error = DataDirectory::open(&RealFiles, &Entropy::real(), root.path(), &["b"])
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("letter.txt"), "{error}");
        assert_eq!(RealFiles.list(root.path()).unwrap(), ["letter.txt"]);
    }

    #[test]
    fn the_originals_directory_is_taken_over_with_the_bucket_where_it_is() {
        for place in ["travel", "data/travel"] {
            let root = tempfile::tempdir().unwrap();
            let bucket = root.path().join(place);
            RealFiles.create_directories(&bucket).unwrap();
            RealFiles.create_directories(&root.path().join("@2i")).unwrap();
            RealFiles.replace_all(&bucket.join("17.couch.4"), b"").unwrap();
            let other = DataDirectory::open(&RealFiles, &Entropy::real(), root.path(), &["other"])
                .err()
                .unwrap();
            assert!(other.to_string().contains("`other`"), "{other}");
            for _ in 0..2 {
                let directory =
                    DataDirectory::open(&RealFiles, &Entropy::real(), root.path(), &["travel"])
                        .unwrap();
                assert_eq!(directory.bucket(&RealFiles, "travel").unwrap(), bucket);
                directory.places().check_buckets(&RealFiles, &["travel"]).unwrap();
                let error =
                    directory.places().check_buckets(&RealFiles, &["new"]).unwrap_err().to_string();
                assert!(error.contains("`travel`"), "{error}");
            }
        }
    }
}
