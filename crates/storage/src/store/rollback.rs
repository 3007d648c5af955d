//! Going back: a vBucket's file as it was at an earlier seqno, or empty.
//!
//! A file remembers the states that it was in as long as it is not compacted. Going back commits
//! the roots of an earlier one as a new header at the end. What was written since stays in the file
//! as garbage, and history passes over it.

use std::ops::ControlFlow;
use std::sync::Arc;

use document::{Item, Seqno, Vbid};
use platform::OpenMode;

use crate::couchstore::{Commit, CouchFile, FileHeader, LocalEdit, layout};
use crate::error::StorageError;
use crate::locks::lock;
use crate::records::vbucket_record::{JournalPosition, VBSTATE, VbucketRecord};
use crate::removal::remove_if_there;
use crate::store::Store;
use crate::store::open_files::Entry;
use crate::store::vbucket_file::{self, CommitBuffers, FileBatch, ScanReport, Snapshot};

/// How a vBucket can get back to a seqno.
pub enum RollbackPlan {
    /// To this state of its file.
    Rewind(Box<Rewind>),
    /// Not by its file, or not for less than receiving everything again: [`Store::reset`].
    Reset,
}

/// What came of a rollback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolledBack {
    /// The file is as it was at this seqno: the one that was asked for, or a lower one.
    To(Seqno),
    /// The file is unchanged and has to be reset.
    Reset,
}

/// A state that a vBucket's file was in, and can be in again.
pub struct Rewind {
    vbid: Vbid,
    revision: u64,
    from: Arc<Snapshot>,
    to: Snapshot,
    /// What the file is to remember then. The role, those who hold durable writes and the branches
    /// of history are the present ones; the caller may know newer ones.
    pub record: VbucketRecord,
}

impl Rewind {
    /// The highest seqno of that state.
    pub fn high_seqno(&self) -> Seqno {
        Seqno(self.to.header.high_seqno)
    }

    /// Documents alive in that state, prepares left out.
    pub fn item_count(&self) -> u64 {
        self.to.header.alive_count().saturating_sub(self.record.on_disk_prepares)
    }

    /// Visits the items of that state as [`Store::scan`] does those of the present one.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn scan(
        &self,
        from: Seqno,
        with_values: bool,
        visit: impl FnMut(Item) -> ControlFlow<()>,
    ) -> Result<ScanReport, StorageError> {
        self.to.scan(from, with_values, visit)
    }

    /// Whether the file is in that state now: there is nothing to commit.
    pub fn is_present(&self) -> bool {
        self.to.header.position == self.from.header.position
    }
}

impl Store {
    /// Goes back to the newest state of a vBucket's file that holds nothing above `seqno`. After an
    /// error the file is as it was, or that of the earlier state if the power goes.
    ///
    /// # Errors
    /// Those of reading and writing the file. Try again.
    pub fn rollback(&self, vbid: Vbid, seqno: Seqno) -> Result<RolledBack, StorageError> {
        loop {
            let RollbackPlan::Rewind(rewind) = self.plan_rollback(vbid, seqno)? else {
                return Ok(RolledBack::Reset);
            };
            if self.rewind(&rewind)? {
                return Ok(RolledBack::To(rewind.high_seqno()));
            }
        }
    }

