//! A vBucket's file at one moment, read in portions.

use std::ops::ControlFlow;
use std::sync::Arc;

use document::{CollectionId, Item, Seqno};

use crate::error::StorageError;
use crate::records::dropped_collections::{self, DROPPED_COLLECTIONS, DroppedCollection};
use crate::records::vbucket_record::VbucketRecord;
use crate::records::{collection_statistics, disk_document};
use crate::store::vbucket_file::Snapshot;

/// One state of a file. It stays readable whatever is committed, compacted or deleted after it, and
/// keeps the file open until it is dropped.
pub struct FileView(Arc<Snapshot>);

impl FileView {
    pub(crate) fn new(snapshot: Arc<Snapshot>) -> Self {
        Self(snapshot)
    }

    /// The last seqno in it.
    pub fn high_seqno(&self) -> Seqno {
        Seqno(self.0.header.high_seqno)
    }

    /// Tombstones up to here may have been purged.
    pub fn purge_seqno(&self) -> Seqno {
        Seqno(self.0.header.purge_seqno)
    }

    /// The last seqno of a document of the collection.
    pub fn collection_high_seqno(&self, collection: CollectionId) -> Result<Seqno, StorageError> {
        let mut reader = self.0.file.reader(&self.0.header);
        let statistics = collection_statistics::read(&mut reader, collection)?;
        Ok(Seqno(statistics.high_seqno))
    }

    /// Collections that are dropped in it, and of which it may have documents from before that.
    pub fn dropped_collections(&self) -> Result<Vec<DroppedCollection>, StorageError> {
        let mut reader = self.0.file.reader(&self.0.header);
        let content = reader.local(DROPPED_COLLECTIONS)?;
        Ok(content.as_deref().and_then(dropped_collections::decode).unwrap_or_default())
    }

    /// What the vBucket remembers beside its documents.
    pub fn record(&self) -> Result<Option<VbucketRecord>, StorageError> {
        self.0.record()
    }

    /// How many items there are from a seqno on, prepares, aborts and tombstones included.
    pub fn item_count_from(&self, from: Seqno) -> Result<u64, StorageError> {
        self.0.file.reader(&self.0.header).count_from_seqno(from.0)
    }

    /// Visits items with their values from a seqno on, prepares and aborts included, until `visit`
    /// breaks.
    pub fn scan(
        &self,
        from: Seqno,
        visit: impl FnMut(Item) -> ControlFlow<()>,
    ) -> Result<(), StorageError> {
        self.0.scan(from, true, visit).map(drop)
    }

    /// The same in the order of encoded keys, from a key on.
    pub fn scan_by_key(
        &self,
        from: &[u8],
        mut visit: impl FnMut(Item) -> ControlFlow<()>,
    ) -> Result<(), StorageError> {
        let mut reader = self.0.file.reader(&self.0.header);
        let _flow = reader.scan_by_id(from, |info, bodies| {
            Ok(visit(disk_document::to_item(info, bodies, true)?))
        })?;
        Ok(())
    }
}
