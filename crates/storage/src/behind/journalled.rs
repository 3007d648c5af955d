//! A store with a journal: batches are durable when the journal has them, and reach the files
//! behind it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use document::{Seqno, Vbid};
use platform::{Clock, Files};

use crate::behind::backlog::{Backlog, Pending};
use crate::behind::journal_note::JournalNote;
use crate::error::StorageError;
use crate::journal::{JOURNAL_DIRECTORY, Journal, JournalOptions, Lsn, Record};
use crate::locks::lock;
use crate::records::vbucket_record::{JournalPosition, VbucketRecord};
use crate::removal::remove_if_there;
use crate::store::flush_batch::{CommitReport, FlushBatch};
use crate::store::open_files::{Entries, witnesses_of};

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
    /// What of the files the journal tells. Held for a look, under `appending` or alone.
    witnessed: Mutex<Witnessed>,
    entries: Arc<Entries>,
    note: Note,
}

/// What is let go of has to be in files, and nothing but a witness of those tells later that it
/// was: so nothing is let go of before the journal has one of each file behind it.
#[derive(Debug)]
struct Witnessed {
    /// Whether the next append writes witnesses, too.
    is_due: bool,
    /// Groups below were in the files when the last witnesses were written.
    releasable: Lsn,
}

/// The note beside the journal, and the newest segment that it tells of.
struct Note {
    files: Arc<dyn Files>,
    bucket: PathBuf,
    /// Held while the note is written. Locks: nothing is taken under it but the journal's.
    segment: Mutex<Option<u64>>,
}

/// What a journal is opened with.
pub(crate) struct JournalParts {
    pub(crate) journal: Journal,
    pub(crate) backlog: Backlog,
    pub(crate) group_bytes_max: u64,
}

impl Journalled {
    pub(crate) fn new(
        parts: JournalParts,
        clock: Clock,
        entries: Arc<Entries>,
        files: Arc<dyn Files>,
        bucket: &Path,
    ) -> Self {
        let JournalParts { journal, backlog, group_bytes_max } = parts;
        // The first group tells what the mark of the last stop has told.
        let witnessed = Mutex::new(Witnessed { is_due: true, releasable: Lsn(0) });
        let note = Note { files, bucket: bucket.to_path_buf(), segment: Mutex::new(None) };
        let appending = Mutex::default();
        Self { journal, group_bytes_max, backlog, clock, appending, witnessed, entries, note }
    }

