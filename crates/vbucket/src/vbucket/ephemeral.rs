//! A vBucket without a file: tombstones stay for a while, and documents are deleted to make room.

use std::sync::Arc;

use document::{Deletion, Item, Key, Operation, Seqno, VbucketState};

use super::Vbucket;
use super::write::tombstone_of;
use crate::collections::Collections;
use crate::effect::Effect;
use crate::hash_table::{ItemAction, VisitPosition};
use crate::operation::Now;

/// Events that are forgotten in one portion.
const EVENTS_PORTION_MAX: usize = 128;

impl Vbucket {
    /// The vBucket as one that has no file: nothing is ever on disk, whatever leaves the log.
    #[must_use]
    pub fn ephemeral(mut self) -> Self {
        self.is_ephemeral = true;
        self.collections = Collections::keeping_events(Arc::clone(&self.figures.collections));
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
        self.figures.done.purged_tombstones.add(purged_count);
        next
    }

    /// Forgets a portion of the events that say what was dropped before the second
    /// `before_second`. As of tombstones, what the log still holds stays. Whether there may be more
    /// to forget.
    pub fn purge_events(&mut self, before_second: u32, effects: &mut Vec<Effect>) -> bool {
        let consumed = self.persisted_seqno;
        let may_go = |item: &Item| item.expiry() < before_second && item.seqno() <= consumed;
        let mut portion = 0..EVENTS_PORTION_MAX;
        let has_more = loop {
            if portion.next().is_none() {
                break true;
            }
            let Some(gone) = self.collections.take_dropped(may_go) else { break false };
            for item in gone {
                self.purge_seqno = self.purge_seqno.max(item.seqno());
                self.figures.done.purged_tombstones.add(usize::from(item.is_deleted()));
                effects.push(Effect::Release(item));
            }
        };
        self.publish();
        has_more
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
        let is_locked = self.lock_on(key, now).is_some();
        if is_locked || self.prepared(key).is_some() || self.hides(&item) {
            return false;
        }
        let tombstone = tombstone_of(&item, Deletion::Explicit, Operation::Mutation, now);
        self.figures.done.auto_deletions.add(1);
        let before = self.before(&item);
        self.commit(tombstone, before, now, effects);
        true
    }
}

#[cfg(test)]
mod tests {
    use document::{ItemBuilder, ItemMeta, KeyBuf, Manifest, ManifestEdit, VbUuid, Vbid};
    use platform::{Clock, WallTime};

    use super::*;
    use crate::Erasure;
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

    /// An event stayed for each collection that was ever dropped.
    #[test]
    fn what_was_dropped_is_forgotten_as_tombstones_are() {
        let mut vbucket = vbucket();
        let mut manifest = Manifest::default();
        let mut follow = |vbucket: &mut Vbucket, edit: ManifestEdit<'_>| {
            manifest = manifest.edited(edit).unwrap();
            vbucket.follow_manifest(&manifest, now(), &mut Vec::new()).unwrap();
        };
        let scope = "s";
        follow(&mut vbucket, ManifestEdit::CreateScope { scope });
        for number in 0..300 {
            let name = format!("c{number}");
            let collection = &*name;
            let (max_ttl, history) = (None, false);
            follow(
                &mut vbucket,
                ManifestEdit::CreateCollection { scope, collection, max_ttl, history },
            );
            let (max_ttl, history) = (Some(Some(1)), None);
            follow(
                &mut vbucket,
                ManifestEdit::ChangeCollection { scope, collection, max_ttl, history },
            );
            if number > 0 {
                follow(&mut vbucket, ManifestEdit::DropCollection { scope, collection });
            }
        }
        let last = vbucket.high_seqno();
        let purge = |vbucket: &mut Vbucket, second| {
            while vbucket.purge_events(second, &mut Vec::new()) {}
            vbucket.events().len()
        };
        assert_eq!(purge(&mut vbucket, SECOND + 1), 3 + 2 * 299, "in the log");
        empty_the_log(&mut vbucket);
        assert_eq!(purge(&mut vbucket, SECOND + 1), 3 + 2 * 299, "documents may be in memory");
        let erase = |vbucket: &mut Vbucket| {
            let from = VisitPosition::default();
            while vbucket.erase_dropped(from, usize::MAX, &mut Vec::new()) != Erasure::Nothing {}
        };
        erase(&mut vbucket);
        assert_eq!(purge(&mut vbucket, SECOND), 3 + 2 * 299, "too young");
        assert_eq!((purge(&mut vbucket, SECOND + 1), vbucket.purge_seqno()), (3, last));
        assert_eq!(vbucket.collections().count(), 1);
        follow(&mut vbucket, ManifestEdit::DropScope { scope });
        empty_the_log(&mut vbucket);
        erase(&mut vbucket);
        assert_eq!(purge(&mut vbucket, SECOND + 1), 0);
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
