//! What a start takes of a journal: which records the files do not have.

use std::collections::VecDeque;

use document::{Item, Map, Seqno, Set, Vbid};
use platform::Clock;

use crate::behind::backlog::Backlog;
use crate::behind::journal_note::JournalNote;
use crate::error::StorageError;
use crate::journal::{JournalId, KnownEnd, Lsn, RawContent, ReplayedRecord, Visitor};
use crate::records::vbucket_record::JournalPosition;
use crate::store::flush_batch::FlushBatch;
use crate::store::start_up::{FoundVbucket, StartReport};
use crate::store::witness::{KnownFiles, Witness};

/// Where the replay of one vBucket is.
#[derive(Clone, Copy, Default)]
struct Reached {
    /// What of the journal the file holds.
    position: Option<JournalPosition>,
    /// The last seqno of the file; `None` when nobody can tell.
    file_seqno: Option<Seqno>,
    /// The same, and then the last one of what was replayed.
    seqno: Option<Seqno>,
    /// Whether there is a file that can be read.
    has_file: bool,
}

/// What all records of a vBucket come to.
#[derive(Default)]
struct Surveyed {
    /// The last deletion: what stands before it is of a file that may be gone already.
    deleted: Option<Lsn>,
    /// The last record that contains what was before: that may be released. Behind a deletion
    /// everything is there, and such records are not needed.
    contained: Option<Lsn>,
    /// Rollbacks, and the last seqno that each left.
    rollbacks: Vec<(Lsn, Seqno)>,
    /// About what is to be replayed.
    bytes: u64,
}

/// Takes the records that files lack into a backlog, those of some vBuckets at a time. The memory
/// that it takes is that of vBuckets, and of what it keeps of these.
pub(crate) struct Replay {
    note: Option<JournalNote>,
    clock: Clock,
    /// Bytes of records that are replayed before files get them. One vBucket may have more.
    portion_bytes_max: u64,
    /// The vBuckets whose records are replayed now, and then those whose are later.
    portions: VecDeque<Set<Vbid>>,
    id: Option<JournalId>,
    reached: Map<Vbid, Reached>,
    surveyed: Map<Vbid, Surveyed>,
    known: KnownFiles,
    backlog: Backlog,
    other_histories: Map<Vbid, StorageError>,
}

/// What was found out.
pub(crate) struct Findings {
    /// vBuckets that the journal does not continue, and why.
    pub(crate) other_histories: Vec<(Vbid, StorageError)>,
    /// What is known of files.
    pub(crate) witnesses: Vec<Witness>,
}

impl Replay {
    pub(crate) fn new(
        report: &StartReport,
        note: Option<JournalNote>,
        clock: Clock,
        portion_bytes_max: u64,
    ) -> Self {
        let in_file = |found: &FoundVbucket| {
            let seqno = Some(found.high_seqno);
            let position = found.record.journal;
            (found.vbid, Reached { position, file_seqno: seqno, seqno, has_file: true })
        };
        let mut reached: Map<Vbid, Reached> = report.vbuckets.iter().map(in_file).collect();
        let backlog = Backlog::default();
        for vbid in report.unreadable_vbuckets() {
            backlog.hold(vbid);
            reached.insert(vbid, Reached::default());
        }
        let (surveyed, other_histories) = (Map::default(), Map::default());
        Self {
            note,
            clock,
            portion_bytes_max,
            portions: VecDeque::new(),
            id: None,
            reached,
            surveyed,
            known: KnownFiles::default(),
            backlog,
            other_histories,
        }
    }

    /// What was replayed of the present portion, and waits for files.
    pub(crate) fn backlog(&self) -> &Backlog {
        &self.backlog
    }

    /// The journal, once one was found.
    pub(crate) fn journal_id(&self) -> Option<JournalId> {
        self.id
    }

    /// What is known of files.
    pub(crate) fn witnesses(&self) -> Vec<Witness> {
        self.known.to_witnesses()
    }

    /// Whether vBuckets are left whose records were not replayed.
    pub(crate) fn has_more(&self) -> bool {
        self.portions.len() > 1
    }

    /// Has the records of the next portion replayed.
    pub(crate) fn begin_next_portion(&mut self) {
        self.portions.pop_front();
    }

