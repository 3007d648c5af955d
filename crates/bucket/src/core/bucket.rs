//! The bucket: its parts. What is done with them stands in the folders of the subjects.

use std::sync::Arc;

use document::Vbid;
use executor::{ExecutorPool, Owner};
use platform::{Clock, Entropy, FileError, Files};
use storage::{BacklogUsage, JournalUsage};
use vbucket::{ClockRules, Now};

use super::background::Background;
use super::completion::Completions;
use super::counters::Counters;
use super::listeners::Listeners;
use super::refused::Refused;
use super::stream_observer::StreamObserver;
use super::timings::Timings;
use super::vbucket_slot::VbucketSlot;
use super::vbuckets::Vbuckets;
use super::write_rules::WriteRules;
use crate::collections::ManifestStore;
use crate::compaction::Compaction;
use crate::config::{BucketConfig, BucketType, ConflictResolution};
use crate::disk::{BackingStore, Disk};
use crate::memory::{CheckpointState, Memory};
use crate::scan::RangeScans;
use crate::start::BucketDirectory;

/// The outside world of a bucket.
#[derive(Clone)]
pub struct Surroundings {
    /// Time.
    pub clock: Clock,
    /// Files.
    pub files: Arc<dyn Files>,
    /// Threads for background tasks.
    pub pool: ExecutorPool,
    /// Where completions go.
    pub completions: Arc<dyn Completions>,
    /// Decides uuids, names and the layout of hash tables.
    pub entropy: Entropy,
}

/// One bucket. A handle: clones are the same bucket.
#[derive(Clone)]
pub struct Bucket(pub(crate) Arc<BucketCore>);

/// What the handles and the tasks of a bucket share. Of the parts only the files in their own
/// folders see the inside.
pub(crate) struct BucketCore {
    /// As it was at opening; what changes since is in the parts.
    pub(crate) config: BucketConfig,
    pub(crate) clock: Clock,
    /// What the bucket's directory says of it.
    pub(crate) directory: BucketDirectory,
    /// Which scopes and collections there are.
    pub(crate) manifest: ManifestStore,
    pub(crate) rules: WriteRules,
    pub(crate) vbuckets: Vbuckets,
    /// Their files and the journal, or nothing. What may be asked under which lock says
    /// docs/locks.md.
    pub(crate) store: BackingStore,
    pub(crate) memory: Memory,
    pub(crate) disk: Disk,
    pub(crate) compaction: Compaction,
    pub(crate) range_scans: RangeScans,
    pub(crate) listeners: Listeners,
    pub(crate) counters: Counters,
    pub(crate) background: Background,
}

impl Bucket {
    /// The configuration, as it was at opening.
    pub fn config(&self) -> &BucketConfig {
        &self.0.config
    }

    /// The bucket's identity: 32 hexadecimal digits.
    pub fn uuid(&self) -> &str {
        self.0.directory.uuid()
    }

    /// The settings that are kept in its directory, as whoever keeps them has written them.
    ///
    /// # Errors
    /// The disk does not give them.
    pub fn kept_settings(&self) -> Result<Option<Vec<u8>>, FileError> {
        self.0.directory.kept_settings()
    }

    /// Where it keeps its documents.
    pub fn bucket_type(&self) -> BucketType {
        self.0.directory.bucket_type()
    }

    /// Which version of a document wins when one comes that came about elsewhere.
    pub fn conflict_resolution(&self) -> ConflictResolution {
        self.0.directory.conflict_resolution()
    }

    /// What it makes of the clocks of others.
    pub fn clock_rules(&self) -> &ClockRules {
        self.0.vbuckets.factory.clock_rules()
    }

    /// How full its journal is; `None` without one.
    pub fn journal_usage(&self) -> Option<JournalUsage> {
        self.0.store.journal_usage()
    }

    /// How far its files are behind the journal.
    pub fn backlog(&self) -> BacklogUsage {
        self.0.store.backlog()
    }

    /// For whom its tasks run.
    pub fn task_owner(&self) -> &Owner {
        &self.0.background.owner
    }

    /// What its background work took.
    pub fn timings(&self) -> &Timings {
        &self.0.counters.timings
    }

    /// Refuses what is about a disk when there is none.
    pub(crate) fn check_has_disk(&self) -> Result<(), Refused> {
        match self.bucket_type() {
            BucketType::Couchbase => Ok(()),
            BucketType::Ephemeral => Err(Refused::Ephemeral),
        }
    }

    /// From now on `observer` hears what streams have to know.
    ///
    /// # Panics
    /// If there is an observer already.
    pub fn observe_streams(&self, observer: Arc<dyn StreamObserver>) {
        self.0.listeners.observe_streams(observer);
    }
}

impl BucketCore {
    /// The time of what happens without a client.
    pub(crate) fn now(&self) -> Now {
        Now { monotonic: self.clock.now(), wall: self.clock.wall_time() }
    }

    /// Whether there is anything on disk.
    pub(crate) fn has_files(&self) -> bool {
        self.directory.bucket_type() == BucketType::Couchbase
    }

    /// The place of a vBucket; `None` above the last one.
    pub(crate) fn slot(&self, vbid: Vbid) -> Option<&VbucketSlot> {
        self.vbuckets.slot(vbid)
    }

    /// Whether the vBucket cannot be flushed because its file is damaged.
    pub(crate) fn file_is_damaged(&self, vbid: Vbid) -> bool {
        self.slot(vbid).is_some_and(VbucketSlot::file_is_damaged)
    }

    /// All vBuckets in order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (Vbid, &VbucketSlot)> {
        self.vbuckets.iter()
    }

    /// How much of their memory checkpoints have used up.
    pub(crate) fn checkpoint_state(&self) -> CheckpointState {
        self.memory.checkpoint_state(self.memory.account.checkpoints_bytes())
    }

    /// Whether there is memory for the log of durable writes although that for others is used up.
    pub(crate) fn has_checkpoint_reserve(&self) -> bool {
        self.memory.has_checkpoint_reserve(self.memory.account.checkpoints_bytes())
    }
}
