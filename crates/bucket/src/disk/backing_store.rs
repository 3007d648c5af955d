//! What stands behind the memory of a bucket: files, or nothing.
//!
//! An ephemeral bucket runs the same tasks as one with files. What its flusher hands over is done
//! with as soon as it arrives, because memory has it; so logs shrink as they do elsewhere. There is
//! never anything to read back: nothing leaves memory that could be wanted again.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use document::{CollectionId, Item, Key, Seqno, Vbid};
use platform::{DiskSpace, Files};
use storage::VbucketRecord;
use storage::{
    Applied, BacklogUsage, CommitReport, CompactionObserver, CompactionOutcome, CompactionProgress,
    CompactionRequest, FileSizes, FileView, FlushBatch, FrozenVbucket, JournalUsage, KeyView,
    LastStop, Remains, ScanReport, StartReport, StorageError, Store, StoreOptions, Unapplied,
    Witnesses,
};
use storage::{Rewind, RollbackPlan};

use crate::config::BucketType;

/// Where flushed documents go.
pub(crate) enum BackingStore {
    /// To a file for each vBucket.
    Files(Box<Store>),
    /// Nowhere: memory is all there is.
    Memory,
}

impl BackingStore {
    /// Opens what a bucket of this type has in `directory`, and says what was found.
    pub(crate) fn open(
        bucket_type: BucketType,
        files: &Arc<dyn Files>,
        directory: &Path,
        options: StoreOptions,
        last_stop: &LastStop,
    ) -> Result<(Self, StartReport), StorageError> {
        match bucket_type {
            BucketType::Couchbase => {
                let (store, report) =
                    Store::open_after(Arc::clone(files), directory, options, last_stop)?;
                Ok((Self::Files(Box::new(store)), report))
            }
            BucketType::Ephemeral => Ok((Self::Memory, StartReport::default())),
        }
    }

    /// Whether it looks at the items of a batch.
    pub(crate) fn keeps_items(&self) -> bool {
        matches!(self, Self::Files(_))
    }

    /// See [`Store::commit`].
    pub(crate) fn commit(
        &self,
        batches: Vec<FlushBatch>,
        mut report: impl FnMut(Vbid, Result<CommitReport, StorageError>),
    ) {
        match self {
            Self::Files(store) => store.commit(batches, report),
            Self::Memory => {
                for batch in batches {
                    report(batch.vbid, Ok(CommitReport::default()));
                }
            }
        }
    }

