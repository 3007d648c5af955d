//! A store with a journal: batches are durable when the journal has them, and reach the files
//! behind it.

use std::sync::Mutex;

use std::path::Path;

use document::Vbid;
use platform::{Clock, Files};

use crate::StorageError;
use crate::backlog::{Backlog, Pending, bytes_of};
use crate::flush_batch::{CommitReport, FlushBatch};
use crate::journal::{JOURNAL_DIRECTORY, Journal, JournalOptions, Lsn, Record, ReplayedRecord};
use crate::start_up::remove_if_there;
use crate::store::lock;
use crate::vbucket_record::JournalPosition;

/// So many items are gone through in less than a millisecond.
const TRIMMED_AT_ONCE_MAX: usize = 4096;

/// The journal of a store, and what of it the files do not have yet.
pub(crate) struct Journalled {
    pub(crate) journal: Journal,
    /// Bytes of documents that become durable together.
    group_bytes_max: u64,
    pub(crate) backlog: Backlog,
    clock: Clock,
    /// Held from before a group is written until the backlog knows of it, and by who finds out what
    /// files still need of the journal, which nobody else can tell meanwhile. Locks: a store
    /// entry's `writer` before this.
    appending: Mutex<()>,
}

impl Journalled {
    pub(crate) fn new(journal: Journal, group_bytes_max: u64, clock: Clock) -> Self {
        let (backlog, appending) = (Backlog::default(), Mutex::default());
        Self { journal, group_bytes_max, backlog, clock, appending }
    }

    /// Makes the batches durable, a group of them at a time; see [`crate::Store::commit`].
    pub(crate) fn commit(
        &self,
        batches: Vec<FlushBatch>,
        mut report: impl FnMut(Vbid, Result<CommitReport, StorageError>),
    ) {
        let mut batches = batches.into_iter().peekable();
        while batches.peek().is_some() {
            let mut bytes = 0;
            let group: Vec<FlushBatch> = std::iter::from_fn(|| {
                let next_bytes = bytes + bytes_of(&batches.peek()?.items);
                let fits = bytes == 0 || next_bytes <= self.group_bytes_max;
                bytes = next_bytes;
                if fits { batches.next() } else { None }
            })
            .collect();
            self.commit_group(group, &mut report);
        }
    }

    fn commit_group(
        &self,
        batches: Vec<FlushBatch>,
        report: &mut impl FnMut(Vbid, Result<CommitReport, StorageError>),
    ) {
        let appending = lock(&self.appending);
        let now = self.clock.now();
        let mut places = Vec::with_capacity(batches.len());
        let records: Vec<Record<'_>> = batches.iter().map(record_of).collect();
        self.journal.append(&records, &mut |range, result| {
            places.extend(range.map(|_| result.clone()));
        });
        drop(records);
        assert_eq!(places.len(), batches.len(), "the journal answers for every record");
        let mut untrimmed = Vec::new();
        let mut reports = Vec::with_capacity(batches.len());
        for (batch, place) in batches.into_iter().zip(places) {
            let (vbid, high_seqno) = (batch.vbid, batch.high_seqno());
            let item_count = batch.items.len();
            let committed = place.map(|lsn| {
                let looked_at = self.backlog.push(lsn, batch, now);
                untrimmed.extend(looked_at.map(|item_count| (vbid, item_count)));
                CommitReport { high_seqno, item_count, applied: None }
            });
            reports.push((vbid, committed));
        }
        if reports.iter().any(|(_, report)| matches!(report, Err(StorageError::JournalFull { .. })))
        {
            // Those who might have made room have left it to this commit.
            self.journal.release(self.backlog.oldest());
        }
        drop(appending);
        reports.into_iter().for_each(|(vbid, committed)| report(vbid, committed));
        // Clients wait for the reports, and only the next group for this.
        for (vbid, item_count) in untrimmed {
            if item_count <= TRIMMED_AT_ONCE_MAX {
                drop(self.backlog.trim(vbid));
            } else {
                self.backlog.trim_later(vbid);
            }
        }
    }

    /// Takes note of a record that the journal has and a file has not.
    pub(crate) fn replayed(&self, lsn: Lsn, record: ReplayedRecord) {
        let now = self.clock.now();
        match record {
            ReplayedRecord::Delete { vbid } => drop(self.backlog.delete(lsn, vbid, now)),
            ReplayedRecord::Batch { vbid, previous_seqno, supersedes, items, state } => {
                if supersedes {
                    drop(self.backlog.forget(vbid));
                }
                let batch = FlushBatch { vbid, previous_seqno, items, state: *state };
                if self.backlog.push(lsn, batch, now).is_some() {
                    drop(self.backlog.trim(vbid));
                }
            }
        }
    }

