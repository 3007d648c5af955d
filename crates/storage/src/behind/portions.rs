//! Replaying a journal of which files lack more than a start should hold in memory: the files of
//! some vBuckets get what they lack before that of others is read.

use document::{Set, Vbid};

use crate::behind::replayed::Replay;
use crate::error::StorageError;
use crate::journal::{JournalId, KnownEnd, Lsn, RawContent, ReplayedRecord, Visitor};
use crate::locks::lock;
use crate::store::Store;
use crate::store::start_up::{LastStop, StartReport, WhyIgnored};

/// Hears of a journal's records for a store that starts.
pub(crate) struct Portions<'s> {
    store: &'s Store,
    pub(crate) replay: Replay,
    report: &'s mut StartReport,
    last_stop: &'s LastStop,
    /// What became of the portions before the last one, if there were any.
    pub(crate) early: Option<EarlyPortions>,
}

/// The vBuckets whose files were brought up to date while the journal was read.
#[derive(Default)]
pub(crate) struct EarlyPortions {
    pub(crate) applied: Vec<Vbid>,
    /// Those that turned out to be damaged, with what is wrong.
    pub(crate) damaged: Vec<(Vbid, WhyIgnored)>,
}

impl<'s> Portions<'s> {
    pub(crate) fn new(
        store: &'s Store,
        replay: Replay,
        report: &'s mut StartReport,
        last_stop: &'s LastStop,
    ) -> Self {
        Self { store, replay, report, last_stop, early: None }
    }

    /// A file that is not what is known of it gets nothing.
    fn hold_contradicted(&mut self) -> Result<(), StorageError> {
        self.store.check_known(self.last_stop, true, &self.replay.witnesses(), self.report)?;
        let backlog = self.replay.backlog();
        for vbid in self.report.unreadable_vbuckets() {
            // Unless the journal has all of the vBucket.
            if !backlog.look(vbid, |pending| pending.deletes).unwrap_or(false) {
                backlog.hold(vbid);
            }
        }
        Ok(())
    }

    /// Writes what was replayed to its files. What fails because of the disk is left to who tries
    /// the rest, when the journal is open and can give room.
    fn apply(&mut self) {
        let Some(journal) = self.replay.journal_id() else { return };
        let early = self.early.get_or_insert_default();
        let backlog = self.replay.backlog();
        let mut tried: Set<Vbid> = Set::default();
        while let Some(vbid) = backlog.next(|found| !tried.contains(&found.vbid)) {
            // Each once: what fails waits again, and would be found for ever.
            tried.insert(vbid);
            let entry = self.store.entry_or_new(vbid);
            let _writing = lock(&entry.writer);
            match self.store.apply_to(backlog, journal, &entry) {
                Ok(_) => early.applied.push(vbid),
                Err(error @ (StorageError::Corrupt { .. } | StorageError::OutOfOrder { .. })) => {
                    early.damaged.push((vbid, WhyIgnored::Corrupt(error)));
                }
                // It waits with the last portion.
                Err(_) => {}
            }
        }
    }
}

impl Visitor for Portions<'_> {
    fn begin(&mut self, id: JournalId) {
        self.replay.begin(id);
    }

    fn survey(&mut self, lsn: Lsn, vbid: Vbid, bytes: u32, content: &RawContent<'_>) {
        self.replay.survey(lsn, vbid, bytes, content);
    }

    fn known_end(&mut self) -> KnownEnd {
        self.replay.known_end()
    }

    fn wants(&self, lsn: Lsn, vbid: Vbid, content: &RawContent<'_>) -> bool {
        self.replay.wants(lsn, vbid, content)
    }

    fn replay(&mut self, lsn: Lsn, record: ReplayedRecord) -> Result<(), StorageError> {
        self.replay.replay(lsn, record)
    }

    fn goes_on(&mut self) -> Result<bool, StorageError> {
        if !self.replay.has_more() {
            return Ok(false);
        }
        // Before the first portion is written, for all of them: the survey is over.
        if self.early.is_none() {
            self.hold_contradicted()?;
        }
        self.apply();
        self.replay.begin_next_portion();
        Ok(true)
    }
}
