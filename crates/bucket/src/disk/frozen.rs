//! The files of a bucket as they are at one moment, for a backup.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use document::Vbid;
use storage::{FrozenFacts, FrozenVbucket, StorageError};

use crate::config::BucketType;
use crate::core::{Bucket, BucketCore, DamageKind, VbucketSlot};

/// Of the handles that the bucket may have open, one in so many is for frozen files.
const OPEN_FILES_SHARE: usize = 2;

/// Why a bucket cannot be frozen.
#[derive(Debug, thiserror::Error)]
pub enum FreezeError {
    /// Callers do not try again.
    #[error("the bucket keeps nothing in files; there is nothing to back up")]
    Ephemeral,
    /// Callers see to the vBucket, or give it up, before they try again.
    #[error("vBucket {} is damaged, and a backup would be without it: {reason}", vbid.0)]
    Damaged {
        /// Which vBucket.
        vbid: Vbid,
        /// What is wrong with its file.
        reason: Arc<str>,
    },
    /// Writes that were answered cannot be flushed; the log says why. Callers may try again.
    #[error("vBucket {}: not everything that was answered could be written to disk", .0.0)]
    NotFlushed(Vbid),
    /// It has another role than when the bucket was frozen. Callers freeze the bucket again.
    #[error("vBucket {} has taken up another role meanwhile", .0.0)]
    OtherRole(Vbid),
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
    deleted: Vec<Vbid>,
    empty: Vec<Vbid>,
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
    /// Brings the files of the vBuckets that are `wanted` up to date, and then holds them all as
    /// they are. Everything that was written to these before the call is in them. Takes as long as
    /// the files are behind.
    ///
    /// # Errors
    /// Nothing is held then.
    pub fn freeze(&self, wanted: impl Fn(Vbid) -> bool) -> Result<FrozenBucket, FreezeError> {
        if self.bucket_type() == BucketType::Ephemeral {
            return Err(FreezeError::Ephemeral);
        }
        let core = &self.0;
        let flushed = core.flush_items(&wanted);
        let slots = || core.slots().filter(|(vbid, _)| wanted(*vbid));
        // Most of the work comes first, so that the moments of the files lie close together.
        for (vbid, slot) in slots() {
            core.check_is_whole(vbid, slot)?;
            core.apply(vbid).map_err(|error| FreezeError::Storage { vbid, error })?;
        }
        // Damage is told before this: it may be why something could not be flushed.
        flushed.map_err(FreezeError::NotFlushed)?;
        let begin = core.clock.now();
        let held_max = (core.config.open_files_max / OPEN_FILES_SHARE).max(1);
        let (mut frozen, mut vbuckets) = (BTreeMap::new(), Vec::new());
        let (mut deleted, mut empty) = (Vec::new(), Vec::new());
        for (vbid, slot) in slots() {
            let failed = |error| FreezeError::Storage { vbid, error };
            core.check_is_whole(vbid, slot)?;
            let Some(file) = core.freeze(vbid).map_err(failed)? else {
                if slot.is_absent() { &mut deleted } else { &mut empty }.push(vbid);
                continue;
            };
            let facts = file.facts().map_err(failed)?;
            let is_late = frozen.len() >= held_max;
            vbuckets.push(FrozenEntry { vbid, facts, is_late });
            if !is_late {
                frozen.insert(vbid, file);
            }
        }
        let took = core.clock.now().since(begin);
        let (bucket, frozen) = (self.clone(), Mutex::new(frozen));
        Ok(FrozenBucket { bucket, frozen, vbuckets, deleted, empty, took })
    }
}

impl BucketCore {
    fn check_is_whole(&self, vbid: Vbid, slot: &VbucketSlot) -> Result<(), FreezeError> {
        match slot.damage.get() {
            // Whether what cannot be read is still wanted shows when it is copied.
            None | Some((DamageKind::InPart, _)) => Ok(()),
            Some((DamageKind::RefusesWrites | DamageKind::OutOfService, reason)) => {
                Err(FreezeError::Damaged { vbid, reason })
            }
        }
    }

    /// Brings a file up to date, whoever that concerns hears of it, and holds it as it then is.
    fn freeze(&self, vbid: Vbid) -> Result<Option<FrozenVbucket>, StorageError> {
        self.apply(vbid)?;
        self.store.freeze(vbid)
    }
}

impl FrozenBucket {
    /// The vBuckets that were wanted and have files, in order.
    pub fn vbuckets(&self) -> &[FrozenEntry] {
        &self.vbuckets
    }

    /// The vBuckets that were wanted and are deleted, in order.
    pub fn deleted(&self) -> &[Vbid] {
        &self.deleted
    }

    /// The vBuckets that were wanted and never had anything to write to a file, in order.
    pub fn empty(&self) -> &[Vbid] {
        &self.empty
    }

    /// How far the moments of the files lie apart; those that are late come after.
    pub fn took(&self) -> Duration {
        self.took
    }

    /// Gives `sink` a couchstore file with a vBucket's state, and lets go of the vBucket. Whether
    /// there was one to give: each is given once.
    ///
    /// # Errors
    /// Those of reading the file, and [`FreezeError::OtherRole`].
    pub fn write(
        &self,
        vbid: Vbid,
        sink: impl FnMut(&[u8]) -> io::Result<()> + Send + 'static,
    ) -> Result<bool, FreezeError> {
        let held = self.frozen.lock().unwrap_or_else(PoisonError::into_inner).remove(&vbid);
        let failed = |error| FreezeError::Storage { vbid, error };
        let file = match held {
            Some(file) => Some(file),
            None => self.freeze_late(vbid)?,
        };
        file.map_or(Ok(false), |file| file.write_to(sink).map(|_| true).map_err(failed))
    }

    /// Freezes one that is late. Who has given its place away meanwhile may have a part of what
    /// was written before the bucket was frozen, or more than was.
    fn freeze_late(&self, vbid: Vbid) -> Result<Option<FrozenVbucket>, FreezeError> {
        let late = |entry: &&FrozenEntry| entry.vbid == vbid && entry.is_late;
        let Some(entry) = self.vbuckets.iter().find(late) else { return Ok(None) };
        let failed = |error| FreezeError::Storage { vbid, error };
        let Some(file) = self.bucket.0.freeze(vbid).map_err(failed)? else { return Ok(None) };
        let state = file.facts().map_err(failed)?.state;
        if state == entry.facts.state { Ok(Some(file)) } else { Err(FreezeError::OtherRole(vbid)) }
    }
}
