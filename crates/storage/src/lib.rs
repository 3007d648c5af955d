//! Couchstore files: what is on disk, and the store of a bucket over it.
//!
//! [`couchstore`] is the format and knows nothing of vBuckets. Above it stand the items and
//! vBucket states of a bucket ([`VbucketRecord`], [`CollectionStatistics`])
//! and the [`Store`], which keeps one file a vBucket. The [`journal`] is durable before them.

mod apply;
mod backlog;
mod collection_statistics;
mod compaction;
pub mod couchstore;
mod disk_document;
mod document_view;
mod doubt;
mod dropped_collections;
mod error;
mod file_view;
mod flush_batch;
pub mod fuzzing;
pub mod journal;
mod journal_note;
mod journalled;
mod open_files;
mod prepares;
mod replay;
mod replayed;
mod rollback;
mod room;
mod set_aside;
mod start_up;
mod store;
mod vbucket_file;
mod vbucket_record;
mod verify;
mod witness;

pub use backlog::{BacklogUsage, Unapplied};
pub use collection_statistics::CollectionStatistics;
pub use compaction::{
    CompactionObserver, CompactionOutcome, CompactionPace, CompactionPhase, CompactionProgress,
    CompactionReport, CompactionRequest, DamagedBodies, DamagedBody, FrozenFacts, FrozenVbucket,
    Purged,
};
pub use document_view::{
    BodyView, DocumentView, MetadataView, Operation, Order, Selection, documents,
};
pub use dropped_collections::DroppedCollection;
pub use error::StorageError;
pub use file_view::FileView;
pub use flush_batch::{Applied, CommitReport, FlushBatch};
pub use journal::{JournalOptions, JournalUsage};
pub use rollback::{Rewind, RollbackPlan, RolledBack};
pub use set_aside::Remains;
pub use start_up::{FoundVbucket, IgnoredFile, LastStop, StartReport, WhyIgnored};
pub use store::{FileSizes, Store, StoreOptions};
pub use vbucket_file::ScanReport;
pub use vbucket_record::{CheckpointType, FailoverEntry, JournalPosition, VBSTATE, VbucketRecord};
pub use verify::{Finding, Scope, Severity, Verification, verify_file};
pub use witness::{Witness, Witnesses};
