//! The directory of a bucket: what it says of the bucket, and what the bucket says there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use document::Vbid;
use platform::{Entropy, FileError, FileErrorKind, Files};
use storage::{LastStop, Witnesses};

use super::absent_vbuckets::AbsentVbuckets;
use super::bucket_file::{self, BucketFile, SETTINGS_NAME};
use super::open_error::OpenError;
use crate::config::{BucketConfig, BucketType, ConflictResolution};

/// An open directory. The vBuckets' files and the journal in it are storage's.
pub(crate) struct BucketDirectory {
    path: PathBuf,
    files: Arc<dyn Files>,
    /// What is fixed since the bucket was made.
    description: BucketFile,
    /// vBuckets that were deleted.
    absent: AbsentVbuckets,
}

impl BucketDirectory {
    /// Reads what there is in the directory at `path`, or describes a new bucket in it.
    pub(crate) fn open(
        files: &Arc<dyn Files>,
        path: &Path,
        config: &BucketConfig,
        entropy: &Entropy,
    ) -> Result<Self, OpenError> {
        files.create_directories(path)?;
        let mut description = bucket_file::open_or_create(&**files, path, config, entropy)?;
        bucket_file::note_settings(&**files, path, &mut description)?;
        let absent = AbsentVbuckets::open(&**files, path)?;
        Ok(Self { path: path.to_path_buf(), files: Arc::clone(files), description, absent })
    }

    /// What it says of the last stop.
    pub(crate) fn last_stop(&self, config: &BucketConfig) -> Result<LastStop, OpenError> {
        bucket_file::last_stop(&*self.files, &self.path, config)
    }

    /// See [`bucket_file::begin_run`].
    pub(crate) fn begin_run(&self, keeps_journal: bool) -> Result<(), OpenError> {
        bucket_file::begin_run(&*self.files, &self.path, keeps_journal)
    }

    /// See [`bucket_file::leave_clean_mark`].
    pub(crate) fn leave_clean_mark(&self, witnesses: &Witnesses) -> Result<(), OpenError> {
        bucket_file::leave_clean_mark(&*self.files, &self.path, witnesses)
    }

    /// The bucket's identity: 32 hexadecimal digits.
    pub(crate) fn uuid(&self) -> &str {
        &self.description.uuid
    }

    /// What is kept beside the description, whose words are the node's; `None` if nothing is.
    pub(crate) fn kept_settings(&self) -> Result<Option<Vec<u8>>, FileError> {
        match self.files.read_all(&self.path.join(SETTINGS_NAME)) {
            Err(error) if error.kind == FileErrorKind::NotFound => Ok(None),
            content => content.map(Some),
        }
    }

    /// How many vBuckets the bucket was made with.
    pub(crate) fn vbucket_count(&self) -> u16 {
        self.description.vbucket_count
    }

    /// Where the bucket keeps its documents.
    pub(crate) fn bucket_type(&self) -> BucketType {
        self.description.bucket_type
    }

    /// Which version of a document wins.
    pub(crate) fn conflict_resolution(&self) -> ConflictResolution {
        self.description.conflict_resolution
    }

    /// vBuckets that were deleted, with the last revision of the file of each.
    pub(crate) fn absent_vbuckets(&self) -> Vec<(Vbid, u64)> {
        self.absent.all()
    }

    /// Lists a vBucket as deleted, durably: its file had `last_revision` at last.
    pub(crate) fn note_absent(&self, vbid: Vbid, last_revision: u64) -> Result<(), OpenError> {
        assert!(vbid.0 < self.vbucket_count(), "only a vBucket that there was is deleted");
        self.absent.set(&*self.files, vbid, Some(last_revision))
    }

    /// Takes a vBucket off the list, durably.
    pub(crate) fn note_present(&self, vbid: Vbid) -> Result<(), OpenError> {
        self.absent.set(&*self.files, vbid, None)
    }

    /// Makes sure that no start finds one of `vbids` deleted, before it goes on.
    pub(crate) fn make_present(&self, vbids: &[Vbid]) -> Result<(), OpenError> {
        self.absent.make_present(&*self.files, vbids)
    }
}
