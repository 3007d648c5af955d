//! What a store does with its journal when it starts: the files get what only the journal has.

use document::{Item, Map, Seqno, Set, Vbid};

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

/// Files that could not be brought up to date.
#[derive(Default)]
struct LeftBehind {
    /// Those that turned out to be damaged, with what is wrong.
    damaged: Vec<(Vbid, StorageError)>,
    /// Those that there is no room for.
    waiting: Set<Vbid>,
}

impl Store {
    /// Opens the journal, if there is to be one or is one, and applies it to the files. `report` is
    /// of the files before, and then of the vBuckets after.
    pub(crate) fn open_journal(
        &mut self,
        options: Option<JournalOptions>,
        report: &mut StartReport,
    ) -> Result<(), StorageError> {
        let keeps_journal = options.is_some();
        if !keeps_journal && !journalled::has_journal(&*self.files, &self.directory)? {
            return Ok(());
        }
        let journal = self.read_journal(options.unwrap_or_default(), report)?;
        let journalled = self.journalled.insert(journal);
        let behind = journalled.backlog.vbuckets();
        let left_behind = self.apply_at_start()?;
        self.report_again(&behind, left_behind, report)?;
        // What waits for a file is nowhere else: until the file has it, the journal stays.
        let is_needed = keeps_journal || self.backlog().vbuckets > 0;
        if !is_needed && let Some(journalled) = self.journalled.take() {
            journalled.journal.seal();
            journalled::remove_journal(&*self.files, &self.directory)?;
        }
        Ok(())
    }

    /// Brings the files up to date, as far as that can be.
    fn apply_at_start(&self) -> Result<LeftBehind, StorageError> {
        let mut left_behind = LeftBehind::default();
        while let Some(vbid) =
            self.next_unapplied(|found| !left_behind.waiting.contains(&found.vbid))
        {
            match self.apply(vbid) {
                Ok(_) => {}
                // It is held from now on: the journal keeps what waits for it, and others serve.
                Err(error @ (StorageError::Corrupt { .. } | StorageError::OutOfOrder { .. })) => {
                    left_behind.damaged.push((vbid, error));
                }
                // It is tried again, by whoever applies from now on.
                Err(StorageError::NoSpace(_)) if self.has_forgotten(vbid) => {
                    left_behind.waiting.insert(vbid);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(left_behind)
    }

    /// Whether nothing is left of a file that the journal has deleted.
    fn has_forgotten(&self, vbid: Vbid) -> bool {
        self.look_at_backlog(vbid, |pending| !pending.deletes).unwrap_or(true)
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

    /// Tells anew what the vBuckets `vbids` are: of those that are left behind, why, or what they
    /// are with what waits for their files.
    fn report_again(
        &self,
        vbids: &[Vbid],
        mut left_behind: LeftBehind,
        report: &mut StartReport,
    ) -> Result<(), StorageError> {
        for &vbid in vbids {
            let before = report.vbuckets.iter().position(|found| found.vbid == vbid);
            let before = before.map(|at| report.vbuckets.swap_remove(at));
            let damage = left_behind.damaged.iter().position(|(damaged, _)| *damaged == vbid);
            let found = if let Some(at) = damage {
                Err(WhyIgnored::Corrupt(left_behind.damaged.swap_remove(at).1))
            } else if left_behind.waiting.contains(&vbid) {
                self.with_backlog(vbid, before)
            } else {
                let Some(path) = self.path_of(vbid) else { continue };
                start_up::load(&*self.files, &path, vbid)?.map(|(found, _)| found)
            };
            match found {
                Ok(found) => {
                    // Another file may have been there, which the journal had deleted.
                    report.ignored.retain(|ignored| ignored.vbid() != Some(vbid));
                    report.vbuckets.push(found);
                }
                Err(why) => {
                    let path = self.path_of(vbid).unwrap_or_else(|| self.path(vbid, 1));
                    report.ignored.push(start_up::ignored(&path, why));
                }
            }
        }
        report.vbuckets.sort_unstable_by_key(|found| found.vbid);
        Ok(())
    }

    /// A vBucket with what waits for its file, which was `in_file`.
    fn with_backlog(
        &self,
        vbid: Vbid,
        in_file: Option<FoundVbucket>,
    ) -> Result<FoundVbucket, WhyIgnored> {
        let in_file = in_file.filter(|_| self.path_of(vbid).is_some());
        let waiting = self.look_at_backlog(vbid, |pending| {
            let is_document = |item: &&Item| !item.is_deleted() && !item.operation().is_prepared();
            let documents = pending.items.iter().filter(is_document).count();
            (pending.high_seqno(), pending.state.clone(), documents as u64)
        });
        let Some((high_seqno, Some(state), documents)) = waiting else {
            return in_file.ok_or(WhyIgnored::NoState);
        };
        let record = start_up::ending_at(state, high_seqno).ok_or(WhyIgnored::OutsideSnapshot)?;
        let purge_seqno = in_file.as_ref().map_or(Seqno(0), |found| found.purge_seqno);
        Ok(FoundVbucket {
            vbid,
            high_seqno,
            purge_seqno: purge_seqno.max(record.purge_seqno),
            item_count: in_file.as_ref().map_or(0, |found| found.item_count) + documents,
            record,
            passed_over: in_file.map(|found| found.passed_over).unwrap_or_default(),
            file_is_behind: true,
        })
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
