//! The files of a bucket as they are at one moment, for a backup.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use document::Vbid;
use storage::{FrozenFacts, FrozenVbucket, StorageError};

use crate::bucket::Bucket;
use crate::bucket_type::BucketType;

/// Of the handles that the bucket may have open, one in so many is for frozen files.
const OPEN_FILES_SHARE: usize = 2;

/// Why a bucket cannot be frozen.
#[derive(Debug, thiserror::Error)]
pub enum FreezeError {
    /// Callers do not try again.
    #[error("the bucket keeps nothing in files; there is nothing to back up")]
    Ephemeral,
    /// Callers repair the file, or give it up, before they try again.
    #[error("the file of vBucket {} is damaged; a backup would be without it", .0.0)]
    Damaged(Vbid),
    /// A file could not be brought up to date or be read. Callers may try again.
    #[error("vBucket {}: {error}", vbid.0)]
    Storage {
        /// Which vBucket.
        vbid: Vbid,
        /// What happened.
        error: StorageError,
    },
}

/// What a bucket's files held at one moment. Keeps up to half as many files open as the bucket
/// does, and what they need on the disk, until it is dropped.
pub struct FrozenBucket {
    bucket: Bucket,
    /// Each leaves when it has been written.
    frozen: Mutex<BTreeMap<Vbid, FrozenVbucket>>,
    vbuckets: Vec<FrozenEntry>,
    took: Duration,
}

/// One vBucket that has a file.
#[derive(Clone, Debug)]
pub struct FrozenEntry {
    /// Which.
    pub vbid: Vbid,
    /// What is in it; at least, if it is late.
    pub facts: FrozenFacts,
    /// Whether there were too many files to hold this one: it is frozen when it is written.
    pub is_late: bool,
}

impl Bucket {
    /// Brings all files up to date, and then holds them all as they are. Everything that was
    /// written before the call is in them; while flushes fail, everything that was durable. Takes
    /// as long as the files are behind.
    ///
    /// # Errors
    /// Nothing is held then.
    pub fn freeze(&self) -> Result<FrozenBucket, FreezeError> {
        if self.bucket_type() == BucketType::Ephemeral {
            return Err(FreezeError::Ephemeral);
        }
        let core = &self.0;
        core.flush_items();
        // Most of the work comes first, so that the moments of the files lie close together.
        for (vbid, slot) in core.slots() {
            if slot.file_is_damaged() {
                return Err(FreezeError::Damaged(vbid));
            }
            core.store.apply(vbid).map_err(|error| FreezeError::Storage { vbid, error })?;
        }
        let begin = core.clock.now();
        let held_max = (core.config.open_files_max / OPEN_FILES_SHARE).max(1);
        let (mut frozen, mut vbuckets) = (BTreeMap::new(), Vec::new());
        for (vbid, _) in core.slots() {
            let failed = |error| FreezeError::Storage { vbid, error };
            let Some(file) = core.store.freeze(vbid).map_err(failed)? else { continue };
            let facts = file.facts().map_err(failed)?;
            let is_late = frozen.len() >= held_max;
            vbuckets.push(FrozenEntry { vbid, facts, is_late });
            if !is_late {
                frozen.insert(vbid, file);
            }
        }
        let took = core.clock.now().since(begin);
        Ok(FrozenBucket { bucket: self.clone(), frozen: Mutex::new(frozen), vbuckets, took })
    }
}

impl FrozenBucket {
    /// The vBuckets that have files, in order.
    pub fn vbuckets(&self) -> &[FrozenEntry] {
        &self.vbuckets
    }

    /// How far the moments of the files lie apart; those that are late come after.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Gives `sink` a couchstore file with a vBucket's state, and lets go of the vBucket. Whether
    /// there was one to give: each is given once.
    ///
    /// # Errors
    /// Those of [`FrozenVbucket::write_to`].
    pub fn write(
        &self,
        vbid: Vbid,
        sink: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
    ) -> Result<bool, StorageError> {
        let held = self.frozen.lock().unwrap_or_else(PoisonError::into_inner).remove(&vbid);
        let is_late = |entry: &FrozenEntry| entry.vbid == vbid && entry.is_late;
        let file = match held {
            Some(file) => Some(file),
            None if self.vbuckets.iter().any(is_late) => self.bucket.0.store.freeze(vbid)?,
            None => None,
        };
        file.map_or(Ok(false), |file| file.write_to(sink).map(|_| true))
    }
}
