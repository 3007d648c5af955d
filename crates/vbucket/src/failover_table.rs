//! The branches of a vBucket's history. Source: docs/specification/engine.md, section 6.2.

use std::sync::Arc;

use document::limits::FAILOVER_ENTRIES_MAX;
use document::{FailoverEntry, Seqno, VbUuid};

/// Where a consumer wants its stream to begin, and what it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamStart {
    /// The last seqno that it has.
    pub start: Seqno,
    /// The snapshot that this is in.
    pub snapshot_start: Seqno,
    /// Its end.
    pub snapshot_end: Seqno,
    /// The branch of history that it has.
    pub uuid: VbUuid,
    /// Whether the branch must be known even when it has nothing.
    pub is_strict: bool,
    /// Up to where tombstones had been purged in what it has seen.
    pub purge: Option<Seqno>,
    /// Whether it misses no tombstones.
    pub ignores_purge: bool,
    /// Of a stream of some collections, the highest seqno in these.
    pub filtered_high: Option<Seqno>,
}

/// All branches that a vBucket's history runs through, newest first. Invariants: never empty,
/// at most [`FAILOVER_ENTRIES_MAX`] entries, no uuid is 0, seqnos never rise from newer to older.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailoverTable {
    /// Shared with every flush, which has the file remember them.
    entries: Arc<[FailoverEntry]>,
    /// There is one branch, which began here and which nobody has followed, so that no other node
    /// can have gone on from it.
    is_first_here: bool,
}

impl FailoverTable {
    /// The table of a new vBucket.
    pub fn new(uuid: VbUuid) -> Self {
        let first = [FailoverEntry { uuid, seqno: Seqno(0) }];
        Self { is_first_here: true, ..Self::from_entries(&first, uuid, Seqno(0)) }
    }

    /// A table read from a file: entries that break the invariants are dropped; when none is
    /// left, `fallback` begins at `high_seqno`.
    pub fn from_entries(entries: &[FailoverEntry], fallback: VbUuid, high_seqno: Seqno) -> Self {
        let mut sane: Vec<FailoverEntry> = Vec::with_capacity(entries.len());
        for &entry in entries {
            let in_order = sane.last().is_none_or(|newer| entry.seqno <= newer.seqno);
            if entry.uuid.0 != 0 && in_order && entry.seqno <= high_seqno {
                sane.push(entry);
            }
        }
        sane.truncate(FAILOVER_ENTRIES_MAX);
        if sane.is_empty() {
            assert!(fallback.0 != 0, "a branch has a name");
            sane.push(FailoverEntry { uuid: fallback, seqno: high_seqno });
        }
        Self { entries: sane.into(), is_first_here: false }
    }

    /// Begins a new branch at `seqno`, forgetting branches that would begin later. Where nothing
    /// was written and nobody has followed, the branch of a new vBucket is that one: of two, a
    /// consumer that names the first would have to go back to where it ended, to nothing.
    pub fn begin_branch(&mut self, uuid: VbUuid, seqno: Seqno) {
        assert!(uuid.0 != 0, "a branch has a name");
        if self.is_first_here && seqno == Seqno(0) {
            return;
        }
        self.is_first_here = false;
        let older = self.entries.iter().copied().filter(|entry| entry.seqno <= seqno);
        let newest = FailoverEntry { uuid, seqno };
        self.entries = std::iter::once(newest).chain(older).take(FAILOVER_ENTRIES_MAX).collect();
    }

    /// Somebody follows this history from now on, and may go on from it as another branch.
    pub fn note_followed(&mut self) {
        self.is_first_here = false;
    }

    /// Takes the place of the own table with another node's, whose history this vBucket follows. It
    /// may know branches that begin behind what is here. One without a sane entry changes nothing.
    pub fn adopt(&mut self, entries: &[FailoverEntry]) {
        self.is_first_here = false;
        if entries.iter().any(|entry| entry.uuid.0 != 0) {
            let (fallback, end) = (self.current().uuid, Seqno(u64::MAX));
            *self = Self::from_entries(entries, fallback, end);
        }
    }

    /// The branch that is written now.
    pub fn current(&self) -> FailoverEntry {
        *self.entries.first().expect("a failover table is never empty")
    }

