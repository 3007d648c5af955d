//! Objects in a directory: `<backup>/<object>`. They are made in `.incoming` and moved.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use platform::process::FileLock;
use platform::{FileErrorKind, Files, OpenMode};

use super::crew::Moved;
use super::spool::remove_if_there;
use super::target::{Object, Target};

const INCOMING_NAME: &str = ".incoming";
const LOCK_NAME: &str = "lock";
/// Bytes that are read at a time.
const READ_BYTES: usize = 256 << 10;

/// A directory with backups.
pub(super) struct DirectoryTarget {
    files: Arc<dyn Files>,
    path: PathBuf,
    incoming: PathBuf,
    /// Held by the tool that puts objects there; `None` for one that only looks.
    lock: Mutex<Option<FileLock>>,
}

impl DirectoryTarget {
    /// Nothing is made before something is put there.
    pub(super) fn open(files: Arc<dyn Files>, path: &Path) -> anyhow::Result<Self> {
        let incoming = path.join(INCOMING_NAME);
        Ok(Self { files, path: path.to_path_buf(), incoming, lock: Mutex::new(None) })
    }

    /// Makes the directory for new objects, once, and keeps others out of it.
    fn prepare(&self) -> anyhow::Result<()> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_some() {
            return Ok(());
        }
        self.files.create_directories(&self.incoming)?;
        let taken = FileLock::try_acquire(&self.incoming.join(LOCK_NAME))?;
        let taken = taken.with_context(|| {
            format!("another backup is being written to {}; wait for it", self.path.display())
        })?;
        for name in self.files.list(&self.incoming)? {
            if name != LOCK_NAME {
                remove_if_there(&*self.files, &self.incoming.join(name))?;
            }
        }
        // Last: an attempt that has failed is made again by the next call.
        *lock = Some(taken);
        Ok(())
    }
}

impl Target for DirectoryTarget {
    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn list(&self, prefix: &str) -> anyhow::Result<Vec<Object>> {
        let mut objects = Vec::new();
        let backups = match self.files.list(&self.path) {
            Err(error) if error.kind == FileErrorKind::NotFound => return Ok(objects),
            found => found?,
        };
        for backup in backups.iter().filter(|name| !name.starts_with('.')) {
            let begin = format!("{backup}/");
            if !begin.starts_with(prefix) && !prefix.starts_with(&begin) {
                continue;
            }
            // What is no directory is no backup.
            for name in self.files.list(&self.path.join(backup)).unwrap_or_default() {
                let file = self.files.open(&self.path.join(backup).join(&name), OpenMode::Read)?;
                let object = Object { name: format!("{begin}{name}"), bytes: file.size()? };
                if object.name.starts_with(prefix) {
                    objects.push(object);
                }
            }
        }
        Ok(objects)
    }

    fn get(
        &self,
        name: &str,
        sink: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool> {
        let file = match self.files.open(&self.path.join(name), OpenMode::Read) {
            Err(error) if error.kind == FileErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let mut buffer = vec![0; READ_BYTES];
        let mut position = 0;
        loop {
            let count = file.read_at(&mut buffer, position)?;
            sink(&buffer[..count])?;
            position += count as u64;
            if count < buffer.len() {
                return Ok(true);
            }
        }
    }

    fn put_file(&self, name: &str, path: &Path, _: &Moved) -> anyhow::Result<()> {
        let place = self.path.join(name);
        let directory = place.parent().context("an object is in a backup")?;
        self.files.create_directories(directory)?;
        self.files.rename(path, &place)?;
        Ok(self.files.sync_directory(directory)?)
    }

    fn delete(&self, name: &str) -> anyhow::Result<()> {
        remove_if_there(&*self.files, &self.path.join(name))
    }

    fn files(&self) -> &dyn Files {
        &*self.files
    }

    fn spool_path(&self, name: &str) -> anyhow::Result<PathBuf> {
        self.prepare()?;
        let path = self.incoming.join(name);
        remove_if_there(&*self.files, &path)?;
        Ok(path)
    }
}
