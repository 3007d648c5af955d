//! Coming back from a file, and letting values go that are in it.

use std::sync::Arc;

use document::{Item, Seqno, VbUuid, Vbid, VbucketState};

use super::{Vbucket, release};
use crate::checkpoint::{CheckpointManager, LogPersistence};
use crate::durability::{Monitor, TrackedWrites};
use crate::effect::Effect;
use crate::failover_table::FailoverTable;
use crate::hash_table::HashSeed;
use crate::hlc::Hlc;
use crate::memory_account::MemoryAccount;
use crate::persistence::{PersistentState, StateInFile};

/// What a vBucket comes back from.
#[derive(Clone, Debug)]
pub struct Restored {
    /// Which vBucket.
    pub vbid: Vbid,
    /// What its file remembers.
    pub state: PersistentState,
    /// How many documents are to be expected.
    pub document_count: usize,
    /// A fresh branch name: for a table that the file does not have, and for the branch that
    /// begins in an active vBucket when the node did not stop in order.
    pub fresh_uuid: VbUuid,
    /// Whether the node stopped in order: everything it acknowledged is in the file.
    pub was_clean: bool,
}

/// How often keys have left memory for the file, in one history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departures {
    uuid: VbUuid,
    count: u64,
}

impl Vbucket {
    /// A vBucket that continues the history in its file; its documents follow through
    /// [`Vbucket::restore_document`]. After a crash acknowledged but unpersisted mutations of an
    /// active vBucket may be missing, so a new branch of history begins where the file ends.
    pub fn restore(restored: Restored, seed: HashSeed, account: MemoryAccount) -> Self {
        let Restored { vbid, state, document_count, fresh_uuid, was_clean } = restored;
        let (high_seqno, whole_seqno) = (state.high_seqno, state.whole_seqno());
        let snapshot = state.snapshot_in_file();
        let mut failover_table =
            FailoverTable::from_entries(&state.failover_table, fresh_uuid, high_seqno);
        // A table that was made anew begins with that branch already.
        let begins_branch = !was_clean
            && state.state == VbucketState::Active
            && failover_table.current().uuid != fresh_uuid;
        if begins_branch {
            failover_table.begin_branch(fresh_uuid, high_seqno);
        }
        let mut vbucket = Self::new(vbid, state.state, fresh_uuid, seed, account);
        vbucket.failover_table = failover_table;
        vbucket.checkpoints = CheckpointManager::continuing(high_seqno, LogPersistence::File)
            .shown_in(Arc::clone(&vbucket.figures.readers));
        vbucket.persisted_seqno = high_seqno;
        vbucket.persisted_whole_seqno = whole_seqno;
        vbucket.persisted_snapshot = snapshot;
        vbucket.applied_seqno = high_seqno;
        vbucket.clock = Hlc::continuing(state.max_cas);
        vbucket.max_deleted_revision = state.max_deleted_revision;
        vbucket.topology = state.topology;
        let (high_prepared, completed) =
            (state.facts.high_prepared_seqno, state.facts.completed_seqno);
        let writes = TrackedWrites::continuing(high_prepared, completed);
        let limits = vbucket.durability_limits;
        vbucket.monitor = Monitor::new(vbucket.state, writes, &vbucket.topology, limits);
        if state.facts.prepared_seqno > Seqno(0) {
            vbucket.checkpoints.set_max_visible_seqno(state.facts.max_visible_seqno);
        }
        vbucket.snapshot = snapshot;
        vbucket.snapshot_kind = state.facts.checkpoint_kind;
        vbucket.facts = state.facts;
        if vbucket.has_history() {
            vbucket.whole_from_seqno = state.whole_from_seqno;
        }
        vbucket.note_purged(state.purge_seqno);
        // The file does not know of the branch yet.
        vbucket.state_in_file =
            if begins_branch { StateInFile::Outdated } else { StateInFile::Present };
        vbucket.hash_table.reserve(document_count);
        vbucket.settle_account();
        vbucket
    }

    /// The file ends at `file_seqno`: what it lacks of the history is in the journal, and comes
    /// through [`Vbucket::restore_unapplied`]. Called before anything is put into memory.
    pub fn note_file_is_behind(&mut self, file_seqno: Seqno) {
        assert!(file_seqno <= self.persisted_seqno, "the file is not ahead of its vBucket");
        self.applied_seqno = file_seqno;
    }

    /// Puts a document, or a tombstone, into memory that the file lacks, where it stays until the
    /// file has it; in the order of seqnos. Dropping what it returns is the caller's business,
    /// outside the lock.
    pub fn restore_unapplied(&mut self, item: Item) -> Option<Item> {
        assert!(item.seqno() > self.applied_seqno, "what the file has is read from it");
        assert!(item.seqno() <= self.persisted_seqno, "the journal is not ahead of its vBucket");
        self.clock.observe(item.cas());
        let item = item.charged_to(self.account.id());
        let replaced = self.hash_table.insert(item.clone());
        self.note_restored(&item, replaced.as_ref());
        self.settle_account();
        replaced
    }

    /// Puts a document from the file into memory unless a newer version is there already. Dropping
    /// what it returns is the caller's business, outside the lock.
    pub fn restore_document(&mut self, item: Item) -> Option<Item> {
        assert!(item.seqno() <= self.applied_seqno, "the file is not ahead of its vBucket");
        self.clock.observe(item.cas());
        if self.hash_table.get(item.key()).is_some_and(|newest| newest.seqno() >= item.seqno()) {
            return Some(item);
        }
        let item = item.charged_to(self.account.id());
        let replaced = self.hash_table.insert(item.clone());
        self.note_restored(&item, replaced.as_ref());
        self.settle_account();
        replaced
    }

