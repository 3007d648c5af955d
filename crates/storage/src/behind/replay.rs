//! What a store does with its journal when it starts: the files get what only the journal has, and
//! what is known of the files is compared with what they are.

use document::{Item, Seqno, Set, Vbid};

use crate::behind::journal_note::{FoundNote, JournalNote};
use crate::behind::journalled::{self, JournalParts, Journalled};
use crate::behind::portions::{EarlyPortions, Portions};
use crate::behind::replayed::Replay;
use crate::error::StorageError;
use crate::journal::{Journal, JournalOptions};
use crate::locks::lock;
use crate::store::Store;
use crate::store::start_up::{self, FoundVbucket, LastStop, StartReport, WhyIgnored};
use crate::store::witness::Witness;

/// Files that could not be brought up to date.
#[derive(Default)]
struct LeftBehind {
    /// Those that turned out to be damaged, with what is wrong.
    damaged: Vec<(Vbid, WhyIgnored)>,
    /// Those whose files the disk did not let change.
    waiting: Set<Vbid>,
}

impl Store {
    /// Opens the journal, if there is to be one or is one, and applies it to the files. `report` is
    /// of the files before, and then of the vBuckets after.
    pub(crate) fn open_journal(
        &mut self,
        options: Option<JournalOptions>,
        last_stop: &LastStop,
        report: &mut StartReport,
    ) -> Result<(), StorageError> {
        let keeps_journal = options.is_some();
        let note = self.note_of(last_stop, report)?;
        let is_there = journalled::has_journal(&*self.files, &self.directory)?;
        let is_noted = note.is_some() || report.journal_note_is_damaged;
        if !keeps_journal && !is_there && !is_noted {
            self.check_witnesses(last_stop.witnesses.iter().flat_map(|list| list.iter()), report)?;
            self.note_wholeness(last_stop, report);
            return Ok(());
        }
        let early = self.read_journal(options.unwrap_or_default(), last_stop, note, report)?;
        self.note_wholeness(last_stop, report);
        let mut behind = early.applied;
        behind.extend(self.unapplied_vbuckets());
        // Or nobody could compact anything later.
        self.reserve_for_compaction(Some(self.live_bytes_max()));
        let applied = self.apply_at_start();
        self.reserve_for_compaction(None);
        let mut left_behind = applied?;
        left_behind.damaged.extend(early.damaged);
        self.report_again(&behind, left_behind, report)?;
        // What waits for a file is nowhere else: until the file has it, the journal stays.
        let is_needed = keeps_journal || self.backlog().vbuckets > 0;
        if !is_needed && let Some(journalled) = self.journalled.take() {
            // The note first: a start that finds it refuses to go on without the journal.
            JournalNote::remove(&*self.files, &self.directory)?;
            journalled.journal.seal();
            journalled::remove_journal(&*self.files, &self.directory)?;
        }
        Ok(())
    }

    /// The journal that must be there: after a clean stop, or when its loss is accepted, none.
    fn note_of(
        &self,
        last_stop: &LastStop,
        report: &mut StartReport,
    ) -> Result<Option<JournalNote>, StorageError> {
        let needs_none = last_stop.was_clean || last_stop.accepts_lost_journal;
        let found = match JournalNote::read(&*self.files, &self.directory) {
            // Nobody asks what it says.
            Err(StorageError::JournalNoteUnreadable(_)) if needs_none => FoundNote::Damaged,
            found => found?,
        };
        if found == FoundNote::Nothing {
            return Ok(None);
        }
        if needs_none {
            report.gives_up_journal = !last_stop.was_clean;
            JournalNote::remove(&*self.files, &self.directory)?;
            return Ok(None);
        }
        report.journal_note_is_damaged = found == FoundNote::Damaged;
        Ok(match found {
            FoundNote::Note(note) => Some(note),
            FoundNote::Nothing | FoundNote::Damaged => None,
        })
    }

    /// Says of which vBuckets something acknowledged may be missing.
    fn note_wholeness(&self, last_stop: &LastStop, report: &mut StartReport) {
        let listed = last_stop.witnesses.as_ref().filter(|_| last_stop.was_clean);
        let shortened: Set<Vbid> = report.shortened.iter().map(|(vbid, _)| *vbid).collect();
        for found in &mut report.vbuckets {
            let was_whole = listed.is_none_or(|listed| listed.is_whole(found.vbid));
            found.is_whole &= was_whole && !shortened.contains(&found.vbid);
        }
    }

