//! A vBucket without a file: tombstones stay for a while, and documents are deleted to make room.

use document::{Deletion, Item, Key, Operation, Seqno, VbucketState};

use super::Vbucket;
use super::write::tombstone_of;
use crate::collections::Collections;
use crate::effect::Effect;
use crate::hash_table::{ItemAction, VisitPosition};
use crate::operation::Now;

impl Vbucket {
    /// The vBucket as one that has no file: nothing is ever on disk, whatever leaves the log.
    #[must_use]
    pub fn ephemeral(mut self) -> Self {
        self.is_ephemeral = true;
        self.collections = Collections::keeping_events();
        self
    }

    /// Everything up to here is on disk, as clients may hear it: of a snapshot that is not whole
    /// there, nothing.
    pub fn persisted_for_clients(&self) -> Seqno {
        if self.is_ephemeral { Seqno(0) } else { self.persisted_whole_seqno }
    }

    /// The highest seqno of a tombstone that was purged.
    pub fn purge_seqno(&self) -> Seqno {
        self.purge_seqno.max(self.received_purge_seqno.min(self.high_seqno()))
    }

    /// Forgets tombstones of documents that were deleted before the second `before_second`, among
    /// those in at most `slots_max` slots. What the log still holds stays. Returns where to go on.
    pub fn purge_tombstones(
        &mut self,
        from: VisitPosition,
        slots_max: usize,
        before_second: u32,
        effects: &mut Vec<Effect>,
    ) -> Option<VisitPosition> {
        let consumed = self.persisted_seqno;
        let mut purge_seqno = self.purge_seqno;
        let mut purged_count = 0;
        let act = |item: &Item| {
            let is_old = item.is_deleted() && item.expiry() < before_second;
            if !is_old || item.seqno() > consumed {
                return ItemAction::Keep;
            }
            purge_seqno = purge_seqno.max(item.seqno());
            purged_count += 1;
            ItemAction::Remove
        };
        let next = self.visit_items(from, slots_max, act, effects);
        self.purge_seqno = purge_seqno;
        self.statistics.purged_tombstones += purged_count;
        next
    }

    /// Whether an ephemeral bucket may delete this item to make room.
    pub fn may_auto_delete(&self, item: &Item) -> bool {
        self.is_ephemeral && self.state == VbucketState::Active && !item.is_deleted()
    }

    /// Deletes the document `key` to make room, if it is still the version `seqno` and nobody holds
    /// it locked. Says whether it did.
    pub fn auto_delete(
        &mut self,
        key: Key<'_>,
        seqno: Seqno,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let newest = self.hash_table.get(key).filter(|newest| newest.seqno() == seqno).cloned();
        let Some(item) = newest.filter(|newest| self.may_auto_delete(newest)) else {
            return false;
        };
        let is_locked = self.locks.get(key, now.monotonic).is_some();
        if is_locked || self.prepared(key).is_some() || self.hides(&item) {
            return false;
        }
        let tombstone = tombstone_of(&item, Deletion::Explicit, Operation::Mutation, now);
        self.statistics.auto_deletions += 1;
        let before = self.before(&item);
        self.commit(tombstone, before, now, effects);
        true
    }
}

#[cfg(test)]
mod tests {
    use document::{ItemBuilder, ItemMeta, KeyBuf, VbUuid, Vbid};
    use platform::{Clock, WallTime};

    use super::*;
    use crate::hash_table::HashSeed;
    use crate::memory_account::MemoryAccount;
    use crate::operation::{StoreMode, WriteCondition};

    const SECOND: u32 = 1_700_000_000;

    fn vbucket() -> Vbucket {
        let account = MemoryAccount::default();
        let seed = HashSeed::new(1);
        Vbucket::new(Vbid(0), VbucketState::Active, VbUuid(7), seed, account).ephemeral()
    }

    fn key(name: &str) -> KeyBuf {
        KeyBuf::in_default_collection(name.as_bytes()).unwrap()
    }

    fn now() -> Now {
        let clock = Clock::simulated(WallTime(u64::from(SECOND) * 1_000_000_000));
        Now { monotonic: clock.now(), wall: clock.wall_time() }
    }

    fn set(vbucket: &mut Vbucket, name: &str) -> Seqno {
        let builder = ItemBuilder::new(key(name).as_key(), ItemMeta::default(), b"value");
        let condition = WriteCondition::default();
        let result = vbucket.store(StoreMode::Set, builder, condition, now(), &mut Vec::new());
        result.unwrap().done().unwrap().seqno
    }