    /// Finds the state that a rollback to `seqno` goes back to. Changes nothing, but for a running
    /// compaction of the file, which is told to end: it would forget that state.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn plan_rollback(&self, vbid: Vbid, seqno: Seqno) -> Result<RollbackPlan, StorageError> {
        let Some(entry) = self.entry(vbid) else { return Ok(RollbackPlan::Reset) };
        entry.abort_compaction();
        let _writing = lock(&entry.writer);
        let Some(from) = self.snapshot_of(&entry)? else { return Ok(RollbackPlan::Reset) };
        let revision = lock(&entry.handle).revision;
        let Some(header) = state_at(&from, seqno)? else { return Ok(RollbackPlan::Reset) };
        let to = Snapshot { file: from.file.clone(), header };
        let then = match to.record() {
            // A state that cannot be read is none to go back to.
            Err(StorageError::Corrupt { .. }) => None,
            then => then?,
        };
        let (Some(now), Some(then)) = (from.record()?, then) else {
            return Ok(RollbackPlan::Reset);
        };
        let record = rewound_record(then, &now, Seqno(to.header.high_seqno));
        Ok(RollbackPlan::Rewind(Box::new(Rewind { vbid, revision, from, to, record })))
    }

    /// Makes the planned state the present one, durably. `false`: the file has changed since it was
    /// planned; plan again. After an error the file is as it was, or that of the earlier state if
    /// the power goes.
    ///
    /// # Errors
    /// Those of writing the file. Try again.
    pub fn rewind(&self, rewind: &Rewind) -> Result<bool, StorageError> {
        let entry = self.entry_or_new(rewind.vbid);
        let _writing = lock(&entry.writer);
        entry.abort_compaction();
        self.make_name_sure(&entry)?;
        let Some(now) = self.snapshot_of(&entry)? else { return Ok(false) };
        let revision = lock(&entry.handle).revision;
        if revision != rewind.revision || now.header.position != rewind.from.header.position {
            return Ok(false);
        }
        if rewind.is_present() {
            self.end_history()?;
            return Ok(true);
        }
        let journal = self.begin_rollback(&entry, rewind.high_seqno(), &rewind.record)?;
        let record = VbucketRecord { journal, ..rewind.record.clone() };
        match self.commit_rewound(rewind, &record) {
            Ok(header) => {
                let mut handle = lock(&entry.handle);
                handle.note_committed(rewind.vbid, &header, &record);
                handle.snapshot = Some(Arc::new(Snapshot { file: now.file.clone(), header }));
                drop(handle);
                // Once more, for one that has begun since with the state before: headers in front
                // of version 14 do not tell it that history has gone back.
                entry.abort_compaction();
                Ok(true)
            }
            Err(error) => {
                self.close(&entry);
                lock(&entry.handle).doubts.has_header = true;
                Err(error)
            }
        }
    }

    /// What was not acknowledged of the history that ends now is not found by a replay.
    fn end_history(&self) -> Result<(), StorageError> {
        self.journalled.as_ref().map_or(Ok(()), |journalled| journalled.settle())
    }

    /// Says in the journal that the vBucket's file goes back to `seqno`, and gives the place of
    /// that in the journal. Whoever finds the file there knows that it has; whoever does not find
    /// the file knows what of the journal is no part of its history. Without a journal the file's
    /// own place stays.
    fn begin_rollback(
        &self,
        entry: &Arc<Entry>,
        seqno: Seqno,
        record: &VbucketRecord,
    ) -> Result<Option<JournalPosition>, StorageError> {
        // A file that went back has less than this.
        lock(&entry.handle).witness = None;
        match &self.journalled {
            Some(journalled) => journalled.roll_back(entry.vbid, seqno, record).map(Some),
            None => Ok(self.present_record(entry)?.and_then(|record| record.journal)),
        }
    }

    fn commit_rewound(
        &self,
        rewind: &Rewind,
        record: &VbucketRecord,
    ) -> Result<FileHeader, StorageError> {
        let mut buffers = CommitBuffers::new();
        let (output, scratch) = buffers.parts();
        let mut header = rewind.to.header.clone();
        // What was purged is gone from that state, too.
        header.purge_seqno = header.purge_seqno.max(rewind.from.header.purge_seqno);
        rewind.from.file.size_with(&rewind.from.header)?;
        let mut commit = Commit::begin(&rewind.to.file, &header, output, scratch)?;
        let content = Some(record.encode());
        commit.save_local(vec![LocalEdit { id: VBSTATE.to_vec(), content }])?;
        let (header, _) = commit.finish(self.wall_time())?;
        Ok(header)
    }

    /// Replaces a vBucket's file by one that holds `record` and no document; makes one if there is
    /// none. Whenever the power goes, the vBucket has the one or the other. Scans that are under
    /// way go on. Nobody commits to the vBucket meanwhile.
    ///
    /// # Errors
    /// Those of writing the new file. The old one is unchanged then.
    pub fn reset(&self, vbid: Vbid, record: &VbucketRecord) -> Result<(), StorageError> {
        let entry = self.entry_or_new(vbid);
        entry.abort_compaction();
        let _writing = lock(&entry.writer);
        self.make_name_sure(&entry)?;
        // What a journal holds of the old history is no part of the new one.
        let journal = self.begin_rollback(&entry, Seqno(0), record)?;
        let state = VbucketRecord { journal, ..record.clone() };
        let old_revision = lock(&entry.handle).revision;
        let written = self.write_empty_file(&entry, old_revision, &state);
        let header = written.inspect_err(|_| lock(&entry.handle).doubts.has_file = true)?;
        let mut handle = lock(&entry.handle);
        handle.revision = old_revision + 1;
        handle.note_committed(vbid, &header, &state);
        let closed = handle.snapshot.take();
        self.release(&entry);
        drop(handle);
        drop(closed);
        if let Some(journalled) = &self.journalled {
            drop(journalled.backlog.give_up(vbid));
        }
        // What stays is removed at the next start.
        remove_if_there(self.files(), &self.path(vbid, old_revision)).ok();
        Ok(())
    }

    /// What the file says of its vBucket, if it can be read.
    fn present_record(&self, entry: &Arc<Entry>) -> Result<Option<VbucketRecord>, StorageError> {
        let read = self.snapshot_of(entry).and_then(|present| match present {
            Some(present) => present.record(),
            None => Ok(None),
        });
        match read {
            Err(StorageError::Corrupt { .. }) => Ok(None),
            read => read,
        }
    }

    /// Makes the next revision of a vBucket's file, durably. After an error it may be there, even
    /// where the renaming has failed.
    fn write_empty_file(
        &self,
        entry: &Entry,
        old_revision: u64,
        state: &VbucketRecord,
    ) -> Result<FileHeader, StorageError> {
        let (files, vbid) = (self.files(), entry.vbid);
        let batch = FileBatch { items: &[], state };
        let boot_path = self.directory().join(layout::boot_file(vbid));
        remove_if_there(files, &boot_path)?;
        let file = CouchFile::open(files, &boot_path, OpenMode::CreateNew)?;
        let mut buffers = CommitBuffers::new();
        let now = self.wall_time();
        let (header, _) = vbucket_file::write(&file, None, batch, now, &mut buffers)?;
        drop(file);
        files.rename(&boot_path, &self.path(vbid, old_revision + 1))?;
        self.sync_directory()?;
        Ok(header)
    }

    /// The revision of a vBucket's file, or of the last one that there was; 0 if there never was.
    pub fn revision(&self, vbid: Vbid) -> u64 {
        self.entry(vbid).map_or(0, |entry| lock(&entry.handle).revision)
    }

    /// Has the next file of a vBucket that has none get a revision above `revision`.
    pub fn raise_revision(&self, vbid: Vbid, revision: u64) {
        let entry = self.entry_or_new(vbid);
        let mut handle = lock(&entry.handle);
        // The revision of a file that is there stands in its name.
        if handle.header_position.is_none() {
            handle.revision = handle.revision.max(revision);
        }
    }
}

