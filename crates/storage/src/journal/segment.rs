//! Segments: files that groups are appended to, and the directory that they lie in.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use platform::{File, Files, OpenMode};

use crate::error::StorageError;
use crate::journal::layout::{SEGMENT_HEADER_SIZE, SegmentHeader};
use crate::journal::names;

/// The `journal` directory of a bucket.
pub(super) struct Directory {
    pub(super) files: Arc<dyn Files>,
    bucket: PathBuf,
    pub(super) path: PathBuf,
    /// Whether this process has made the directory's own name durable.
    is_named: AtomicBool,
    /// Whether a segment has lost its name since the names were made durable last.
    has_retired: AtomicBool,
}

/// A segment that groups are appended to.
pub(super) struct OpenSegment {
    pub(super) file: Box<dyn File>,
    pub(super) segment: Segment,
    /// Where the next group begins.
    pub(super) position: u64,
}

/// A segment in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) number: u64,
    /// In all of its groups.
    pub(super) salt: u64,
    pub(super) first_lsn: u64,
    /// The last lsn in it that was acknowledged; below `first_lsn` when there is none.
    pub(super) last_lsn: u64,
    /// Bytes it counts for.
    pub(super) size: u64,
    /// Whether it was a spare, so that appends allocate nothing.
    pub(super) is_filled: bool,
    /// Whether it may become a spare: it is of the usual size, nearly filled, and never failed.
    pub(super) is_recyclable: bool,
}

impl Directory {
    pub(super) fn new(files: Arc<dyn Files>, bucket: &Path) -> Self {
        let path = bucket.join(names::DIRECTORY);
        let (bucket, is_named, has_retired) = (bucket.to_path_buf(), false.into(), false.into());
        Self { files, bucket, path, is_named, has_retired }
    }

    pub(super) fn live_path(&self, number: u64) -> PathBuf {
        self.path.join(names::live(number))
    }

    pub(super) fn spare_path(&self, number: u64) -> PathBuf {
        self.path.join(names::spare(number))
    }

    /// Makes a segment under a name that is not in use and gives its file, still empty: from the
    /// spare of number `spare`, or anew.
    pub(super) fn open_live(
        &self,
        number: u64,
        spare: Option<u64>,
    ) -> Result<Box<dyn File>, StorageError> {
        let path = self.live_path(number);
        let Some(spare) = spare else {
            // Its name is made durable with the segment's.
            self.files.create_directory(&self.path)?;
            return Ok(self.files.open_direct(&path, OpenMode::CreateNew)?);
        };
        self.files.rename(&self.spare_path(spare), &path)?;
        Ok(self.files.open_direct(&path, OpenMode::ReadWrite)?)
    }

    /// Makes name and header of a new segment durable. Until that is done no file has a header of
    /// its number under its name, which a replay takes for a spare.
    pub(super) fn begin(
        &self,
        file: &dyn File,
        header: &SegmentHeader,
        was_spare: bool,
    ) -> Result<(), StorageError> {
        if was_spare {
            // The name first: a name of an earlier use that the power brings back must find the
            // header of that use.
            self.sync_names()?;
        }
        file.write_at(&header.encode(), 0)?;
        file.sync()?;
        if !was_spare {
            // A file system that has just made a new file durable has little left to do here.
            self.sync_names()?;
        }
        Ok(())
    }

    /// Makes the names inside durable, and once the directory's own.
    pub(super) fn sync_names(&self) -> Result<(), StorageError> {
        // Relaxed is enough: who does not see it set yet only syncs once more.
        if !self.is_named.load(Ordering::Relaxed) {
            self.files.sync_directory(&self.bucket)?;
            self.is_named.store(true, Ordering::Relaxed);
        }
        // Before the sync: that does not cover a segment which loses its name meanwhile.
        let may_be_new = self.has_retired.swap(false, Ordering::AcqRel);
        let synced = self.files.sync_directory(&self.path);
        if synced.is_err() && may_be_new {
            self.has_retired.store(true, Ordering::Release);
        }
        Ok(synced?)
    }

    /// Takes a segment out of use by its name; whether that is so.
    pub(super) fn retire(&self, number: u64) -> bool {
        let path = self.live_path(number);
        let renamed = self.files.rename(&path, &self.spare_path(number));
        // Not sooner: who made names durable before this was done has not made this one durable.
        self.has_retired.store(true, Ordering::Release);
        renamed.is_ok() || self.files.exists(&path).is_ok_and(|exists| !exists)
    }

    /// The same once what was retired before will stay so: a file system may make renames durable
    /// in any order, and segments that come back must have no gap. A new segment since then has
    /// seen to it.
    pub(super) fn retire_in_order(&self, number: u64) -> bool {
        let is_durable = !self.has_retired.load(Ordering::Acquire) || self.sync_names().is_ok();
        is_durable && self.retire(number)
    }

    /// Removes files that nobody needs. What cannot be removed is removed by the next start.
    pub(super) fn remove_spares(&self, numbers: &[u64]) {
        for number in numbers {
            drop(self.files.remove(&self.spare_path(*number)));
        }
    }

    /// Makes renames durable, as far as that works; they are made durable by the next segment.
    pub(super) fn sync_if_there(&self) {
        drop(self.files.sync_directory(&self.path));
    }
}

impl OpenSegment {
    pub(super) fn new(file: Box<dyn File>, segment: Segment) -> Self {
        Self { file, segment, position: SEGMENT_HEADER_SIZE }
    }

    /// Whether a group of so many bytes fits.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        bytes <= self.segment.size.saturating_sub(self.position)
    }
}