    fn delete(vbucket: &mut Vbucket, name: &str) -> Seqno {
        let condition = WriteCondition::default();
        let result = vbucket.delete(key(name).as_key(), condition, now(), &mut Vec::new());
        result.unwrap().done().unwrap().seqno
    }

    fn empty_the_log(vbucket: &mut Vbucket) {
        let mut batch = vbucket.begin_flush().unwrap();
        batch.count_items();
        vbucket.flush_succeeded(&batch, Now::default(), &mut Vec::new());
    }

    /// Purges what was deleted before `second`, a slot at a time.
    fn purge(vbucket: &mut Vbucket, second: u32) {
        let mut position = Some(VisitPosition::default());
        while let Some(from) = position {
            position = vbucket.purge_tombstones(from, 1, second, &mut Vec::new());
        }
    }

    #[test]
    fn tombstones_stay_until_they_are_old_and_out_of_the_log() {
        let mut vbucket = vbucket();
        for name in ["a", "b", "c"] {
            set(&mut vbucket, name);
        }
        let deleted = delete(&mut vbucket, "a");
        purge(&mut vbucket, SECOND + 1);
        assert_eq!((vbucket.tombstone_count(), vbucket.purge_seqno()), (1, Seqno(0)), "in the log");
        empty_the_log(&mut vbucket);
        assert_eq!(vbucket.tombstone_count(), 1, "there is no file that has it");
        purge(&mut vbucket, SECOND);
        assert_eq!(vbucket.tombstone_count(), 1, "too young");
        purge(&mut vbucket, SECOND + 1);
        assert_eq!((vbucket.tombstone_count(), vbucket.purge_seqno()), (0, deleted));
        assert_eq!((vbucket.document_count(), vbucket.statistics().purged_tombstones), (2, 1));
        let revision = |vbucket: &mut Vbucket| {
            set(vbucket, "a");
            vbucket.get(key("a").as_key(), now(), &mut Vec::new()).unwrap().item.revision().0
        };
        assert_eq!(revision(&mut vbucket), 3, "revisions go on where the purged ones ended");
    }

    #[test]
    fn nothing_is_ever_on_disk() {
        let mut vbucket = vbucket();
        set(&mut vbucket, "k");
        empty_the_log(&mut vbucket);
        let observed = vbucket.observe(key("k").as_key(), now()).unwrap();
        let (_, is_persisted) = observed.unwrap();
        assert!(!is_persisted);
        assert_eq!(vbucket.seqno_status(VbUuid(7)).unwrap().persisted, Seqno(0));
        assert_eq!(vbucket.eject(key("k").as_key(), now(), &mut Vec::new()), Some(false));
    }

    #[test]
    fn room_is_made_by_deleting_the_version_that_was_chosen() {
        let mut vbucket = vbucket();
        let effects = &mut Vec::new();
        let old = set(&mut vbucket, "k");
        let newest = set(&mut vbucket, "k");
        assert!(!vbucket.auto_delete(key("k").as_key(), old, now(), effects), "it has changed");
        let duration = std::time::Duration::from_secs(15);
        let locked = vbucket.lock(key("k").as_key(), duration, now(), effects).unwrap();
        assert!(!vbucket.auto_delete(key("k").as_key(), newest, now(), effects), "it is locked");
        vbucket.unlock(key("k").as_key(), locked.cas, now()).unwrap();
        assert!(vbucket.auto_delete(key("k").as_key(), newest, now(), effects));
        assert_eq!((vbucket.document_count(), vbucket.tombstone_count()), (0, 1));
        assert_eq!(vbucket.high_seqno(), newest.next(), "a deletion has its place in history");
        let tombstone = newest.next();
        assert!(!vbucket.auto_delete(key("k").as_key(), tombstone, now(), effects));
        assert_eq!(vbucket.statistics().auto_deletions, 1);
        let kept = set(&mut vbucket, "kept");
        let change = crate::RoleChange {
            state: VbucketState::Replica,
            topology: None,
            is_takeover: false,
            fresh_uuid: VbUuid(8),
        };
        vbucket.change_role(change, Now::default(), effects);
        assert!(!vbucket.auto_delete(key("kept").as_key(), kept, now(), effects), "a replica");
    }
}
