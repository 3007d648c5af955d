//! Couchstore files: what is on disk, and the store of a bucket over it.
//!
//! [`couchstore`] is the format and knows nothing of vBuckets. Above it stand the items and
//! vBucket states of a bucket ([`VbucketRecord`], [`CollectionStatistics`])
//! and the [`Store`], which keeps one file a vBucket. The [`journal`] is durable before them.

mod behind;
mod compaction;
pub mod couchstore;
mod error;
pub mod fuzzing;
pub mod journal;
mod locks;
mod records;
mod removal;
mod store;
mod verify;

pub use behind::backlog::{BacklogUsage, Unapplied};
pub use behind::journal_note::{NOTE_NAME as JOURNAL_NOTE_NAME, check_journal_note};
pub use compaction::{
    CompactionObserver, CompactionOutcome, CompactionPace, CompactionPhase, CompactionProgress,
    CompactionReport, CompactionRequest, DamagedBodies, DamagedBody, FrozenFacts, FrozenVbucket,
    Purged,
};
pub use error::StorageError;
pub use journal::{JournalOptions, JournalUsage};
pub use records::collection_statistics::{CollectionStatistics, DocumentCounts};
pub use records::document_view::{
    BodyView, DocumentView, MetadataView, Order, Selection, StoredOperation, documents,
};
pub use records::dropped_collections::DroppedCollection;
pub use records::vbucket_record::{CheckpointType, JournalPosition, VBSTATE, VbucketRecord};
pub use store::file_view::FileView;
pub use store::flush_batch::{Applied, CommitReport, FlushBatch};
pub use store::key_view::{KeyView, KeyViewEntry};
pub use store::rollback::{Rewind, RollbackPlan, RolledBack};
pub use store::set_aside::Remains;
pub use store::start_up::{FoundVbucket, IgnoredFile, LastStop, StartReport, WhyIgnored};
pub use store::vbucket_file::ScanReport;
pub use store::witness::{Witness, Witnesses};
pub use store::{FileSizes, Store, StoreOptions};
pub use verify::{Finding, Scope, Severity, Verification, verify_file};
