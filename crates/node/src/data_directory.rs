//! The data directory: whose it is, and that no two nodes use it at once.
//!
//! ```text
//! settee.json     the mark of a data directory, with the node's and the cluster's identity
//! lock            held by the node that uses it
//! users.json      names and hashed passwords
//! buckets/<name>/ one directory a bucket
//! ```

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use cluster::Uuid;
use platform::process::FileLock;
use platform::{FileErrorKind, Files};
use serde::{Deserialize, Serialize};

const MARK_NAME: &str = "settee.json";
const LOCK_NAME: &str = "lock";
const USERS_NAME: &str = "users.json";
const BUCKETS_NAME: &str = "buckets";
/// The version of the directory's layout.
const FORMAT: u32 = 1;

/// A data directory that this process may use, as long as this value lives.
pub(crate) struct DataDirectory {
    path: PathBuf,
    pub(crate) cluster_uuid: Uuid,
    _lock: FileLock,
}

#[derive(Serialize, Deserialize)]
struct Mark {
    format: u32,
    cluster_uuid: String,
}

impl DataDirectory {
    /// Opens `path`, creating it when it is missing. Refuses a directory with anything in it that
    /// no node has made, and one that another node uses.
    pub(crate) fn open(files: &dyn Files, path: &Path) -> anyhow::Result<Self> {
        let names = files
            .create_directories(path)
            .and_then(|()| files.list(path))
            .context("the data directory cannot be made or read; give another with --data-dir")?;
        let is_ours = names.iter().any(|name| name == MARK_NAME);
        let is_unused = names.iter().all(|name| name == LOCK_NAME);
        if !is_ours && !is_unused {
            bail!(
                "{} holds files of something else ({}); give an empty or a new directory with \
                 --data-dir",
                path.display(),
                first_names(&names)
            );
        }
        let lock = FileLock::try_acquire(&path.join(LOCK_NAME))
            .with_context(|| format!("cannot lock {}", path.display()))?;
        let Some(lock) = lock else {
            bail!(
                "another node uses {}; stop it first, or give another --data-dir",
                path.display()
            );
        };
        let cluster_uuid = open_mark(files, &path.join(MARK_NAME))?;
        Ok(Self { path: path.to_path_buf(), cluster_uuid, _lock: lock })
    }

    /// Where the bucket called `name` is kept.
    pub(crate) fn bucket(&self, name: &str) -> PathBuf {
        self.path.join(BUCKETS_NAME).join(name)
    }

    /// Where users are kept.
    pub(crate) fn users(&self) -> PathBuf {
        self.path.join(USERS_NAME)
    }
}

fn open_mark(files: &dyn Files, path: &Path) -> anyhow::Result<Uuid> {
    match files.read_all(path) {
        Ok(content) => {
            let damaged = || format!("{} is damaged; restore it from a backup", path.display());
            let mark: Mark = serde_json::from_slice(&content).with_context(damaged)?;
            if mark.format != FORMAT {
                bail!("{} was written by a newer version; use that version", path.display());
            }
            Uuid::parse(&mark.cluster_uuid).with_context(damaged)
        }
        Err(error) if error.kind == FileErrorKind::NotFound => {
            let uuid = Uuid::random();
            let mark = Mark { format: FORMAT, cluster_uuid: uuid.to_string() };
            files.replace_all(path, &serde_json::to_vec_pretty(&mark)?)?;
            Ok(uuid)
        }
        Err(error) => Err(error.into()),
    }
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

    #[test]
    fn a_directory_is_marked_locked_and_opened_again() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("new/data");
        let first = DataDirectory::open(&RealFiles, &path).unwrap();
        let uuid = first.cluster_uuid;
        let second = DataDirectory::open(&RealFiles, &path).err().unwrap().to_string();
        assert!(second.contains("another node uses"), "{second}");
        drop(first);
        assert_eq!(DataDirectory::open(&RealFiles, &path).unwrap().cluster_uuid, uuid);
    }

    #[test]
    fn foreign_files_are_left_alone() {
        let root = tempfile::tempdir().unwrap();
        RealFiles.replace_all(&root.path().join("letter.txt"), b"Dear ...").unwrap();
        let error = DataDirectory::open(&RealFiles, root.path()).err().unwrap().to_string();
        assert!(error.contains("letter.txt"), "{error}");
        assert_eq!(RealFiles.list(root.path()).unwrap(), ["letter.txt"]);
    }
}
