//! Where backups are kept: whole objects that are put, fetched, listed and deleted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use platform::Files;

use super::crew::Moved;
use super::directory::DirectoryTarget;
use super::s3::{S3Settings, S3Target};
use super::spool::SpoolFile;

/// Where backups are kept.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Target")]
pub struct TargetArguments {
    /// A directory, or s3://BUCKET/PREFIX
    #[arg(long, value_name = "TARGET", env = "SETTEE_BACKUP_TARGET")]
    pub target: String,
    #[command(flatten)]
    pub(super) s3: S3Settings,
}

/// An object that is there, whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Object {
    /// The backup's name, a slash, the object's name.
    pub(super) name: String,
    pub(super) bytes: u64,
}

/// A place for objects. An object is there whole, or not at all.
pub(super) trait Target: Send + Sync {
    /// For people.
    fn describe(&self) -> String;

    /// The objects whose names begin so.
    fn list(&self, prefix: &str) -> anyhow::Result<Vec<Object>>;

    /// Gives the object's bytes to `sink`. Whether it was there.
    fn get(
        &self,
        name: &str,
        sink: &mut dyn FnMut(&[u8]) -> anyhow::Result<()>,
    ) -> anyhow::Result<bool>;

    /// Makes an object of a durable file at a [`Target::spool_path`], and takes the file away.
    fn put_file(&self, name: &str, path: &Path, moved: &Moved) -> anyhow::Result<()>;

    /// Removes an object, if it is there.
    fn delete(&self, name: &str) -> anyhow::Result<()>;

    /// The files of the machine.
    fn files(&self) -> &dyn Files;

    /// Where a file is to be made that is to become an object. There is none now.
    fn spool_path(&self, name: &str) -> anyhow::Result<PathBuf>;

    /// Makes a small object.
    fn put(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        let (path, moved) = (self.spool_path("small.part")?, Moved::default());
        let mut file = SpoolFile::create(self.files(), &path, &moved)?;
        file.write(content)?;
        drop(file.finish()?);
        self.put_file(name, &path, &moved)
    }

    /// The whole of a small object.
    fn get_small(&self, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        let mut content = Vec::new();
        let is_there = self.get(name, &mut |part| {
            content.extend_from_slice(part);
            Ok(())
        })?;
        Ok(is_there.then_some(content))
    }
}

impl TargetArguments {
    /// The target.
    pub(super) fn open(&self, files: Arc<dyn Files>) -> anyhow::Result<Arc<dyn Target>> {
        if let Some(rest) = self.target.strip_prefix("s3://") {
            return Ok(Arc::new(S3Target::open(rest, &self.s3, files)?));
        }
        anyhow::ensure!(
            !self.target.contains("://"),
            "--target is a directory, or s3://BUCKET/PREFIX, and not {}",
            self.target
        );
        let path = Path::new(&self.target);
        let target = DirectoryTarget::open(files, path)
            .with_context(|| format!("the target {} cannot be used", path.display()))?;
        Ok(Arc::new(target))
    }
}