    /// Divides the vBuckets among portions, in their order.
    fn divide(&mut self) {
        let sizes = self.surveyed.iter().map(|(vbid, surveyed)| (*vbid, surveyed.bytes));
        let mut sizes: Vec<(Vbid, u64)> = sizes.collect();
        sizes.sort_unstable();
        let (mut portions, mut bytes) = (VecDeque::from([Set::default()]), 0_u64);
        for (vbid, size) in sizes {
            if bytes > 0 && bytes.saturating_add(size) > self.portion_bytes_max {
                portions.push_back(Set::default());
                bytes = 0;
            }
            bytes = bytes.saturating_add(size);
            portions.back_mut().expect("there is one from the beginning").insert(vbid);
        }
        self.portions = portions;
    }

    /// vBuckets of which acknowledged writes may be in the part of the journal that is missing,
    /// with the last seqno that is left of each.
    pub(crate) fn shortened(&self, report: &StartReport) -> Vec<(Vbid, Seqno)> {
        let newest = self.newest_in_files();
        let left = |vbid: &Vbid| {
            let reached = self.reached.get(vbid)?;
            // A file with the newest group that is known of has what is known of.
            let is_newest = newest.is_some() && self.own_lsn(reached) == newest;
            Some((*vbid, reached.seqno?)).filter(|_| !is_newest)
        };
        let vbids = report.vbuckets.iter().map(|found| found.vbid);
        let mut shortened: Vec<_> = vbids.filter_map(|vbid| left(&vbid)).collect();
        shortened.sort_unstable();
        shortened
    }

    pub(crate) fn finish(self) -> (Backlog, Findings) {
        let witnesses = self.witnesses();
        let mut other_histories: Vec<_> = self.other_histories.into_iter().collect();
        other_histories.sort_unstable_by_key(|(vbid, _)| *vbid);
        (self.backlog, Findings { other_histories, witnesses })
    }

    /// What of this journal the vBucket's file holds.
    fn own_lsn(&self, reached: &Reached) -> Option<Lsn> {
        let position = reached.position.filter(|position| Some(JournalId(position.id)) == self.id);
        position.map(|position| Lsn(position.lsn))
    }

    /// The newest group of this journal that a file has.
    fn newest_in_files(&self) -> Option<Lsn> {
        self.reached.values().filter_map(|reached| self.own_lsn(reached)).max()
    }

    fn is_in_file(&self, lsn: Lsn, vbid: Vbid) -> bool {
        let reached = self.reached.get(&vbid);
        reached.and_then(|reached| self.own_lsn(reached)).is_some_and(|reached| reached >= lsn)
    }

    /// A file that can be read and is not up to a rollback has not gone back: that has failed, and
    /// what came after it went on from before.
    fn has_happened(&self, vbid: Vbid) -> bool {
        self.reached.get(&vbid).is_none_or(|reached| !reached.has_file)
    }

    /// The record does not follow what was reached: the file is of another history than the
    /// journal, or something is missing between. What comes is kept for the file that it follows.
    fn give_up(&mut self, vbid: Vbid, reached: Seqno, continues: Seqno) {
        drop(self.backlog.forget(vbid));
        self.backlog.hold(vbid);
        self.reached.insert(vbid, Reached::default());
        let (reached, continues) = (reached.0, continues.0);
        let error = StorageError::OtherHistory { vbid, reached, continues };
        self.other_histories.entry(vbid).or_insert(error);
    }

    fn reached_by(&mut self, vbid: Vbid) -> &mut Reached {
        // Without a file it begins with nothing.
        let nothing = Some(Seqno(0));
        let beginning = Reached { file_seqno: nothing, seqno: nothing, ..Reached::default() };
        self.reached.entry(vbid).or_insert(beginning)
    }

    fn push(&self, lsn: Lsn, batch: FlushBatch) {
        let vbid = batch.vbid;
        if self.backlog.push(lsn, batch, self.clock.now()).is_some() {
            drop(self.backlog.trim(vbid));
        }
    }

    fn replay_batch(&mut self, lsn: Lsn, mut batch: FlushBatch, supersedes: bool) {
        let (vbid, previous) = (batch.vbid, batch.previous_seqno);
        let at = *self.reached_by(vbid);
        // What supersedes contains all that came before it, so it has to follow the file alone.
        let before = if supersedes { at.file_seqno } else { at.seqno };
        let continues =
            |before: &Seqno| if supersedes { *before >= previous } else { *before == previous };
        if let Some(reached) = before.filter(|before| !continues(before)) {
            self.give_up(vbid, reached, previous);
        }
        let end = batch.items.iter().map(Item::seqno).max().unwrap_or(previous);
        let at = self.reached_by(vbid);
        at.seqno = Some(end);
        let file_seqno = at.file_seqno;
        if supersedes {
            // It was written when nobody could tell how much of it the file has.
            batch.items.retain(|item| file_seqno.is_none_or(|seqno| item.seqno() > seqno));
            drop(self.backlog.forget(vbid));
        }
        let rollbacks = self.surveyed.get(&vbid).map_or(&[][..], |found| &found.rollbacks[..]);
        if self.has_happened(vbid)
            && let Some(left) =
                rollbacks.iter().filter(|(at, _)| *at > lsn).map(|(_, left)| *left).min()
        {
            // Nothing comes back that a later rollback has discarded.
            batch.items.retain(|item| item.seqno() <= left);
        }
        self.push(lsn, batch);
    }

