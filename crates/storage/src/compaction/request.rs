//! What a compaction is asked to do, and what it came to.

use document::Seqno;

use super::damaged_bodies::DamagedBodies;
use super::pace::CompactionPace;
use crate::records::dropped_collections::DroppedCollection;

/// What is to be left out of a vBucket's file.
#[derive(Clone, Debug)]
pub struct CompactionRequest {
    /// Seconds since 1970: tombstones from before it are dropped; 0 drops none for their age.
    pub purge_before_seconds: u32,
    /// Of these, only those up to here; 0 for all.
    pub purge_before_seqno: Seqno,
    /// Drops tombstones of any age.
    pub drop_deletes: bool,
    /// Keeps tombstones that do not say when they were made. Such are a mistake of old versions.
    pub retain_erroneous_tombstones: bool,
    /// Seconds since 1970: documents whose time was over before are reported.
    pub now_seconds: u32,
    /// Collections that are gone, beside those that the file names itself.
    pub dropped: Vec<DroppedCollection>,
    /// Bytes after which the new file is synced, so that nobody else's sync has to wait for a lot
    /// of them (`fsync_after_every_n_bytes_written`).
    pub sync_bytes: u64,
    /// How fast it writes.
    pub pace: CompactionPace,
}

impl Default for CompactionRequest {
    fn default() -> Self {
        Self {
            purge_before_seconds: 0,
            purge_before_seqno: Seqno(0),
            drop_deletes: false,
            retain_erroneous_tombstones: false,
            now_seconds: 0,
            dropped: Vec::new(),
            sync_bytes: 1 << 20,
            pace: CompactionPace::default(),
        }
    }
}

/// How a compaction ended.
#[derive(Debug)]
pub enum CompactionOutcome {
    /// The new file is in force.
    Compacted(Box<CompactionReport>),
    /// The vBucket has no file.
    NoFile,
    /// Another compaction of the vBucket is under way.
    Busy,
    /// It was told to stop, or the file is another one by now. Nothing has changed.
    Aborted,
}

/// What a compaction has done.
#[derive(Debug, Default)]
pub struct CompactionReport {
    /// Bytes of the old file.
    pub file_bytes_before: u64,
    /// Bytes of the new one.
    pub file_bytes_after: u64,
    /// What was left out.
    pub purged: Purged,
    /// The highest seqno of a tombstone or a document of a dropped collection that was ever left
    /// out of the file.
    pub purge_seqno: Seqno,
    /// Documents whose time was over.
    pub expired_count: u64,
    /// Rounds in which what had been committed meanwhile was copied; the last of them kept commits
    /// out.
    pub rounds: u32,
    /// Documents that were copied although their bodies are damaged.
    pub damaged: DamagedBodies,
    /// The old file, if it could not be removed. The next start does that.
    pub old_file_left: Option<crate::error::StorageError>,
}

/// How many documents were left out, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Old tombstones.
    pub tombstones: u64,
    /// Prepares that are completed.
    pub prepares: u64,
    /// What was in dropped collections.
    pub of_dropped_collections: u64,
}
