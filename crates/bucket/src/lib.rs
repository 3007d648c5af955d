//! One bucket: its vBuckets, their files, and the background tasks that join the two.
//!
//! Front-end workers call the operations of [`Bucket`] with a [`Session`] of their own. An
//! operation never blocks: what must wait for a file answers [`Attempted::Waits`] and is completed
//! later through [`Completions`].
//!
//! A subject has a folder, with its tasks beside its rules and its queues, and a part of the core
//! whose inside only the files of that folder see:
//!
//! - `config`: what an operator decides.
//! - `collections`: which scopes and collections there are, and how dropped ones go.
//! - `core`: the vBuckets, the one door into them, and what they want done. Knows no task.
//! - `disk`: flushes, files that follow the journal, fetches, backfills and backups.
//! - `memory`: quota and marks, whether writes are let in, and who makes room.
//! - `compaction`: which files are written anew, when, and how fast.
//! - `scan`: many documents at a time, for clients.
//! - `roles`: how vBuckets come, change, begin anew and go.
//! - `start`: what is found in the directory, and how it is loaded.
//! - `operations`: what clients ask for.
//!
//! `open` and `close` stand on top of all.

mod close;
mod collections;
mod compaction;
mod config;
mod core;
mod disk;
mod memory;
mod open;
mod operations;
mod roles;
mod scan;
mod start;
mod state_statistics;
mod statistics;

pub use crate::core::{
    Attempted, Bucket, Completion, Completions, Refused, Session, StreamObserver, Surroundings,
};
pub use crate::core::{DamageKind, Timings, VbucketDamage, WriteBlock};
pub use collections::{ManifestChangeError, manifest_json};
pub use compaction::{CompactionEnd, CompactionOrder, CompactionStatistics, RunningCompaction};
pub use config::{
    ApplyConfig, BucketConfig, BucketType, CompressionMode, ConflictResolution, DurabilityConfig,
    DurabilityMinLevel, EvictionConfig, FullPolicy, Named, Persistence, PersistenceMode,
};
pub use disk::{Backfill, BackfillFacts, BackfillOrder};
pub use disk::{FreezeError, FrozenBucket, FrozenEntry};
pub use memory::inflated;
pub use memory::{MEMORY_QUOTA_BYTES_MIN, MEMORY_RATIOS_RANGE, MemoryParameter, QuotaError};
pub use operations::{
    Addition, Concatenated, CopyRole, Counter, CounterRequest, Expecting, ForeignKind,
    ForeignVersion, InFile, Incoming, Observed, ObservedState, PathMutation, PathsChanged,
    PathsRefused, Placement, Version, Write, body_of,
};
pub use roles::{LifeError, NewRole, ResetLoss};
pub use scan::{
    KeyRange, OpenScan, PortionEnd, RangeScanStatistics, ScanContent, ScanId, ScanLimits,
    ScanRefused, ScanRequest, ScanSampling, ScanSink, ScanSnapshot, ScanTurn,
};
pub use start::{
    DirectoryCheck, DirectoryState, OpenError, OriginalBucket, RestoredBucket, SETTINGS_NAME,
    WarmupPhase, WarmupProgress, check_directory, check_journal, describe_restored,
    directory_state, is_bucket_directory, is_described, is_taken_over, look_at_original,
    mark_deleted, remove_remains, unmark_deleted,
};
pub use state_statistics::StateStatistics;
pub use statistics::BucketStatistics;
pub use storage::{Remains, StorageError};
pub use vbucket::eviction::EvictionPolicy;
pub use vbucket::{FutureCas, Topology};