/// The newest state of the file in the history of `from` that holds nothing above `seqno`, unless a
/// reset is better.
fn state_at(from: &Snapshot, seqno: Seqno) -> Result<Option<FileHeader>, StorageError> {
    let mut header = from.header.clone();
    while header.high_seqno > seqno.0 {
        header = match from.file.header_before(&header) {
            Ok(Some(before)) => before,
            // A history that cannot be read is none.
            Ok(None) | Err(StorageError::Corrupt { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
    }
    let is_present = header.position == from.header.position;
    let is_purged = from.header.purge_seqno > header.high_seqno;
    if !is_present && (is_purged || discards_too_much(from, &header)?) {
        return Ok(None);
    }
    Ok(Some(header))
}

/// Whether at least half of all changes that the file knows came after `header`. Source:
/// docs/specification/engine.md, section 4.9.
fn discards_too_much(from: &Snapshot, header: &FileHeader) -> Result<bool, StorageError> {
    let total = from.header.alive_count().saturating_add(from.header.deleted_count());
    let mut discarded: u64 = 0;
    let mut reader = from.file.reader(&from.header);
    let flow = reader.scan_by_seqno(header.high_seqno.saturating_add(1), |_, _| {
        discarded += 1;
        let is_half = discarded.saturating_mul(2) >= total;
        Ok(if is_half { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(flow.is_break())
}

/// What a file remembers that has gone back from `now` to `then`.
fn rewound_record(then: VbucketRecord, now: &VbucketRecord, high_seqno: Seqno) -> VbucketRecord {
    let branches = now.failover_table.iter().copied().filter(|entry| entry.seqno <= high_seqno);
    let mut record = VbucketRecord {
        state: now.state,
        replication_topology: Arc::clone(&now.replication_topology),
        failover_table: branches.collect(),
        // Versions that are gone were seen: no other may get their names.
        max_cas: now.max_cas.max(then.max_cas),
        max_deleted_revision: now.max_deleted_revision.max(then.max_deleted_revision),
        whole_from_seqno: now.whole_from_seqno,
        journal: now.journal,
        ..then
    };
    if !(record.snapshot_start..=record.snapshot_end).contains(&high_seqno) {
        record.snapshot_start = high_seqno;
        record.snapshot_end = high_seqno;
    }
    record
}

#[cfg(test)]
mod tests;