    fn replay_rollback(&mut self, lsn: Lsn, batch: FlushBatch) {
        let (vbid, left) = (batch.vbid, batch.previous_seqno);
        let reached = self.reached_by(vbid);
        let before = reached.seqno;
        reached.seqno = Some(left);
        if let Some(before) = before.filter(|before| *before < left) {
            self.give_up(vbid, before, left);
            self.reached_by(vbid).seqno = Some(left);
        }
        self.push(lsn, batch);
    }
}

impl Visitor for Replay {
    fn begin(&mut self, id: JournalId) {
        self.id = Some(id);
    }

    fn survey(&mut self, lsn: Lsn, vbid: Vbid, bytes: u32, content: &RawContent<'_>) {
        let is_lacking = !self.is_in_file(lsn, vbid);
        match content {
            RawContent::Delete => {
                let deleted = Some(lsn);
                // What stands before it counts for nothing any more: records, rollbacks and
                // witnesses.
                self.surveyed.insert(vbid, Surveyed { deleted, ..Surveyed::default() });
                self.known.note_deleted(vbid);
            }
            RawContent::Batch(batch) => {
                let surveyed = self.surveyed.entry(vbid).or_default();
                if batch.supersedes {
                    surveyed.contained = Some(lsn);
                    // What this one contains is not replayed.
                    surveyed.bytes = 0;
                }
                surveyed.bytes += if is_lacking { u64::from(bytes) } else { 0 };
            }
            RawContent::Rollback(batch) => {
                let left = batch.previous_seqno;
                let surveyed = self.surveyed.entry(vbid).or_default();
                surveyed.rollbacks.push((lsn, left));
                self.known.note_rolled_back(vbid, left);
            }
            RawContent::Witnesses(witnesses) => {
                witnesses.iter().for_each(|witness| self.known.note(*witness));
            }
        }
    }

    fn known_end(&mut self) -> KnownEnd {
        self.divide();
        let note = self.note.filter(|note| Some(note.id) == self.id);
        KnownEnd { lsn: self.newest_in_files(), segment: note.map(|note| note.segment) }
    }

    fn wants(&self, lsn: Lsn, vbid: Vbid, content: &RawContent<'_>) -> bool {
        let is_now = self.portions.front().is_some_and(|portion| portion.contains(&vbid));
        if matches!(content, RawContent::Witnesses(_)) || self.is_in_file(lsn, vbid) || !is_now {
            return false;
        }
        let Some(surveyed) = self.surveyed.get(&vbid) else { return true };
        match (content, surveyed.deleted) {
            (RawContent::Delete, deleted) => deleted == Some(lsn),
            (RawContent::Batch(batch), Some(deleted)) => lsn > deleted && !batch.supersedes,
            (RawContent::Rollback(_), Some(deleted)) => lsn > deleted && self.has_happened(vbid),
            (RawContent::Batch(_), None) => surveyed.contained.is_none_or(|end| lsn >= end),
            (RawContent::Rollback(_), None) => {
                let is_contained = surveyed.contained.is_some_and(|end| lsn < end);
                !is_contained && self.has_happened(vbid)
            }
            (RawContent::Witnesses(_), _) => false,
        }
    }

    fn replay(&mut self, lsn: Lsn, record: ReplayedRecord) -> Result<(), StorageError> {
        match record {
            ReplayedRecord::Delete { vbid } => {
                drop(self.backlog.delete(lsn, vbid, self.clock.now()));
                self.reached.remove(&vbid);
                self.reached_by(vbid);
            }
            ReplayedRecord::Batch { vbid, previous_seqno, supersedes, items, state } => {
                let batch = FlushBatch { vbid, previous_seqno, items, state: *state };
                self.replay_batch(lsn, batch, supersedes);
            }
            ReplayedRecord::Rollback { vbid, seqno, state } => {
                let items = Vec::new();
                let batch = FlushBatch { vbid, previous_seqno: seqno, items, state: *state };
                self.replay_rollback(lsn, batch);
            }
            ReplayedRecord::Witnesses(_) => {}
        }
        Ok(())
    }
}
