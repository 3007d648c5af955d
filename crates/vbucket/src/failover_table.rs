//! The branches of a vBucket's history. Source: engine facts, section 6.2.

use document::limits::FAILOVER_ENTRIES_MAX;
use document::{Seqno, VbUuid};

/// One branch: `uuid` wrote everything after `seqno`, until the next newer entry's seqno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailoverEntry {
    /// The branch.
    pub uuid: VbUuid,
    /// Where it begins.
    pub seqno: Seqno,
}

/// All branches that a vBucket's history runs through, newest first. Invariants: never empty,
/// at most [`FAILOVER_ENTRIES_MAX`] entries, no uuid is 0, seqnos never rise from newer to older.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailoverTable {
    entries: Vec<FailoverEntry>,
}

impl FailoverTable {
    /// The table of a new vBucket.
    pub fn new(uuid: VbUuid) -> Self {
        Self::from_entries(vec![FailoverEntry { uuid, seqno: Seqno(0) }], uuid, Seqno(0))
    }

    /// A table read from a file: entries that break the invariants are dropped; when none is
    /// left, `fallback` begins at `high_seqno`.
    pub fn from_entries(entries: Vec<FailoverEntry>, fallback: VbUuid, high_seqno: Seqno) -> Self {
        let mut sane: Vec<FailoverEntry> = Vec::with_capacity(entries.len());
        for entry in entries {
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
        Self { entries: sane }
    }

    /// Begins a new branch at `seqno`, forgetting branches that would begin later.
    pub fn begin_branch(&mut self, uuid: VbUuid, seqno: Seqno) {
        assert!(uuid.0 != 0, "a branch has a name");
        self.entries.retain(|entry| entry.seqno <= seqno);
        self.entries.insert(0, FailoverEntry { uuid, seqno });
        self.entries.truncate(FAILOVER_ENTRIES_MAX);
    }

    /// Takes the place of the own table with another node's, whose history this vBucket follows. It
    /// may know branches that begin behind what is here. One without a sane entry changes nothing.
    pub fn adopt(&mut self, entries: &[FailoverEntry]) {
        if entries.iter().any(|entry| entry.uuid.0 != 0) {
            let (fallback, end) = (self.current().uuid, Seqno(u64::MAX));
            *self = Self::from_entries(entries.to_vec(), fallback, end);
        }
    }

    /// The branch that is written now.
    pub fn current(&self) -> FailoverEntry {
        *self.entries.first().expect("a failover table is never empty")
    }

    /// All branches, newest first.
    pub fn entries(&self) -> &[FailoverEntry] {
        &self.entries
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

    fn entry(uuid: u64, seqno: u64) -> FailoverEntry {
        FailoverEntry { uuid: VbUuid(uuid), seqno: Seqno(seqno) }
    }

    #[test]
    fn a_new_branch_forgets_those_that_would_begin_later() {
        let mut table = FailoverTable::new(VbUuid(1));
        table.begin_branch(VbUuid(2), Seqno(50));
        table.begin_branch(VbUuid(3), Seqno(20));
        assert_eq!(table.entries(), [entry(3, 20), entry(1, 0)]);
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
        let read = vec![entry(0, 9), entry(7, 5), entry(6, 8), entry(5, 2), entry(4, 99)];
        let table = FailoverTable::from_entries(read, VbUuid(1), Seqno(10));
        assert_eq!(table.entries(), [entry(7, 5), entry(5, 2)]);
        let table = FailoverTable::from_entries(vec![entry(0, 1)], VbUuid(1), Seqno(10));
        assert_eq!(table.entries(), [entry(1, 10)]);
    }
}