    /// See [`Store::get`].
    pub(crate) fn get(
        &self,
        vbid: Vbid,
        keys: &[Key<'_>],
    ) -> Result<Vec<Option<Item>>, StorageError> {
        match self {
            Self::Files(store) => store.get(vbid, keys),
            Self::Memory => Ok(vec![None; keys.len()]),
        }
    }

    /// See [`Store::scan`].
    pub(crate) fn scan(
        &self,
        vbid: Vbid,
        from: Seqno,
        with_values: bool,
        visit: impl FnMut(Item) -> ControlFlow<()>,
    ) -> Result<ScanReport, StorageError> {
        match self {
            Self::Files(store) => store.scan(vbid, from, with_values, visit),
            Self::Memory => Ok(ScanReport::default()),
        }
    }

    /// See [`Store::view`].
    pub(crate) fn view(&self, vbid: Vbid) -> Result<Option<FileView>, StorageError> {
        match self {
            Self::Files(store) => store.view(vbid),
            Self::Memory => Ok(None),
        }
    }

    /// See [`Store::key_view`].
    pub(crate) fn key_view(&self, vbid: Vbid) -> Result<KeyView, StorageError> {
        match self {
            Self::Files(store) => store.key_view(vbid),
            Self::Memory => Ok(KeyView::default()),
        }
    }

    /// See [`Store::unapplied_bytes`].
    pub(crate) fn unapplied_bytes(&self, vbid: Vbid) -> u64 {
        match self {
            Self::Files(store) => store.unapplied_bytes(vbid),
            Self::Memory => 0,
        }
    }

    /// See [`Store::plan_rollback`]. Memory does not know what was before.
    pub(crate) fn plan_rollback(
        &self,
        vbid: Vbid,
        seqno: Seqno,
    ) -> Result<RollbackPlan, StorageError> {
        match self {
            Self::Files(store) => store.plan_rollback(vbid, seqno),
            Self::Memory => Ok(RollbackPlan::Reset),
        }
    }

    /// See [`Store::rewind`].
    pub(crate) fn rewind(&self, rewind: &Rewind) -> Result<bool, StorageError> {
        match self {
            Self::Files(store) => store.rewind(rewind),
            Self::Memory => Ok(false),
        }
    }

    /// See [`Store::reset`].
    pub(crate) fn reset(&self, vbid: Vbid, record: &VbucketRecord) -> Result<(), StorageError> {
        match self {
            Self::Files(store) => store.reset(vbid, record),
            Self::Memory => Ok(()),
        }
    }

    /// See [`Store::delete`].
    pub(crate) fn delete(&self, vbid: Vbid) -> Result<(), StorageError> {
        match self {
            Self::Files(store) => store.delete(vbid),
            Self::Memory => Ok(()),
        }
    }

    /// See [`Store::state`].
    pub(crate) fn state(&self, vbid: Vbid) -> Result<Option<VbucketRecord>, StorageError> {
        match self {
            Self::Files(store) => store.state(vbid),
            Self::Memory => Ok(None),
        }
    }

    /// See [`Store::revision`].
    pub(crate) fn revision(&self, vbid: Vbid) -> u64 {
        match self {
            Self::Files(store) => store.revision(vbid),
            Self::Memory => 0,
        }
    }

    /// See [`Store::raise_revision`].
    pub(crate) fn raise_revision(&self, vbid: Vbid, revision: u64) {
        if let Self::Files(store) = self {
            store.raise_revision(vbid, revision);
        }
    }

    /// See [`Store::distrust`].
    pub(crate) fn distrust(&self, vbid: Vbid) {
        if let Self::Files(store) = self {
            store.distrust(vbid);
        }
    }

    /// See [`Store::remains`].
    pub(crate) fn remains(&self, vbid: Vbid) -> Remains {
        match self {
            Self::Files(store) => store.remains(vbid),
            Self::Memory => Remains::default(),
        }
    }

    /// See [`Store::delete_where`].
    pub(crate) fn delete_where(
        &self,
        wanted: impl Fn(Vbid) -> bool,
        gone: impl FnMut(Vbid),
    ) -> Result<(), StorageError> {
        match self {
            Self::Files(store) => store.delete_where(wanted, gone),
            Self::Memory => Ok(()),
        }
    }

    /// See [`Store::apply`].
    pub(crate) fn apply(&self, vbid: Vbid) -> Result<Option<Applied>, StorageError> {
        match self {
            Self::Files(store) => store.apply(vbid),
            Self::Memory => Ok(None),
        }
    }

    /// See [`Store::unapplied_items`].
    pub(crate) fn unapplied_items(&self, vbid: Vbid) -> Vec<Item> {
        match self {
            Self::Files(store) => store.unapplied_items(vbid),
            Self::Memory => Vec::new(),
        }
    }

    /// See [`Store::high_seqno`].
    pub(crate) fn high_seqno(&self, vbid: Vbid) -> Result<Seqno, StorageError> {
        match self {
            Self::Files(store) => store.high_seqno(vbid),
            Self::Memory => Ok(Seqno(0)),
        }
    }

    /// See [`Store::freeze`].
    pub(crate) fn freeze(&self, vbid: Vbid) -> Result<Option<FrozenVbucket>, StorageError> {
        match self {
            Self::Files(store) => store.freeze(vbid),
            Self::Memory => Ok(None),
        }
    }

    /// See [`Store::next_unapplied`].
    pub(crate) fn next_unapplied(&self, is_due: impl Fn(&Unapplied) -> bool) -> Option<Vbid> {
        match self {
            Self::Files(store) => store.next_unapplied(is_due),
            Self::Memory => None,
        }
    }

    /// See [`Store::unapplied_vbuckets`].
    pub(crate) fn unapplied_vbuckets(&self) -> Vec<Vbid> {
        match self {
            Self::Files(store) => store.unapplied_vbuckets(),
            Self::Memory => Vec::new(),
        }
    }

    /// See [`Store::backlog`].
    pub(crate) fn backlog(&self) -> BacklogUsage {
        match self {
            Self::Files(store) => store.backlog(),
            Self::Memory => BacklogUsage::default(),
        }
    }

    /// See [`Store::journal_usage`].
    pub(crate) fn journal_usage(&self) -> Option<JournalUsage> {
        match self {
            Self::Files(store) => store.journal_usage(),
            Self::Memory => None,
        }
    }

    /// See [`Store::prepare_journal`].
    pub(crate) fn prepare_journal(&self) -> Result<(), StorageError> {
        match self {
            Self::Files(store) => store.prepare_journal(),
            Self::Memory => Ok(()),
        }
    }

    /// See [`Store::trim_backlog`].
    pub(crate) fn trim_backlog(&self) {
        match self {
            Self::Files(store) => store.trim_backlog(),
            Self::Memory => {}
        }
    }

    /// See [`Store::carry_forward`].
    pub(crate) fn carry_forward(&self, is_full: bool) -> Result<(), StorageError> {
        match self {
            Self::Files(store) => store.carry_forward(is_full),
            Self::Memory => Ok(()),
        }
    }

    /// See [`Store::rest`].
    pub(crate) fn rest(&self) -> Result<(), StorageError> {
        match self {
            Self::Files(store) => store.rest(),
            Self::Memory => Ok(()),
        }
    }

    /// See [`Store::is_restless`].
    pub(crate) fn is_restless(&self) -> bool {
        match self {
            Self::Files(store) => store.is_restless(),
            Self::Memory => false,
        }
    }

    /// See [`Store::witnesses`].
    pub(crate) fn witnesses(&self, is_whole: impl Fn(Vbid) -> bool) -> Witnesses {
        match self {
            Self::Files(store) => store.witnesses(is_whole),
            Self::Memory => Witnesses::default(),
        }
    }

    /// See [`Store::give_memory_back`].
    pub(crate) fn give_memory_back(&self) {
        if let Self::Files(store) = self {
            store.give_memory_back();
        }
    }

    /// See [`Store::close_journal`].
    pub(crate) fn close_journal(&self) -> bool {
        match self {
            Self::Files(store) => store.close_journal(),
            Self::Memory => true,
        }
    }

    /// See [`Store::disk_space`]; `None` where nothing is on a disk, or the disk does not tell.
    pub(crate) fn disk_space(&self) -> Option<DiskSpace> {
        match self {
            Self::Files(store) => store.disk_space().ok(),
            Self::Memory => None,
        }
    }

    /// See [`Store::room_bytes`]. Memory has all of it.
    pub(crate) fn room_bytes(&self) -> u64 {
        match self {
            Self::Files(store) => store.room_bytes(),
            Self::Memory => u64::MAX,
        }
    }

    /// See [`Store::leave_room_for_flushes`].
    pub(crate) fn leave_room_for_flushes(&self, bytes: u64) {
        if let Self::Files(store) = self {
            store.leave_room_for_flushes(bytes);
        }
    }

    /// See [`Store::reserve_for_compaction`].
    pub(crate) fn reserve_for_compaction(&self, live_bytes_max: Option<u64>) {
        match self {
            Self::Files(store) => store.reserve_for_compaction(live_bytes_max),
            Self::Memory => {}
        }
    }

    /// See [`Store::file_sizes`].
    pub(crate) fn file_sizes(&self, vbid: Vbid) -> Result<FileSizes, StorageError> {
        match self {
            Self::Files(store) => store.file_sizes(vbid),
            Self::Memory => Ok(FileSizes::default()),
        }
    }

    /// See [`Store::compact`].
    pub(crate) fn compact(
        &self,
        vbid: Vbid,
        request: &CompactionRequest,
        progress: &CompactionProgress,
        observer: &dyn CompactionObserver,
    ) -> Result<CompactionOutcome, StorageError> {
        match self {
            Self::Files(store) => store.compact(vbid, request, progress, observer),
            Self::Memory => Ok(CompactionOutcome::NoFile),
        }
    }

    /// Bytes that a collection takes in a vBucket's file.
    pub(crate) fn collection_bytes(
        &self,
        vbid: Vbid,
        collection: CollectionId,
    ) -> Result<u64, StorageError> {
        match self {
            Self::Files(store) => Ok(store.collection_statistics(vbid, collection)?.disk_size),
            Self::Memory => Ok(0),
        }
    }

    /// Documents alive in a collection of a vBucket's file.
    pub(crate) fn collection_count(
        &self,
        vbid: Vbid,
        collection: CollectionId,
    ) -> Result<u64, StorageError> {
        match self {
            Self::Files(store) => Ok(store.collection_statistics(vbid, collection)?.item_count),
            Self::Memory => Ok(0),
        }
    }

    /// See [`Store::purge_seqno`].
    pub(crate) fn purge_seqno(&self, vbid: Vbid) -> Result<Seqno, StorageError> {
        match self {
            Self::Files(store) => store.purge_seqno(vbid),
            Self::Memory => Ok(Seqno(0)),
        }
    }
}
