//! Directories for data: made, copied durably, measured, removed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// A directory that is removed with everything in it when this value goes.
pub struct Directory(PathBuf);

const TMPFS_MAGIC: i64 = 0x0102_1994;

impl Directory {
    /// An empty directory in `parent`, which is made if it is missing.
    pub fn new(parent: &Path, name: &str) -> Result<Self> {
        let path = parent.join(name);
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A copy of it, durable, so that no write-back of it meets what is measured later. Names in
    /// `without` stay behind.
    pub fn copy(&self, name: &str, without: &[&str]) -> Result<Self> {
        let parent = self.0.parent().context("a directory for data has a parent")?;
        let target = Self::new(parent, name)?;
        copy_all(&self.0, &target.0, without)?;
        Ok(target)
    }

    /// Bytes of all files in it.
    pub fn bytes(&self) -> Result<u64> {
        bytes_of(&self.0)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("{} stays: {error}", self.0.display());
        }
    }
}

/// Refuses a directory in memory: syncs cost nothing there.
pub fn check_is_on_disk(path: &Path) -> Result<()> {
    let kind = rustix::fs::statfs(path).with_context(|| path.display().to_string())?.f_type;
    ensure!(
        kind != TMPFS_MAGIC,
        "{} is in memory, where syncs cost nothing; name another --directory",
        path.display()
    );
    Ok(())
}

fn copy_all(source: &Path, target: &Path, without: &[&str]) -> Result<()> {
    for entry in fs::read_dir(source)? {
        let entry = entry?;
        let name = entry.file_name();
        if without.iter().any(|excluded| name == *excluded) {
            continue;
        }
        let path = target.join(&name);
        if entry.file_type()?.is_dir() {
            fs::create_dir(&path)?;
            copy_all(&entry.path(), &path, without)?;
        } else {
            fs::copy(entry.path(), &path)?;
            File::open(&path)?.sync_all()?;
        }
    }
    Ok(File::open(target)?.sync_all()?)
}

fn bytes_of(directory: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { bytes_of(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_everything_but_what_stays_behind() {
        let parent = tempfile::tempdir().expect("a directory");
        let source = Directory::new(parent.path(), "source").expect("a directory");
        fs::create_dir_all(source.path().join("in/journal")).expect("a directory");
        fs::write(source.path().join("in/file"), [1; 10]).expect("a file");
        fs::write(source.path().join("in/journal/s.1"), [1; 5]).expect("a file");
        assert_eq!(source.bytes().expect("a size"), 15);
        let copy = source.copy("copy", &["journal"]).expect("a copy");
        assert_eq!(copy.bytes().expect("a size"), 10);
        let path = copy.path().to_path_buf();
        drop(copy);
        assert!(!path.exists());
    }
}
