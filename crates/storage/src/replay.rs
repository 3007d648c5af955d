//! What a store does with its journal when it starts: the files get what only the journal has.

use document::{Item, Map, Seqno, Vbid};

use crate::StorageError;
use crate::journal::{Journal, JournalId, JournalOptions, Lsn, ReplayedRecord};
use crate::journalled::{self, Journalled};
use crate::start_up::{self, FoundVbucket, StartReport, WhyIgnored};
use crate::store::Store;
use crate::vbucket_record::JournalPosition;

/// Where the replay of one vBucket is.
#[derive(Clone, Copy)]
struct Reached {
    /// What of the journal the file holds.
    position: Option<JournalPosition>,
    /// The last seqno of the file; `None` when nobody can tell.
    file_seqno: Option<Seqno>,
    /// The same, and then the last one of what was replayed.
    seqno: Option<Seqno>,
}

impl Store {
    /// Opens the journal, if there is to be one or is one, and applies it to the files. `report` is
    /// of the files before, and then of the files after.
    pub(crate) fn open_journal(
        &mut self,
        options: Option<JournalOptions>,
        report: &mut StartReport,
    ) -> Result<(), StorageError> {
        let keeps_journal = options.is_some();
        if !keeps_journal && !journalled::has_journal(&*self.files, &self.directory) {
            return Ok(());
        }
        let journal = self.read_journal(options.unwrap_or_default(), report)?;
        let journalled = self.journalled.insert(journal);
        let behind = journalled.backlog.vbuckets();
        let mut damaged = Vec::new();
        while let Some(vbid) = self.next_unapplied(|_| true) {
            match self.apply(vbid) {
                Ok(_) => {}
                // It is held from now on: the journal keeps what waits for it, and others serve.
                Err(error @ (StorageError::Corrupt { .. } | StorageError::OutOfOrder { .. })) => {
                    damaged.push((vbid, error));
                }
                Err(error) => return Err(error),
            }
        }
        self.report_again(&behind, damaged, report)?;
        // What waits for a damaged file is nowhere else: until that is put back, the journal stays.
        let is_needed = keeps_journal || self.backlog().vbuckets > 0;
        if !is_needed && let Some(journalled) = self.journalled.take() {
            journalled.journal.seal();
            journalled::remove_journal(&*self.files, &self.directory)?;
        }
        Ok(())
    }

    /// Reads the journal into a backlog.
    fn read_journal(
        &self,
        options: JournalOptions,
        report: &StartReport,
    ) -> Result<Journalled, StorageError> {
        let mut found = Vec::new();
        let mut replay = |lsn: Lsn, record: ReplayedRecord| {
            found.push((lsn, record));
            Ok(())
        };
        let group_bytes_max = u64::try_from(options.group_bytes_max).unwrap_or(u64::MAX);
        let (journal, _report) = Journal::open(
            self.files.clone(),
            &self.directory,
            options,
            self.clock.clone(),
            &mut replay,
        )?;
        let id = journal.id();
        let journalled = Journalled::new(journal, group_bytes_max, self.clock.clone());
        let mut reached: Map<Vbid, Reached> = report.vbuckets.iter().map(in_file).collect();
        for vbid in report.unreadable_vbuckets() {
            journalled.backlog.hold(vbid);
            reached.insert(vbid, Reached { position: None, file_seqno: None, seqno: None });
        }
        skip_superfluous(&mut found);
        for (lsn, record) in found {
            if let Some(record) = reach(&mut reached, id, lsn, record)? {
                journalled.replayed(lsn, record);
            }
        }
        Ok(journalled)
    }