    /// Compares files with what is known of them. What does not agree is out of service.
    fn check_witnesses<'a>(
        &self,
        witnesses: impl Iterator<Item = &'a Witness>,
        report: &mut StartReport,
    ) -> Result<(), StorageError> {
        for known in witnesses {
            let is_given_up = report.unreadable_vbuckets().any(|vbid| vbid == known.vbid);
            let why = if is_given_up { None } else { self.contradiction(known, report)? };
            if let Some(why) = why {
                report.give_up(known.vbid, known.revision, why);
            }
            if report.unreadable_vbuckets().any(|vbid| vbid == known.vbid) {
                self.disbelieve(known.vbid, Some(*known));
            }
        }
        Ok(())
    }

    /// Why the file of a vBucket is not the one that is known of, or one that came after.
    fn contradiction(
        &self,
        known: &Witness,
        report: &StartReport,
    ) -> Result<Option<WhyIgnored>, StorageError> {
        let vbucket = report.vbuckets.iter().find(|vbucket| vbucket.vbid == known.vbid);
        let entry = self.entry(known.vbid);
        let found = entry.as_ref().and_then(|entry| lock(&entry.handle).witness);
        let (Some(vbucket), Some(entry), Some(found)) = (vbucket, entry, found) else {
            return Ok(Some(WhyIgnored::Contradicted { known: *known, found: None }));
        };
        let is_continued = self.snapshot_of(&entry).and_then(|snapshot| {
            let Some(snapshot) = snapshot else { return Ok(false) };
            known.is_continued_by(&found, &vbucket.record.failover_table, &snapshot.file)
        });
        match is_continued {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(WhyIgnored::Contradicted { known: *known, found: Some(found) })),
            Err(error) => start_up::not_read(error).map(Some),
        }
    }

    /// Nothing of the vBucket's file is used; what it should be is remembered.
    fn disbelieve(&self, vbid: Vbid, known: Option<Witness>) {
        let entry = self.entry_or_new(vbid);
        self.close(&entry);
        let mut handle = lock(&entry.handle);
        handle.header_position = None;
        handle.witness = known.or(handle.witness);
        // What is made in its place must be the newer one.
        handle.revision = handle.revision.max(known.map_or(0, |known| known.revision));
    }

    /// What the compaction of the largest file would copy. What cannot be read is not compacted.
    fn live_bytes_max(&self) -> u64 {
        let entries = self.entries_in_order();
        let sizes = entries.iter().filter_map(|entry| self.file_sizes(entry.vbid).ok());
        sizes.map(|sizes| sizes.live_bytes).max().unwrap_or(0)
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
                    left_behind.damaged.push((vbid, WhyIgnored::Corrupt(error)));
                }
                Err(error @ StorageError::Failed(_)) if self.has_forgotten(vbid) => {
                    self.hold_at_start(vbid);
                    left_behind.damaged.push((vbid, WhyIgnored::Unreadable(error)));
                }
                // It is tried again, by whoever applies from now on.
                Err(StorageError::NoSpace(_) | StorageError::Failed(_)) => {
                    // Behind its deletion nothing of the file is believed, while it stays.
                    if !self.has_forgotten(vbid) {
                        self.forget_file(&self.entry_or_new(vbid));
                    }
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

    /// Compares files with what the last stop and the journal know of them.
    pub(crate) fn check_known(
        &self,
        last_stop: &LastStop,
        has_begun: bool,
        witnesses: &[Witness],
        report: &mut StartReport,
    ) -> Result<(), StorageError> {
        // The mark tells of the last stop; as soon as there is a journal, that does.
        let of_stop = last_stop.witnesses.as_ref().filter(|_| last_stop.was_clean || !has_begun);
        self.check_witnesses(of_stop.into_iter().flat_map(|list| list.iter()), report)?;
        self.check_witnesses(witnesses.iter(), report)
    }

    /// Reads the journal into a backlog, and puts those out of service that it contradicts. Where
    /// it has much that files lack, the files of some vBuckets get that already.
    fn read_journal(
        &mut self,
        options: JournalOptions,
        last_stop: &LastStop,
        note: Option<JournalNote>,
        report: &mut StartReport,
    ) -> Result<EarlyPortions, StorageError> {
        let replay = Replay::new(report, note, self.clock.clone(), options.segment_bytes);
        let mut portions = Portions::new(self, replay, report, last_stop);
        let (files, clock, entropy) =
            (self.files.clone(), self.clock.clone(), self.entropy.clone());
        let opened =
            Journal::open_with(files, &self.directory, options, clock, entropy, &mut portions);
        let Portions { replay, early, .. } = portions;
        let (journal, journal_report) = opened.map_err(StorageError::of_journal)?;
        // Whatever the note says, it is there from the first group to the next clean stop.
        let is_noted = note.is_some() || report.journal_note_is_damaged;
        let has_begun = journal_report.segment_count > 0;
        if is_noted && !has_begun {
            let directory = self.directory.join(crate::journal::JOURNAL_DIRECTORY);
            return Err(StorageError::JournalMissing { directory, id: note.map(|note| note.id) });
        }
        report.gives_up_journal &= !has_begun;
        // After a clean stop files have everything, whatever the journal lacks.
        if journal_report.lost_end.is_some() && !last_stop.was_clean {
            report.shortened = replay.shortened(report);
        }
        let (backlog, findings) = replay.finish();
        let is_known =
            |report: &StartReport, vbid| report.unreadable_vbuckets().any(|it| it == vbid);
        for (vbid, error) in findings.other_histories {
            // Witnesses were compared before the first portion: why this one is out of service is
            // told already.
            if early.is_some() && is_known(report, vbid) {
                continue;
            }
            let revision = self.revision(vbid);
            report.give_up(vbid, revision, WhyIgnored::OtherHistory(error));
            self.disbelieve(vbid, None);
        }
        report.journal = Some(journal_report);
        let group_bytes_max = u64::try_from(options.group_bytes_max).unwrap_or(u64::MAX);
        let parts = JournalParts { journal, backlog, group_bytes_max };
        let (entries, files) = (self.entries(), self.files.clone());
        let clock = self.clock.clone();
        self.journalled = Some(Journalled::new(parts, clock, entries, files, &self.directory));
        // With portions that was done before the first one was written.
        if early.is_none() {
            self.check_known(last_stop, has_begun, &findings.witnesses, report)?;
        }
        let out_of_service: Vec<Vbid> = report.unreadable_vbuckets().collect();
        for vbid in out_of_service {
            self.hold_at_start(vbid);
        }
        Ok(early.unwrap_or_default())
    }

    /// What waits for a file that is not believed stays in the journal, unless the journal has all
    /// of the vBucket.
    fn hold_at_start(&self, vbid: Vbid) {
        let is_anew = self.look_at_backlog(vbid, |pending| pending.deletes).unwrap_or(false);
        if let Some(journalled) = self.journalled.as_ref().filter(|_| !is_anew) {
            journalled.backlog.hold(vbid);
        }
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
            let is_held = self.look_at_backlog(vbid, |_| ()).is_some()
                && report.unreadable_vbuckets().any(|found| found == vbid)
                && !left_behind.waiting.contains(&vbid);
            if is_held {
                continue;
            }
            let before = report.vbuckets.iter().position(|found| found.vbid == vbid);
            let before = before.map(|at| report.vbuckets.swap_remove(at));
            let is_whole = before.as_ref().is_none_or(|before| before.is_whole);
            let revision = self.revision(vbid);
            let damage = left_behind.damaged.iter().position(|(damaged, _)| *damaged == vbid);
            let found = if let Some(at) = damage {
                Err(left_behind.damaged.swap_remove(at).1)
            } else if left_behind.waiting.contains(&vbid) {
                self.with_backlog(vbid, before)
            } else {
                let Some(path) = self.path_of(vbid) else { continue };
                start_up::load(&*self.files, &path, vbid, revision)?.map(|(found, _)| found)
            };
            match found {
                Ok(found) => {
                    report.ignored.retain(|ignored| ignored.vbid() != Some(vbid));
                    let is_whole = is_whole && found.is_whole;
                    report.vbuckets.push(FoundVbucket { is_whole, ..found });
                }
                Err(why) => {
                    report.give_up(vbid, revision, why);
                    self.disbelieve(vbid, None);
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
            return in_file.ok_or(WhyIgnored::Empty);
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
            is_whole: true,
            file_is_behind: true,
        })
    }
}
