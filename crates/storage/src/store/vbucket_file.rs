//! One vBucket's file: a batch into it, items and state out of it.

use std::ops::ControlFlow;
use std::sync::Arc;

use document::{Item, Key, Seqno};

use crate::couchstore::{Commit, CouchFile, FileHeader, LocalEdit, PreparedCommit, Scratch};
use crate::error::StorageError;
use crate::records::collection_statistics::CollectionChanges;
use crate::records::disk_document;
use crate::records::dropped_collections::DropChanges;
use crate::records::prepares::PrepareChanges;
use crate::records::vbucket_record::{VBSTATE, VbucketRecord};
use crate::store::flush_batch::Applied;

/// A state of a file that stays readable, whatever is committed after it.
pub(crate) struct Snapshot {
    pub(crate) file: Arc<CouchFile>,
    pub(crate) header: FileHeader,
}

/// What goes to a file in one commit.
#[derive(Clone, Copy)]
pub(crate) struct FileBatch<'a> {
    /// As [`crate::FlushBatch::items`].
    pub(crate) items: &'a [Item],
    /// The state as of the last of the items.
    pub(crate) state: &'a VbucketRecord,
}

/// A commit that is not to count.
#[derive(Debug)]
pub(crate) struct FailedCommit {
    /// Why.
    pub(crate) error: StorageError,
    /// Whether a start may take it for one that succeeded.
    pub(crate) may_be_found: bool,
}

/// Memory that the commits of one call share and that is released after it.
pub(crate) struct CommitBuffers {
    pub(crate) output: Vec<u8>,
    pub(crate) scratch: Scratch,
}

/// What a scan came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanReport {
    /// The highest seqno of the state that was scanned: a consistent snapshot ends there.
    pub high_seqno: Seqno,
}

impl From<StorageError> for FailedCommit {
    fn from(error: StorageError) -> Self {
        Self { error, may_be_found: false }
    }
}

impl From<FailedCommit> for StorageError {
    fn from(failed: FailedCommit) -> Self {
        failed.error
    }
}

impl CommitBuffers {
    pub(crate) fn new() -> Self {
        Self { output: Vec::new(), scratch: Scratch::new() }
    }

    pub(crate) fn parts(&mut self) -> (&mut Vec<u8>, &mut Scratch) {
        (&mut self.output, &mut self.scratch)
    }
}

/// Commits a batch on top of `before`, or as the first of a file if that is `None`. Of an attempt
/// that fails before its header counts nothing stays: attempts do not fill the disk.
pub(crate) fn write(
    file: &CouchFile,
    before: Option<&FileHeader>,
    batch: FileBatch<'_>,
    timestamp: u64,
    buffers: &mut CommitBuffers,
) -> Result<(FileHeader, Applied), FailedCommit> {
    let size = file.size()?;
    let prepared = prepare(file, before, batch, timestamp, buffers);
    if prepared.is_err() {
        file.cut_behind(size);
    }
    let (commit, mut report) = prepared?;
    let switched = commit.switch_on(file);
    let (header, bytes_written) =
        switched.map_err(|error| FailedCommit { error, may_be_found: true })?;
    report.bytes_written = bytes_written;
    Ok((header, report))
}

/// The commit without its last step.
fn prepare(
    file: &CouchFile,
    before: Option<&FileHeader>,
    batch: FileBatch<'_>,
    timestamp: u64,
    buffers: &mut CommitBuffers,
) -> Result<(PreparedCommit, Applied), StorageError> {
    let CommitBuffers { output, scratch } = buffers;
    let nothing = FileHeader::empty();
    let mut commit = match before {
        Some(before) => Commit::begin(file, before, output, scratch)?,
        None => Commit::begin_first(file, output, scratch)?,
    };
    let mut report = Applied::default();
    let mut collections = CollectionChanges::default();
    let mut prepares = PrepareChanges::default();
    let mut drops = DropChanges::default();
    commit.save(batch.items.iter().map(disk_document::from_item), |old, new| {
        match old {
            _ if new.deleted => report.deletes += 1,
            Some(old) if !old.deleted => report.updates += 1,
            _ => report.inserts += 1,
        }
        collections.note(old, new);
        prepares.note(old, new);
        drops.note(old, new);
    })?;
    let mut reader = file.reader(before.unwrap_or(&nothing));
    let mut state = batch.state.clone();
    prepares.apply(&mut reader, &mut state)?;
    let mut edits = collections.into_edits(&mut reader)?;
    edits.extend(drops.into_edit(&mut reader)?);
    edits.push(LocalEdit { id: VBSTATE.to_vec(), content: Some(state.encode()) });
    commit.save_local(edits)?;
    commit.note_purged(state.purge_seqno.0);
    let commit = commit.prepare(timestamp)?;
    let header = commit.header();
    report.high_seqno = Seqno(header.high_seqno);
    report.document_count = state.document_count;
    report.documents = header.alive_count().saturating_sub(state.on_disk_prepares);
    report.tombstones = batch.items.iter().filter(|item| item.is_deleted()).cloned().collect();
    Ok((commit, report))
}

impl Snapshot {
    /// The vBucket's state; `None` in a file without one.
    pub(crate) fn record(&self) -> Result<Option<VbucketRecord>, StorageError> {
        let Some(text) = self.file.reader(&self.header).local(VBSTATE)? else { return Ok(None) };
        match VbucketRecord::decode(&text, Seqno(self.header.high_seqno)) {
            Some(record) => Ok(Some(record)),
            None => {
                let what = "the vBucket state is not understood";
                Err(StorageError::corrupt(self.file.path(), self.header.position, what))
            }
        }
    }

    /// The items under `keys`, tombstones included, in their order.
    pub(crate) fn get(&self, keys: &[Key<'_>]) -> Result<Vec<Option<Item>>, StorageError> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        // The tree is read in one pass, in the order of keys, each key once.
        order.sort_unstable_by_key(|index| keys[*index]);
        let mut ids: Vec<&[u8]> = order.iter().map(|index| keys[*index].encoded()).collect();
        ids.dedup();
        let mut found = Vec::with_capacity(ids.len());
        self.file.reader(&self.header).get(&ids, |_, info, bodies| {
            let item = info.map(|info| disk_document::to_item(info, bodies, true));
            found.push(item.transpose()?);
            Ok(())
        })?;
        let mut items = vec![None; keys.len()];
        let mut at = 0;
        for index in order {
            if ids[at] != keys[index].encoded() {
                at += 1;
            }
            items[index] = found[at].clone();
        }
        Ok(items)
    }

    /// Visits the items from a seqno on, prepares and aborts included, in the order of their
    /// seqnos.
    pub(crate) fn scan(
        &self,
        from: Seqno,
        with_values: bool,
        mut visit: impl FnMut(Item) -> ControlFlow<()>,
    ) -> Result<ScanReport, StorageError> {
        let high_seqno = Seqno(self.header.high_seqno);
        let mut reader = self.file.reader(&self.header);
        let _flow = reader.scan_by_seqno(from.0, |info, bodies| {
            if info.seqno > high_seqno.0 {
                let what = "a document is newer than its header";
                return Err(StorageError::corrupt(self.file.path(), self.header.position, what));
            }
            Ok(visit(disk_document::to_item(info, bodies, with_values)?))
        })?;
        Ok(ScanReport { high_seqno })
    }
}