    /// Appends records, and witnesses when they are due. The caller holds `appending`.
    fn append(
        &self,
        records: &[Record<'_>],
        durable: &mut dyn FnMut(Range<usize>, Result<Lsn, StorageError>),
    ) {
        if lock(&self.witnessed).is_due {
            // Witnesses that are not durable stay due.
            drop(self.append_with_witnesses(records, durable));
        } else {
            self.journal.append(records, durable);
        }
        // A start that does not find the first group has to know that there was one. What of the
        // later segments it has to know is noted by who has time.
        if lock(&self.note.segment).is_none() {
            // If this fails, the next append tries again.
            drop(self.note_segment());
        }
    }

    /// The same with witnesses; what is returned is about these.
    fn append_with_witnesses(
        &self,
        records: &[Record<'_>],
        durable: &mut dyn FnMut(Range<usize>, Result<Lsn, StorageError>),
    ) -> Result<(), StorageError> {
        // Before the files are looked at: the witnesses tell of all that is in files by now.
        let releasable = self.needed_from();
        let witnesses = witnesses_of(&self.entries);
        let mut all = records.to_vec();
        all.push(Record::Witnesses(&witnesses));
        let mut told = Ok(());
        self.journal.append(&all, &mut |range, result| {
            // The witnesses come last: they may be in a group that is not durable although others
            // are.
            if range.end == all.len() {
                told = result.clone().map(drop);
                if told.is_ok() {
                    *lock(&self.witnessed) = Witnessed { is_due: false, releasable };
                }
            }
            let own = range.start..range.end.min(records.len());
            if !own.is_empty() {
                durable(own, result);
            }
        });
        told
    }

    /// The oldest group that a file needs. The caller holds `appending`.
    fn needed_from(&self) -> Lsn {
        // Of what is durable now the backlog knows all that files lack.
        let next = Lsn(self.journal.usage().durable_lsn.0 + 1);
        self.backlog.oldest().unwrap_or(next)
    }

    /// Notes which segment is the newest, for a start that does not find it.
    pub(crate) fn note_segment(&self) -> Result<(), StorageError> {
        let mut noted = lock(&self.note.segment);
        let Some(segment) = self.journal.newest_segment() else { return Ok(()) };
        if *noted != Some(segment) {
            let note = JournalNote { id: self.journal.id(), segment };
            note.write(&*self.note.files, &self.note.bucket)?;
            *noted = Some(segment);
        }
        Ok(())
    }

    /// There is nothing to append for a while. Has a group follow the last one, and lets go of what
    /// files have.
    pub(crate) fn rest(&self) -> Result<(), StorageError> {
        let appending = lock(&self.appending);
        let told = self.append_witnesses();
        self.journal.prove()?;
        // Let go of before the end: `release` only tries for it, and the note takes the disk's
        // time.
        drop(appending);
        self.note_segment()?;
        self.release();
        // Last: whoever hears that they are not written asks again, and all else is done.
        told
    }

    /// Lets go of what the journal keeps although files have it, because it has not told so yet.
    /// For when the disk has no room: nothing else is appended then that would tell.
    pub(crate) fn make_room(&self) {
        let appending = lock(&self.appending);
        // Perhaps whoever applied last has found the lock taken.
        self.note_in_files();
        // Where there is no room for that either, nothing more can be let go of.
        drop(self.append_witnesses());
        drop(appending);
        self.release();
    }

    /// Whether [`Journalled::rest`] has something to do.
    pub(crate) fn is_restless(&self) -> bool {
        let is_due = lock(&self.witnessed).is_due && self.journal.usage().group_count > 0;
        is_due || self.journal.is_unproved()
    }

    /// Writes witnesses if they are due. The caller holds `appending`.
    fn append_witnesses(&self) -> Result<(), StorageError> {
        let has_begun = self.journal.newest_segment().is_some();
        if !lock(&self.witnessed).is_due || !has_begun {
            return Ok(());
        }
        self.append_with_witnesses(&[], &mut |_, _| {})
    }

    /// Makes the batches durable, a group of them at a time; see [`crate::Store::commit`]. Once a
    /// group has found the journal full no later batch with items takes the room that it needs: the
    /// first ones have waited longest, and a small one always finds room before a large one.
    pub(crate) fn commit(
        &self,
        batches: Vec<FlushBatch>,
        mut report: impl FnMut(Vbid, Result<CommitReport, StorageError>),
    ) {
        let mut full: Option<StorageError> = None;
        let mut batches = batches.into_iter().peekable();
        while let Some(first) = batches.peek() {
            if let Some(full) = full.as_ref().filter(|_| !first.items.is_empty()) {
                report(first.vbid, Err(full.clone()));
                batches.next();
                continue;
            }
            let mut bytes = 0;
            let group: Vec<FlushBatch> = std::iter::from_fn(|| {
                let next = batches.peek()?;
                let next_bytes = bytes + next.item_bytes();
                // One that is larger than a group would never go otherwise.
                let fits = bytes == 0 || next_bytes <= self.group_bytes_max;
                let may_go = full.is_none() || next.items.is_empty();
                bytes = next_bytes;
                if fits && may_go { batches.next() } else { None }
            })
            .collect();
            self.commit_group(group, &mut |vbid, committed| {
                if let Err(error @ StorageError::JournalFull { .. }) = &committed {
                    full.get_or_insert_with(|| error.clone());
                }
                report(vbid, committed);
            });
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
        self.append(&records, &mut |range, result| {
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
        let is_full =
            |report: &Result<_, _>| matches!(report, Err(StorageError::JournalFull { .. }));
        if reports.iter().any(|(_, report)| is_full(report)) {
            // Those who might have told of room have left it to this commit.
            self.note_in_files();
        }
        // Who hears of it takes locks of its own (invariant 10).
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

    /// Makes it durable that the vBuckets are gone. What waited for their files is forgotten.
    /// The caller holds the `writer` of each.
    pub(crate) fn delete(&self, vbids: &[Vbid]) -> Result<(), StorageError> {
        let appending = lock(&self.appending);
        let now = self.clock.now();
        let records: Vec<Record<'_>> =
            vbids.iter().map(|vbid| Record::Delete { vbid: *vbid }).collect();
        let mut forgotten: Vec<Option<Pending>> = Vec::new();
        let mut first_error = None;
        self.append(&records, &mut |range, result| match result {
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

    /// The vBucket whose content is to be written again next, because that lets go of more of the
    /// journal than it takes.
    ///
    /// What waits for a damaged file does so until that is put back, perhaps for ever, so what is
    /// written for it has to be in proportion to what others write. Each is written once for
    /// nothing. After that it goes behind whatever else there is only when that comes to as much as
    /// all of it, or to half of the room that it leaves, and to a segment, as less may let none go;
    /// where the journal `is_full`, whenever there is anything else: nobody goes on otherwise.
    pub(crate) fn next_to_carry(&self, is_full: bool) -> Option<Vbid> {
        let held = self.backlog.held_back()?;
        let usage = self.journal.usage();
        let room = (usage.bytes_max - usage.reserve_bytes).saturating_sub(held.carried_bytes);
        let wanted = held.carried_bytes.min(room / 2).max(usage.segment_bytes);
        let others = usage.used_bytes.saturating_sub(held.carried_bytes);
        let is_worth_it = held.is_followed && (is_full || others >= wanted);
        (held.is_first || is_worth_it).then_some(held.vbid)
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
        // Of segments that end early for it, the ends count, too: nobody else gets those, either.
        let used_before = self.journal.usage().used_bytes;
        let mut carried = None;
        self.append(&[record], &mut |_, result| carried = Some(result));
        drop(superfluous);
        match carried.expect("the journal answers for every record") {
            Ok(lsn) => {
                let carried_bytes = self.journal.usage().used_bytes.saturating_sub(used_before);
                self.backlog.carried(lsn, carried_bytes, pending);
                Ok(())
            }
            Err(error) => {
                self.backlog.put_back(pending);
                Err(error)
            }
        }
    }

    /// Lets go of what the files have of the journal, as far as it tells that they do; if more
    /// could go, the next group tells that. While a group is being written that is left to whoever
    /// comes next.
    pub(crate) fn release(&self) {
        let Ok(appending) = self.appending.try_lock() else { return };
        let releasable = self.note_in_files();
        // The rest takes the disk's time: groups do not wait for it.
        drop(appending);
        self.journal.release(Some(releasable));
    }

    /// Tells the journal what the files have, which makes room in it. Gives what can be let go of
    /// now. The caller holds `appending`.
    fn note_in_files(&self) -> Lsn {
        let needed_from = self.needed_from();
        let would_release = self.journal.note_in_files(needed_from);
        let mut witnessed = lock(&self.witnessed);
        // Witnesses are worth a record when a whole segment can go for them.
        witnessed.is_due |= would_release && witnessed.releasable < needed_from;
        witnessed.releasable
    }

    /// Sees to it that no replay finds what was not acknowledged.
    pub(crate) fn settle(&self) -> Result<(), StorageError> {
        let _appending = lock(&self.appending);
        self.journal.settle()
    }

    /// Says that a vBucket's file goes back to `seqno`, where its state is `state`, and gives the
    /// place of that. Behind it no replay finds anything that was written until now, a group that
    /// failed included: what a history gives up stays given up. The caller holds the vBucket's
    /// `writer`.
    pub(crate) fn roll_back(
        &self,
        vbid: Vbid,
        seqno: Seqno,
        state: &VbucketRecord,
    ) -> Result<JournalPosition, StorageError> {
        let _appending = lock(&self.appending);
        self.journal.settle()?;
        let mut place = None;
        let record = Record::Rollback { vbid, seqno, state };
        self.append(&[record], &mut |_, result| place = Some(result));
        let lsn = place.expect("the journal answers for every record")?;
        Ok(self.position(lsn))
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