    /// Makes it durable that the vBuckets are gone. What waited for their files is forgotten.
    /// The caller holds the `writer` of each.
    pub(crate) fn delete(&self, vbids: &[Vbid]) -> Result<(), StorageError> {
        let appending = lock(&self.appending);
        let now = self.clock.now();
        let records: Vec<Record<'_>> =
            vbids.iter().map(|vbid| Record::Delete { vbid: *vbid }).collect();
        let mut forgotten: Vec<Option<Pending>> = Vec::new();
        let mut first_error = None;
        self.journal.append(&records, &mut |range, result| match result {
            Ok(lsn) => {
                let gone = vbids.get(range).unwrap_or_default();
                forgotten.extend(gone.iter().map(|vbid| self.backlog.delete(lsn, *vbid, now)));
            }
            Err(error) => first_error = first_error.take().or(Some(error)),
        });
        drop(appending);
        drop(forgotten);
        first_error.map_or(Ok(()), Err)
    }

    /// Writes again what waits for the file of a vBucket, which is damaged. The caller holds its
    /// `writer`.
    pub(crate) fn carry_forward(&self, vbid: Vbid) -> Result<(), StorageError> {
        let _appending = lock(&self.appending);
        let Some(mut pending) = self.backlog.take(vbid) else { return Ok(()) };
        let superfluous = pending.take_superfluous();
        let Some(state) = &pending.state else {
            // A deletion whose file cannot be removed: it is a record of its own.
            self.backlog.put_back(pending);
            return Ok(());
        };
        let record = Record::Batch {
            vbid,
            previous_seqno: pending.previous_seqno,
            supersedes: true,
            items: &pending.items,
            state,
        };
        let mut carried = None;
        self.journal.append(&[record], &mut |_, result| carried = Some(result));
        drop(superfluous);
        match carried.expect("the journal answers for every record") {
            Ok(lsn) => {
                self.backlog.carried(lsn, pending);
                Ok(())
            }
            Err(error) => {
                self.backlog.put_back(pending);
                Err(error)
            }
        }
    }

    /// Lets go of what the files have of the journal. While a group is being written that is left
    /// to whoever comes next.
    pub(crate) fn release(&self) {
        let Ok(appending) = self.appending.try_lock() else { return };
        // Of what is durable now the backlog knows all that files lack.
        let next = Lsn(self.journal.usage().durable_lsn.0 + 1);
        let needed_from = self.backlog.oldest().unwrap_or(next);
        // The rest takes the disk's time: groups do not wait for it.
        drop(appending);
        self.journal.release(Some(needed_from));
    }

    /// The end of the journal, behind which no replay finds anything that was written until now, a
    /// group that failed included. What a history gives up stays given up.
    pub(crate) fn end_of_history(&self) -> Result<JournalPosition, StorageError> {
        let _appending = lock(&self.appending);
        self.journal.settle()?;
        Ok(self.position(self.journal.usage().durable_lsn))
    }

    /// How much of the journal a file has that holds everything up to `lsn`.
    pub(crate) fn position(&self, lsn: Lsn) -> JournalPosition {
        JournalPosition { id: self.journal.id().0, lsn: lsn.0 }
    }
}

/// Whether the bucket in `directory` has a journal.
pub(crate) fn has_journal(files: &dyn Files, directory: &Path) -> Result<bool, StorageError> {
    Ok(files.exists(&directory.join(JOURNAL_DIRECTORY))?)
}

/// Removes what a journal leaves that was sealed. The directory stays, empty.
pub(crate) fn remove_journal(files: &dyn Files, directory: &Path) -> Result<(), StorageError> {
    let journal = directory.join(JOURNAL_DIRECTORY);
    for name in files.list(&journal)? {
        remove_if_there(files, &journal.join(name))?;
    }
    Ok(files.sync_directory(&journal)?)
}

impl Default for JournalOptions {
    /// Segments of 32 MiB, 512 MiB in use at most: what bounds the time of a start. Devices write
    /// portions of 1 MiB as fast as larger ones.
    fn default() -> Self {
        Self {
            segment_bytes: 32 << 20,
            bytes_max: 512 << 20,
            group_bytes_max: 8 << 20,
            portion_bytes: 1 << 20,
        }
    }
}

fn record_of(batch: &FlushBatch) -> Record<'_> {
    Record::Batch {
        vbid: batch.vbid,
        previous_seqno: batch.previous_seqno,
        supersedes: false,
        items: &batch.items,
        state: &batch.state,
    }
}

#[cfg(test)]
mod tests;