    /// Tells anew what is in the files of `vbids`.
    fn report_again(
        &self,
        vbids: &[Vbid],
        mut damaged: Vec<(Vbid, StorageError)>,
        report: &mut StartReport,
    ) -> Result<(), StorageError> {
        for &vbid in vbids {
            report.vbuckets.retain(|found| found.vbid != vbid);
            let Some(path) = self.path_of(vbid) else { continue };
            if let Some(at) = damaged.iter().position(|(damaged, _)| *damaged == vbid) {
                let why = WhyIgnored::Corrupt(damaged.swap_remove(at).1);
                report.ignored.push(start_up::ignored(&path, why));
                continue;
            }
            match start_up::load(&*self.files, &path, vbid)? {
                Ok((found, _)) => {
                    // Another file may have been there, which the journal had deleted.
                    report.ignored.retain(|ignored| ignored.vbid() != Some(vbid));
                    report.vbuckets.push(found);
                }
                Err(why) => report.ignored.push(start_up::ignored(&path, why)),
            }
        }
        report.vbuckets.sort_unstable_by_key(|found| found.vbid);
        Ok(())
    }
}

/// Takes out the records of histories that a later record deletes: their files may be gone already,
/// so there is nothing that they would continue. The same goes for what is contained in a later
/// record: what came before may be released. Behind a deletion everything is there, and such later
/// records are not needed.
fn skip_superfluous(found: &mut Vec<(Lsn, ReplayedRecord)>) {
    let (mut deletions, mut contained): (Map<Vbid, Lsn>, Map<Vbid, Lsn>) = Default::default();
    for (lsn, record) in found.iter() {
        match record {
            ReplayedRecord::Delete { vbid } => drop(deletions.insert(*vbid, *lsn)),
            ReplayedRecord::Batch { vbid, supersedes: true, .. } => {
                contained.insert(*vbid, *lsn);
            }
            ReplayedRecord::Batch { .. } => {}
        }
    }
    found.retain(|(lsn, record)| match record {
        ReplayedRecord::Batch { vbid, supersedes, .. } => match deletions.get(vbid) {
            Some(end) => lsn > end && !supersedes,
            None => contained.get(vbid).is_none_or(|end| lsn >= end),
        },
        ReplayedRecord::Delete { vbid } => deletions.get(vbid) == Some(lsn),
    });
}

fn in_file(found: &FoundVbucket) -> (Vbid, Reached) {
    let seqno = Some(found.high_seqno);
    (found.vbid, Reached { position: found.record.journal, file_seqno: seqno, seqno })
}

/// The record, if its file does not have it yet. A record that does not continue what was reached
/// is of another history than the file.
fn reach(
    reached: &mut Map<Vbid, Reached>,
    id: JournalId,
    lsn: Lsn,
    mut record: ReplayedRecord,
) -> Result<Option<ReplayedRecord>, StorageError> {
    let (ReplayedRecord::Batch { vbid, .. } | ReplayedRecord::Delete { vbid }) = record;
    let beginning = Reached { position: None, file_seqno: Some(Seqno(0)), seqno: Some(Seqno(0)) };
    let at = reached.entry(vbid).or_insert(beginning);
    let is_in_file = |position: JournalPosition| position.id == id.0 && position.lsn >= lsn.0;
    if at.position.is_some_and(is_in_file) {
        return Ok(None);
    }
    match &mut record {
        ReplayedRecord::Delete { .. } => *at = beginning,
        ReplayedRecord::Batch { previous_seqno, supersedes, items, .. } => {
            let before = if *supersedes { at.file_seqno } else { at.seqno };
            let continues = |before: &Seqno| match supersedes {
                true => before >= previous_seqno,
                false => before == previous_seqno,
            };
            if let Some(Seqno(reached)) = before.filter(|before| !continues(before)) {
                let continues = previous_seqno.0;
                return Err(StorageError::OtherHistory { vbid, reached, continues });
            }
            at.seqno = Some(items.iter().map(Item::seqno).max().unwrap_or(*previous_seqno));
            if *supersedes {
                // It was written when nobody could tell how much of it the file has.
                items.retain(|item| at.file_seqno.is_none_or(|seqno| item.seqno() > seqno));
            }
        }
    }
    Ok(Some(record))
}