    /// Makes room to remember the keys of `count` documents that are only in the file.
    pub fn reserve_keys(&mut self, count: usize) {
        self.absent.reserve(count);
        self.settle_account();
    }

    /// Remembers that `item`, of which nothing stays in memory, is in the file.
    pub fn restore_key(&mut self, item: &Item) {
        assert!(item.seqno() <= self.applied_seqno, "the file is not ahead of its vBucket");
        self.clock.observe(item.cas());
        self.absent.document_count += usize::from(!item.is_deleted());
        self.note_restored(item, None);
        self.note_departure(item.key());
        self.settle_account();
    }

    /// Another value whenever a key leaves memory for the file, and when the bucket is emptied:
    /// what was read from the file before may be older than what is there now.
    pub fn departures(&self) -> Departures {
        Departures { uuid: self.uuid(), count: self.absent.departures }
    }

    /// Puts a document, read from the file, into memory that was not there when there had been
    /// `departures`, unless one was there since. Returns what is left over, to be dropped outside
    /// the lock.
    pub fn restore_absent(&mut self, item: Item, departures: Departures) -> Option<Item> {
        let is_here = self.hash_table.get(item.key()).is_some();
        if is_here || self.hides(&item) || self.departures() != departures {
            return Some(item);
        }
        self.absent.document_count = self.absent.document_count.saturating_sub(1);
        self.absent.forget(item.key());
        let replaced = self.put_back(item);
        self.settle_account();
        replaced
    }

    /// Brings the value of `item`, read from the file, back to the document that misses it.
    /// Returns what is left over, to be dropped outside the lock.
    pub fn restore_value(&mut self, item: Item) -> Option<Item> {
        let misses_it = self
            .hash_table
            .get(item.key())
            .is_some_and(|newest| newest.is_ejected() && is_same_version(newest, &item));
        if !misses_it {
            return Some(item);
        }
        let replaced = self.put_back(item);
        self.settle_account();
        replaced
    }

    /// Puts another form of a value, compressed or not, in the place of the one that is there,
    /// unless there is another version by now, and says whether it did.
    pub fn replace_form(&mut self, item: Item, effects: &mut Vec<Effect>) -> bool {
        let is_there = self
            .hash_table
            .get(item.key())
            .is_some_and(|newest| !newest.is_ejected() && is_same_version(newest, &item));
        let left_over = if is_there { self.hash_table.insert(item) } else { Some(item) };
        release(left_over, effects);
        self.settle_account();
        is_there
    }

    /// The file does not have the value that the version in `metadata` misses: the document is
    /// gone. Only a damaged file does this to a document; the reader sees "not found" instead of
    /// waiting for ever. A tombstone may have been purged since it was looked up.
    pub fn forget_lost_document(&mut self, metadata: &Item) -> Option<Item> {
        if metadata.is_deleted() {
            self.absent.forget(metadata.key());
            return None;
        }
        let is_that = self
            .hash_table
            .get(metadata.key())
            .is_some_and(|newest| newest.is_ejected() && is_same_version(newest, metadata));
        let lost = if is_that { self.hash_table.remove(metadata.key()) } else { None };
        if let Some(lost) = &lost {
            let (id, seqno) = (lost.key().collection(), lost.seqno());
            self.collections.note_version(id, seqno, true, false);
        }
        self.settle_account();
        lost
    }
}

/// The CAS tells apart what has the same seqno in two histories: the bucket may have been emptied
/// while a value was on its way.
pub(super) fn is_same_version(one: &Item, other: &Item) -> bool {
    one.seqno() == other.seqno() && one.cas() == other.cas()
}

#[cfg(test)]
mod tests {
    use document::{Cas, ItemBuilder, ItemMeta, KeyBuf, RevSeqno, Seqno, VbucketState};

    use super::*;

    fn item(name: &str, cas: u64) -> Item {
        let key = KeyBuf::in_default_collection(name.as_bytes()).unwrap();
        let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), b"value");
        builder.finish(Cas(cas), Seqno(1), RevSeqno(1))
    }

    /// A vBucket whose file goes to seqno 1.
    fn vbucket(uuid: u64) -> Vbucket {
        let (account, seed) = (MemoryAccount::default(), HashSeed::new(1));
        let mut vbucket = Vbucket::new(Vbid(0), VbucketState::Active, VbUuid(uuid), seed, account);
        vbucket.persisted_seqno = Seqno(1);
        vbucket.applied_seqno = Seqno(1);
        vbucket
    }

    #[test]
    fn what_the_file_of_an_emptied_history_does_not_have_is_not_missed_in_the_next_one() {
        let mut vbucket = vbucket(1);
        let (old, new) = (item("k", 1).ejected(), item("k", 2).ejected());
        assert!(vbucket.restore_document(new.clone()).is_none());
        assert!(vbucket.forget_lost_document(&old).is_none());
        assert_eq!(vbucket.document_count(), 1);
        assert!(vbucket.forget_lost_document(&new).is_some());
        assert_eq!(vbucket.document_count(), 0);
    }

    #[test]
    fn what_was_read_of_an_emptied_history_is_not_put_into_the_next_one() {
        // Each with one key in the file, so that nothing but the history tells them apart.
        let [old, mut new] = [("old", 1), ("new", 2)].map(|(name, uuid)| {
            let mut vbucket = vbucket(uuid);
            vbucket.restore_key(&item(name, 1));
            vbucket
        });
        assert!(new.restore_absent(item("old", 1), old.departures()).is_some());
        assert_eq!(new.document_count_in_memory(), 0);
        assert!(new.restore_absent(item("new", 1), new.departures()).is_none());
        assert_eq!((new.document_count_in_memory(), new.document_count()), (1, 1));
    }
}
