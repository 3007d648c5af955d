//! What the REST port needs to know of a bucket.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use cluster::{BucketMap, PendingVbucket, Revision};
use document::{CollectionId, HistogramSnapshot, Manifest, ManifestEdit, ManifestError};

use crate::observed::{HotKeys, SlowOperationFacts};
use crate::shown_document::{
    DocumentError, DocumentId, KeyPage, KeyQuery, NewDocument, ShownDocument,
};

/// A bucket of the node, as the REST port sees it. Calls come from several threads, must not wait
/// for disks or locks held long ([`BucketView::flush`] may), and must not panic.
pub trait BucketView: Send + Sync {
    /// Its name, and where its documents are.
    fn map(&self) -> BucketMap;

    /// The vBuckets that are not yet what the plan says, in order. The node tries them again.
    fn pending_vbuckets(&self) -> Vec<PendingVbucket>;

    /// The copies that are filled and do not have yet what others hold, in order.
    fn incomplete_vbuckets(&self) -> Vec<u16>;

    /// The bucket in figures.
    fn facts(&self) -> BucketFacts;

    /// How far it is read back into memory.
    fn warmup(&self) -> Warmup;

    /// Removes every document. Returns when they are gone; may take seconds.
    fn flush(&self) -> Result<(), FlushError>;

    /// Has its files compacted, behind the caller's back, on all nodes of the cluster. Has a thread
    /// of its own and may take as long as nodes do not answer.
    fn compact(&self) -> Result<(), CompactionError>;

    /// Stops compactions that are under way or wait, in the same way.
    fn cancel_compactions(&self) -> Result<(), CompactionError>;

    /// As [`BucketView::compact`], of this node alone, and at once.
    fn compact_here(&self) -> Result<(), CompactionError>;

    /// As [`BucketView::cancel_compactions`], of this node alone, and at once.
    fn cancel_compactions_here(&self);

    /// Holds the files of the vBuckets that are active here as they are, for a backup. Has a thread
    /// of its own and may take as long as the files are behind what was acknowledged.
    fn begin_backup(&self) -> Result<Box<dyn BackupSource>, BackupError>;

    /// The vBuckets whose files are damaged, in order.
    fn damaged_vbuckets(&self) -> Vec<DamagedVbucket>;

    /// Says, for people, what a damaged vBucket would lose by beginning anew. Has a thread of its
    /// own and may read files.
    fn reset_loss(&self, vbid: u16) -> Result<String, ResetError>;

    /// Has a damaged vBucket begin anew, without what is lost. Has a thread of its own and may take
    /// seconds.
    fn reset_vbucket(&self, vbid: u16) -> Result<(), ResetError>;

    /// The vBuckets that this node has loaded, in order.
    fn vbuckets(&self) -> Vec<VbucketFacts>;

    /// How long its commands and its background work take.
    fn timings(&self) -> Vec<Timing>;

    /// What was slow, the newest first.
    fn slow_operations(&self) -> Vec<SlowOperationFacts>;

    /// What was asked for most in the last sampling.
    fn hot_keys(&self) -> HotKeys;

    /// Keys of live documents that are durable on this node. Has a thread of its own and reads
    /// files.
    fn document_keys(&self, query: &KeyQuery) -> Result<KeyPage, DocumentError>;