    /// All branches, newest first.
    pub fn entries(&self) -> &Arc<[FailoverEntry]> {
        &self.entries
    }

    /// The seqno that a consumer has to go back to before its stream can begin; `None` when it can.
    /// `high` is the highest seqno here, `purge` the highest of a tombstone that was purged.
    /// Source: docs/specification/protocol.md, section 20.5.
    pub fn rollback_point(
        &self,
        request: &StreamStart,
        high: Seqno,
        purge: Seqno,
    ) -> Option<Seqno> {
        let StreamStart { start, mut snapshot_start, mut snapshot_end, uuid, .. } = *request;
        if start == Seqno(0) && (!request.is_strict || uuid == VbUuid(0)) {
            return None;
        }
        let misses_tombstones = !request.ignores_purge
            && start < purge
            && start != Seqno(0)
            && request.purge.unwrap_or_default() != purge;
        let had_none = |filtered: Seqno| start >= filtered && filtered <= purge;
        if misses_tombstones && !request.filtered_high.is_some_and(had_none) {
            return Some(Seqno(0));
        }
        let Some(index) = self.entries.iter().rposition(|entry| entry.uuid == uuid) else {
            return Some(Seqno(0));
        };
        let newer = index.checked_sub(1).and_then(|index| self.entries.get(index));
        let upper = newer.map_or(high, |newer| newer.seqno);
        if start == snapshot_start {
            // Nothing of the snapshot has come.
            snapshot_end = start;
        }
        if snapshot_end <= upper {
            return None;
        }
        if start == snapshot_end {
            // All of it has.
            snapshot_start = start;
        }
        Some(upper.min(snapshot_start))
    }

