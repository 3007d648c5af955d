//! Durable writes of a replica: up to where it may say that it holds them. Source:
//! docs/specification/engine.md, section 5.6; docs/specification/protocol.md, section 21.

use std::collections::VecDeque;

use document::{DurabilityLevel, Seqno};

use super::{TrackedWrite, TrackedWrites};

/// A snapshot that was received whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotEnd {
    /// Its last seqno.
    pub(crate) seqno: Seqno,
    /// Set if it came from the file of the sender: up to where that had prepares. What has ended
    /// there was left out, so that the prepares that came do not tell.
    pub(crate) high_prepared_on_disk: Option<Seqno>,
}

/// Tracks what a replica, or a pending vBucket, receives.
#[derive(Debug, Default)]
pub(crate) struct PassiveMonitor {
    pub(crate) writes: TrackedWrites,
    /// Snapshots whose prepares are not all held as their levels demand, in order.
    ends: VecDeque<SnapshotEnd>,
    /// Prepares up to here may come again, in other words: their ends may have been left out while
    /// no stream came.
    duplicates_through: Seqno,
    /// How many of `writes`, from the first on, have ended.
    completed_count: usize,
}

impl PassiveMonitor {
    /// Goes on with `writes`. Up to `whole` everything that came before is consistent.
    pub(crate) fn new(writes: TrackedWrites, whole: Seqno) -> Self {
        let mut monitor = Self { writes, ..Self::default() };
        monitor.end_snapshot(SnapshotEnd { seqno: whole, high_prepared_on_disk: None });
        monitor
    }

    /// Opens the window in which prepares may come again.
    pub(crate) fn begin_stream(&mut self) {
        self.duplicates_through = self.writes.last_seqno();
    }

    /// Whether another version may take the place of the prepare at `seqno`, which has not ended
    /// as far as is known here.
    pub(crate) fn may_replace(&self, seqno: Seqno) -> bool {
        seqno <= self.duplicates_through
    }

    /// Tracks a prepare.
    pub(crate) fn track(&mut self, write: TrackedWrite) {
        self.writes.push(write);
    }

    /// Whether the prepare at `seqno` is the next one to end.
    pub(crate) fn is_next(&self, seqno: Seqno) -> bool {
        self.writes.get(self.completed_count).is_some_and(|write| write.seqno == seqno)
    }

    /// The prepare at `seqno` has ended in order, or been replaced, or ended as a part of a
    /// snapshot from a file, which has no order of ends.
    pub(crate) fn complete(&mut self, seqno: Seqno) {
        if let Some(write) = self.writes.find_mut(seqno) {
            write.is_completed = true;
        }
        self.count_completed();
    }

    fn count_completed(&mut self) {
        while self.writes.get(self.completed_count).is_some_and(|write| write.is_completed) {
            self.completed_count += 1;
        }
    }

    /// Takes out writes that have not ended and never will.
    pub(crate) fn drop_writes(
        &mut self,
        is_dropped: impl Fn(&TrackedWrite) -> bool,
    ) -> Vec<TrackedWrite> {
        // None of the first ones that have ended is among them.
        let dropped = self.writes.take_out(|write| !write.is_completed && is_dropped(write));
        self.count_completed();
        dropped
    }

    /// The first prepare that has not ended, if it is not above `seqno`.
    pub(crate) fn next_through(&self, seqno: Seqno) -> Option<&TrackedWrite> {
        self.writes.get(self.completed_count).filter(|write| write.seqno <= seqno)
    }

    /// All prepares up to `seqno` have ended.
    pub(crate) fn note_completed(&mut self, seqno: Seqno) {
        self.writes.high_completed = self.writes.high_completed.max(seqno);
    }

    /// A snapshot has come whole.
    pub(crate) fn end_snapshot(&mut self, end: SnapshotEnd) {
        let last = self.writes.last_seqno();
        let judged = self.ends.back().map_or(self.writes.high_prepared, |end| end.seqno);
        // A memory snapshot without prepares does not move what is held.
        if end.high_prepared_on_disk.is_some() || last > judged {
            self.ends.push_back(end);
        }
    }

    /// Moves over what is held now that everything up to `persisted` is. Returns whether there is
    /// more to acknowledge than before, and the writes that need not be remembered any more.
    pub(crate) fn advance(&mut self, persisted: Seqno) -> Advanced {
        let before = self.writes.high_prepared;
        while let Some(&end) = self.ends.front() {
            let is_persisted = end.seqno <= persisted;
            // Of a disk snapshot nothing is held before all of it is persisted, whatever the
            // levels.
            if end.high_prepared_on_disk.is_some() && !is_persisted {
                break;
            }
            if !self.advance_within(end, is_persisted) {
                break;
            }
            self.ends.pop_front();
        }
        let mut forgotten = Vec::new();
        // What has ended stays until it is held: the high prepared seqno has to pass it.
        while self.completed_count > 0
            && self.writes.front().is_some_and(|write| write.seqno <= self.writes.high_prepared)
        {
            self.completed_count -= 1;
            forgotten.extend(self.writes.pop_front());
        }
        Advanced { has_risen: self.writes.high_prepared > before, forgotten }
    }

    /// Passes prepares of the snapshot that ends at `end`; says whether it passed all.
    fn advance_within(&mut self, end: SnapshotEnd, is_persisted: bool) -> bool {
        let mut index = self.writes.count_through(self.writes.high_prepared);
        while let Some(write) = self.writes.get(index).filter(|write| write.seqno <= end.seqno) {
            if write.level == DurabilityLevel::PersistToMajority && !is_persisted {
                return false;
            }
            self.writes.high_prepared = write.seqno;
            index += 1;
        }
        if let Some(on_disk) = end.high_prepared_on_disk {
            self.writes.high_prepared = self.writes.high_prepared.max(on_disk);
        }
        true
    }

    /// How many snapshots wait for their prepares to be held.
    pub(crate) fn end_count(&self) -> usize {
        self.ends.len()
    }

    /// The writes that have not ended, for an active vBucket, and those that have.
    pub(crate) fn into_uncompleted(mut self) -> (TrackedWrites, Vec<TrackedWrite>) {
        let completed = self.writes.take_out(|write| write.is_completed);
        (self.writes, completed)
    }
}

/// What has come of an advance.
#[derive(Debug)]
pub(crate) struct Advanced {
    /// Whether there is more to acknowledge.
    pub(crate) has_risen: bool,
    /// What need not be remembered any more.
    pub(crate) forgotten: Vec<TrackedWrite>,
}