    /// A live document. Has a thread of its own and may wait for a file.
    fn read_document(&self, id: DocumentId<'_>) -> Result<ShownDocument, DocumentError>;

    /// Stores a document, as durably as the bucket demands, and keeps the expiry of the version
    /// that it replaces. Returns the new version's CAS. Has a thread of its own and may wait for
    /// other nodes.
    fn write_document(
        &self,
        id: DocumentId<'_>,
        document: &NewDocument<'_>,
    ) -> Result<u64, DocumentError>;

    /// Deletes a document, if it has that CAS; 0 stands for any. Has a thread of its own and may
    /// wait for other nodes.
    fn delete_document(&self, id: DocumentId<'_>, cas: u64) -> Result<(), DocumentError>;

    /// Live documents of the vBuckets that are active here, by collection; those without any may be
    /// left out.
    fn collection_items(&self) -> BTreeMap<CollectionId, u64>;

    /// Which scopes and collections it has.
    fn manifest(&self) -> Arc<Manifest>;

    /// Changes which it has, on all nodes. Has a thread of its own and may take seconds.
    fn edit_manifest(&self, edit: ManifestEdit<'_>) -> Result<Arc<Manifest>, ManifestEditError>;
}

/// Why scopes and collections are as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestEditError {
    /// What is asked for cannot be.
    Refused(ManifestError),
    /// Clients may try again. The text is for people.
    Failed(String),
}

/// A vBucket as this node has it.
#[derive(Clone, Copy, Debug)]
pub struct VbucketFacts {
    /// Which.
    pub vbid: u16,
    /// `active`, `replica`, `pending` or `dead`.
    pub state: &'static str,
    /// Live documents.
    pub items: u64,
    /// Those of them whose values are on disk alone.
    pub non_resident_items: u64,
    /// The last change.
    pub high_seqno: u64,
    /// The last change that is durable here.
    pub persisted_seqno: u64,
    /// Changes that wait to become durable here.
    pub unflushed_items: u64,
    /// Changes that the copy that is the furthest behind does not have yet; `None` where no other
    /// node copies it from here.
    pub replication_lag: Option<u64>,
}

/// How long something takes, or how much it is of.
#[derive(Clone, Debug)]
pub struct Timing {
    /// As `settee timings` has it.
    pub name: &'static str,
    /// What the values are.
    pub unit: TimingUnit,
    /// The values since the start, or since somebody has reset them.
    pub values: HistogramSnapshot,
}

/// What the values of a histogram are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingUnit {
    /// Durations.
    Nanoseconds,
    /// Durations.
    Microseconds,
    /// How many of something.
    Count,
}

/// A vBucket whose file is damaged.
#[derive(Clone, Debug)]
pub struct DamagedVbucket {
    /// Which.
    pub vbid: u16,
    /// What it cannot do, in words.
    pub kind: &'static str,
    /// What is wrong with its file.
    pub reason: String,
}

/// Why a vBucket does not begin anew. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResetError {
    /// It is not here.
    NotHere(String),
    /// There is no reason to, or another way out.
    Refused(String),
    /// Clients may try again.
    Failed(String),
}

/// Takes the bytes of a backup, in order. An error ends the writing.
pub type BackupSink = Box<dyn FnMut(&[u8]) -> io::Result<()> + Send>;

/// A bucket's files as they were at one moment. Dropping it lets go of them.
pub trait BackupSource: Send + Sync {
    /// What there is.
    fn catalogue(&self) -> BackupCatalogue;

    /// Gives `sink` the file of a vBucket, once; otherwise says why not. Has a thread of its own.
    fn write(&self, vbid: u16, sink: BackupSink) -> Result<(), String>;
}

/// What is in a backup. Each vBucket of the bucket is in one of the lists.
#[derive(Clone, Debug)]
pub struct BackupCatalogue {
    /// The version of the map that says what is active here.
    pub revision: Revision,
    /// The vBuckets that are active here and have files, in order.
    pub vbuckets: Vec<BackupVbucket>,
    /// The vBuckets that were deleted, in order.
    pub deleted: Vec<u16>,
    /// The vBuckets that never had anything to be in a file, in order.
    pub empty: Vec<u16>,
    /// The vBuckets that are not active here by the map, in order: this backup has nothing of them.
    pub elsewhere: Vec<u16>,
    /// The manifest of scopes and collections, with which ids come next, as JSON. None that a
    /// vBucket of the backup follows is newer, but of those that are late.
    pub collections: String,
    /// The settings that are kept of the bucket, as name and value.
    pub settings: BTreeMap<String, String>,
    /// How far the moments of the files lie apart.
    pub took: Duration,
}

/// One vBucket of a backup.
#[derive(Clone, Debug)]
pub struct BackupVbucket {
    /// Which.
    pub vbid: u16,
    /// Names its state: letters, digits and hyphens. The same state gives the same bytes.
    pub state: String,
    /// Bytes that it will have, about.
    pub bytes: u64,
    /// Whether its moment is that of its reading.
    pub is_late: bool,
}

/// Why there is no backup. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupError {
    /// There never will be one.
    Impossible(String),
    /// The map is being carried out: clients may read it, and try again.
    MapChanges(String),
    /// Clients may try again.
    Failed(String),
}