    /// Where the branch `uuid` ended: the beginning of the next newer one. `None` when this
    /// history never ran through it, or when it is the current branch.
    pub fn end_of(&self, uuid: VbUuid) -> Option<Seqno> {
        let index = self.entries.iter().position(|entry| entry.uuid == uuid)?;
        let newer = self.entries.get(index.checked_sub(1)?)?;
        Some(newer.seqno)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule with every case that it tells apart: the table {30: 3, 20: 2, 0: 1}, high seqno
    /// 40, tombstones purged up to 5.
    #[test]
    fn a_stream_goes_on_where_histories_agree() {
        let mut table = FailoverTable::new(VbUuid(1));
        table.begin_branch(VbUuid(2), Seqno(20));
        table.begin_branch(VbUuid(3), Seqno(30));
        let at = |uuid, start, snapshot_start, snapshot_end| StreamStart {
            start: Seqno(start),
            snapshot_start: Seqno(snapshot_start),
            snapshot_end: Seqno(snapshot_end),
            uuid: VbUuid(uuid),
            ..StreamStart::default()
        };
        let strict = |start| StreamStart { is_strict: true, ..start };
        let saw = |purge| StreamStart { purge: Some(Seqno(purge)), ..at(3, 4, 4, 4) };
        let filtered = |high| StreamStart { filtered_high: Some(Seqno(high)), ..at(3, 4, 4, 4) };
        for (request, expected, why) in [
            (at(0, 0, 0, 0), None, "nothing is there yet"),
            (at(9, 0, 0, 0), None, "nor matters of which branch"),
            (strict(at(0, 0, 0, 0)), None, "no branch is any branch"),
            (strict(at(9, 0, 0, 0)), Some(0), "unless a branch is insisted on"),
            (strict(at(1, 0, 0, 0)), None, "and that one is known"),
            (at(9, 10, 10, 10), Some(0), "an unknown branch"),
            (at(3, 4, 4, 4), Some(0), "tombstones behind it were purged"),
            (saw(5), None, "the consumer has seen that purge"),
            (saw(3), Some(0), "it has seen an older one"),
            (StreamStart { ignores_purge: true, ..at(3, 4, 4, 4) }, None, "it does not mind"),
            (filtered(4), None, "none of them was of its collections"),
            (filtered(6), Some(0), "one may have been"),
            (at(3, 40, 40, 40), None, "at the end"),
            (at(3, 35, 33, 40), None, "within a snapshot"),
            (at(3, 35, 33, 45), Some(33), "whose end is not here"),
            (at(3, 45, 45, 45), Some(40), "beyond the end"),
            (at(3, 45, 41, 45), Some(40), "a snapshot beyond the end"),
            (at(3, 45, 35, 50), Some(35), "the end lies in the snapshot"),
            (at(2, 30, 30, 30), None, "where a branch ended"),
            (at(2, 25, 22, 30), None, "before that"),
            (at(2, 35, 35, 35), Some(30), "behind that"),
            (at(2, 35, 25, 40), Some(25), "in a snapshot that runs over it"),
            (at(2, 25, 25, 35), None, "of which nothing has come"),
            (at(2, 35, 25, 35), Some(30), "a whole snapshot that runs over it"),
            (at(1, 20, 10, 20), None, "an older branch"),
            (at(1, 21, 10, 21), Some(20), "and beyond it"),
        ] {
            let seqno = table.rollback_point(&request, Seqno(40), Seqno(5));
            assert_eq!(seqno, expected.map(Seqno), "{why}: {request:?}");
        }
    }

    #[test]
    fn the_first_branch_is_kept_until_something_was_written_here_or_elsewhere() {
        let begun_at = |mut table: FailoverTable, seqno| {
            table.begin_branch(VbUuid(2), Seqno(seqno));
            table.entries().iter().map(|entry| entry.uuid.0).collect::<Vec<_>>()
        };
        let new = FailoverTable::new(VbUuid(1));
        assert_eq!(begun_at(new.clone(), 0), [1]);
        assert_eq!(begun_at(new.clone(), 1), [2, 1]);
        let read = FailoverTable::from_entries(new.entries(), VbUuid(9), Seqno(0));
        assert_eq!(begun_at(read, 0), [2, 1], "it may have been told");
        let mut followed = new.clone();
        followed.note_followed();
        assert_eq!(begun_at(followed, 0), [2, 1], "who has followed it may have gone on from it");
        let mut adopted = new;
        adopted.adopt(&[entry(7, 0)]);
        assert_eq!(begun_at(adopted, 0), [2, 7], "whose first branch it is may have written");
    }

    #[test]
    fn of_branches_with_one_name_the_oldest_counts() {
        let entries = [entry(7, 30), entry(7, 10), entry(1, 0)];
        let table = FailoverTable::from_entries(&entries, VbUuid(9), Seqno(40));
        let request = StreamStart {
            start: Seqno(35),
            snapshot_start: Seqno(35),
            snapshot_end: Seqno(35),
            uuid: VbUuid(7),
            ..StreamStart::default()
        };
        assert_eq!(table.rollback_point(&request, Seqno(40), Seqno(0)), Some(Seqno(30)));
    }

    fn entry(uuid: u64, seqno: u64) -> FailoverEntry {
        FailoverEntry { uuid: VbUuid(uuid), seqno: Seqno(seqno) }
    }

    #[test]
    fn a_new_branch_forgets_those_that_would_begin_later() {
        let mut table = FailoverTable::new(VbUuid(1));
        table.begin_branch(VbUuid(2), Seqno(50));
        table.begin_branch(VbUuid(3), Seqno(20));
        assert_eq!(**table.entries(), [entry(3, 20), entry(1, 0)]);
        assert_eq!(table.current(), entry(3, 20));
        assert_eq!(table.end_of(VbUuid(1)), Some(Seqno(20)));
        assert_eq!(table.end_of(VbUuid(3)), None);
        assert_eq!(table.end_of(VbUuid(9)), None);
    }

    #[test]
    fn the_table_has_a_limit() {
        let mut table = FailoverTable::new(VbUuid(1));
        for number in 2..60 {
            table.begin_branch(VbUuid(number), Seqno(number));
        }
        assert_eq!(table.entries().len(), FAILOVER_ENTRIES_MAX);
        assert_eq!(table.current(), entry(59, 59));
    }

    #[test]
    fn nonsense_from_a_file_is_dropped() {
        let read = [entry(0, 9), entry(7, 5), entry(6, 8), entry(5, 2), entry(4, 99)];
        let table = FailoverTable::from_entries(&read, VbUuid(1), Seqno(10));
        assert_eq!(**table.entries(), [entry(7, 5), entry(5, 2)]);
        let table = FailoverTable::from_entries(&[entry(0, 1)], VbUuid(1), Seqno(10));
        assert_eq!(**table.entries(), [entry(1, 10)]);
    }
}