/// The bucket in figures.
#[derive(Clone, Copy, Debug, Default)]
pub struct BucketFacts {
    /// Memory that the bucket may use.
    pub quota_bytes: u64,
    /// Memory that it uses.
    pub memory_used_bytes: u64,
    /// Bytes of keys and values that it holds.
    pub data_used_bytes: u64,
    /// Bytes of its files.
    pub disk_used_bytes: u64,
    /// Live documents of vBuckets that are active on this node.
    pub active_items: u64,
    /// Those of them whose value is only in a file.
    pub active_non_resident_items: u64,
    /// Live documents of its replicas.
    pub replica_items: u64,
    /// Live documents of all vBuckets, whatever their role.
    pub all_items: u64,
    /// Operations of its clients in the last second.
    pub operations_per_second: f64,
    /// Reads of its clients in the last second.
    pub gets_per_second: f64,
    /// Those of them that found a document.
    pub get_hits_per_second: f64,
    /// Documents read from disk on behalf of clients in the last second.
    pub disk_fetches_per_second: f64,
    /// Copies beside the active one that a cluster of enough nodes has.
    pub replica_number: usize,
    /// Whether [`BucketView::flush`] would do it.
    pub flush_enabled: bool,
    /// The type, storage and eviction of the bucket.
    pub kind: BucketKind,
    /// What happens to compressed values: `off`, `passive` or `active`.
    pub compression_mode: &'static str,
    /// How durable every write is at least, as clients of the original read it: `none`, `majority`,
    /// `majorityAndPersistActive` or `persistToMajority`.
    pub durability_level_min: &'static str,
    /// The longest life of a document whose collection says nothing of it; 0: none.
    pub max_ttl_seconds: u32,
    /// Which version of a document wins: `seqno`, `lww` or `custom`.
    pub conflict_resolution: &'static str,
}

/// What kind of bucket it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BucketKind {
    /// Keys are in memory and on disk, and values where there is room.
    #[default]
    Couchbase,
    /// Documents are on disk, and those that are used in memory.
    FullEviction,
    /// Documents are in memory alone; when it is full, some are deleted.
    EphemeralAutoDelete,
    /// Documents are in memory alone; when it is full, new ones are refused.
    EphemeralFailNewData,
}

/// How far the bucket is read back into memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warmup {
    /// Whether the node serves all documents.
    pub is_finished: bool,
    /// Documents read so far.
    pub items_loaded: u64,
    /// Documents that there are to read, as far as is known.
    pub items_expected: u64,
}

/// Why nothing was removed, or not all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlushError {
    /// The operator did not enable it. Clients show this to the user.
    Disabled,
    /// Clients may try again. The text is for people.
    Failed(String),
}

/// Why files are not compacted, or go on being. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompactionError {
    /// There are none, and never will be.
    Impossible(String),
    /// Some nodes have not heard of it. Clients may try again.
    Failed(String),
}

impl Warmup {
    /// How far all of several buckets are together.
    pub fn of_all(buckets: impl Iterator<Item = Self>) -> Self {
        let none = Self { is_finished: true, items_loaded: 0, items_expected: 0 };
        buckets.fold(none, |sum, bucket| Self {
            is_finished: sum.is_finished && bucket.is_finished,
            items_loaded: sum.items_loaded + bucket.items_loaded,
            items_expected: sum.items_expected + bucket.items_expected,
        })
    }

    /// The part that is done, 0 to 1.
    pub fn progress(&self) -> f64 {
        if self.is_finished {
            return 1.0;
        }
        let expected = self.items_expected.max(1) as f64;
        (self.items_loaded as f64 / expected).min(1.0)
    }

    /// The node's status, in the word that clients wait for: `healthy`, before that `warmup`.
    pub fn status(&self) -> &'static str {
        if self.is_finished { "healthy" } else { "warmup" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_warm_when_all_its_buckets_are() {
        let warm = Warmup { is_finished: true, items_loaded: 5, items_expected: 5 };
        let cold = Warmup { is_finished: false, items_loaded: 1, items_expected: 3 };
        let all = Warmup { is_finished: false, items_loaded: 6, items_expected: 8 };
        assert_eq!(Warmup::of_all([warm, cold].into_iter()), all);
        assert_eq!(Warmup::of_all([warm].into_iter()), warm);
        assert!(Warmup::of_all(std::iter::empty()).is_finished);
    }

    #[test]
    fn progress_is_a_part_of_one_whatever_is_expected() {
        let warmup = |is_finished, items_loaded, items_expected| Warmup {
            is_finished,
            items_loaded,
            items_expected,
        };
        for (warmup, progress) in [
            (warmup(false, 0, 0), 0.0),
            (warmup(false, 50, 200), 0.25),
            (warmup(false, 300, 200), 1.0),
            (warmup(true, 0, 0), 1.0),
        ] {
            assert_eq!(warmup.progress(), progress, "{warmup:?}");
        }
    }
}
