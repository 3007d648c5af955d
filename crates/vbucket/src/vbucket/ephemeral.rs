//! A vBucket without a file: tombstones stay for a while, and documents are deleted to make room.

use document::{Deletion, Item, Key, Seqno, VbucketState};

use super::Vbucket;
use crate::effect::Effect;
use crate::eviction::FrequencyHistogram;
use crate::hash_table::{ItemAction, VisitPosition};
use crate::operation::Now;

impl Vbucket {
    /// The vBucket as one that has no file: nothing is ever on disk, whatever leaves the log.
    #[must_use]
    pub fn ephemeral(mut self) -> Self {
        self.is_ephemeral = true;
        self
    }

    /// Everything up to here is on disk, as clients may hear it.
    pub fn persisted_for_clients(&self) -> Seqno {
        if self.is_ephemeral { Seqno(0) } else { self.persisted_seqno }
    }

    /// The highest seqno of a tombstone that was purged.
    pub fn purge_seqno(&self) -> Seqno {
        self.purge_seqno
    }

    /// Forgets tombstones of documents that were deleted before the second `before_second`, among
    /// those in about `slots_max` slots. What the log still holds stays. Returns where to go on,
    /// and how many were forgotten.
    pub fn purge_tombstones(
        &mut self,
        from: VisitPosition,
        slots_max: usize,
        before_second: u32,
        effects: &mut Vec<Effect>,
    ) -> (Option<VisitPosition>, usize) {
        let consumed = self.persisted_seqno;
        let mut purge_seqno = self.purge_seqno;
        let mut count = 0;
        let act = |item: &Item| {
            let is_old = item.is_deleted() && item.expiry() < before_second;
            if !is_old || item.seqno() > consumed {
                return ItemAction::Keep;
            }
            purge_seqno = purge_seqno.max(item.seqno());
            count += 1;
            ItemAction::Remove
        };
        let next = self.visit_items(from, slots_max, act, effects);
        self.purge_seqno = purge_seqno;
        self.statistics.purged_tombstones += u64::try_from(count).unwrap_or(u64::MAX);
        (next, count)
    }

    /// Deletes documents to make room, among those in about `slots_max` slots. The others count as
    /// used a little less. Returns where to go on, and how many were deleted.
    pub fn auto_delete_portion(
        &mut self,
        from: VisitPosition,
        slots_max: usize,
        wanted: RoomWanted,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> (Option<VisitPosition>, usize) {
        let mut chosen = Vec::new();
        let mut freed_bytes = 0;
        let room = self.room_maker();
        let act = |item: &Item| {
            if freed_bytes >= wanted.bytes {
                return ItemAction::Keep;
            }
            if room.may_delete(item) && item.heat() <= wanted.heat_max {
                freed_bytes += bytes_of(item);
                chosen.push(item.clone());
            } else {
                item.set_heat(item.heat().saturating_sub(1));
            }
            ItemAction::Keep
        };
        let next = self.visit_items(from, slots_max, act, effects);
        let mut count = 0;
        for item in chosen {
            count += usize::from(self.auto_delete(item.key(), item.seqno(), now, effects));
            effects.push(Effect::Release(item));
        }
        (next, count)
    }

    /// Adds to `sample` what there is to make room with, among the items in about `slots_max`
    /// slots. Returns where to go on.
    pub fn sample_room(
        &mut self,
        from: VisitPosition,
        slots_max: usize,
        sample: &mut RoomSample,
    ) -> Option<VisitPosition> {
        let room = self.room_maker();
        let act = |item: &Item| {
            if item.is_deleted() {
                sample.tombstones_bytes += bytes_of(item);
            } else {
                sample.documents_bytes += bytes_of(item);
            }
            if room.may_delete(item) {
                sample.heat.record(item.heat());
            }
            ItemAction::Keep
        };
        self.visit_items(from, slots_max, act, &mut Vec::new())
    }

    fn room_maker(&self) -> RoomMaker {
        let may_delete = self.is_ephemeral && self.state == VbucketState::Active;
        RoomMaker { consumed: may_delete.then_some(self.persisted_seqno) }
    }

    /// Deletes the document `key` to make room, if it is still the version `seqno` and nobody holds
    /// it locked. Says whether it did.
    fn auto_delete(
        &mut self,
        key: Key<'_>,
        seqno: Seqno,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> bool {
        let newest = self.hash_table.get(key).filter(|newest| newest.seqno() == seqno).cloned();
        let Some(item) = newest.filter(|newest| self.room_maker().may_delete(newest)) else {
            return false;
        };
        if self.locks.get(key, now.monotonic).is_some() {
            return false;
        }
        let tombstone = super::write::tombstone_of(&item, Deletion::Explicit, now);
        self.statistics.auto_deletions += 1;
        self.commit(tombstone, Some(item.revision()), now, effects);
        true
    }
}

/// How much room is wanted, and at whose cost.
#[derive(Clone, Copy, Debug)]
pub struct RoomWanted {
    /// Documents that are used no more than so may go.
    pub heat_max: u8,
    /// So many bytes are enough.
    pub bytes: u64,
}

/// What there is to make room with, as far as somebody has looked.
#[derive(Clone, Debug, Default)]
pub struct RoomSample {
    /// How much the documents are used that may go.
    pub heat: FrequencyHistogram,
    /// Bytes of documents.
    pub documents_bytes: u64,
    /// Bytes of tombstones.
    pub tombstones_bytes: u64,
}

/// What may go to make room.
#[derive(Clone, Copy)]
struct RoomMaker {
    /// Up to here the log has nothing any more; `None` when nothing may go here. What the log still
    /// holds would take its memory even without the table.
    consumed: Option<Seqno>,
}

impl RoomMaker {
    fn may_delete(self, item: &Item) -> bool {
        !item.is_deleted() && self.consumed.is_some_and(|consumed| item.seqno() <= consumed)
    }
}

fn bytes_of(item: &Item) -> u64 {
    u64::try_from(item.allocation_size()).unwrap_or(u64::MAX)
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
        result.unwrap().seqno
    }

    fn delete(vbucket: &mut Vbucket, name: &str) -> Seqno {
        let condition = WriteCondition::default();
        let result = vbucket.delete(key(name).as_key(), condition, now(), &mut Vec::new());
        result.unwrap().seqno
    }

    fn empty_the_log(vbucket: &mut Vbucket) {
        let mut batch = vbucket.begin_flush().unwrap();
        batch.count_items();
        vbucket.flush_succeeded(&batch, &mut Vec::new());
    }

    /// Purges what was deleted before `second`, a slot at a time.
    fn purge(vbucket: &mut Vbucket, second: u32) {
        let mut position = Some(VisitPosition::default());
        while let Some(from) = position {
            position = vbucket.purge_tombstones(from, 1, second, &mut Vec::new()).0;
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
        assert!(!vbucket.auto_delete(key("k").as_key(), newest, now(), effects), "in the log");
        empty_the_log(&mut vbucket);
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
        empty_the_log(&mut vbucket);
        vbucket.set_state(VbucketState::Replica, effects);
        assert!(!vbucket.auto_delete(key("kept").as_key(), kept, now(), effects), "a replica");
    }

    #[test]
    fn what_is_used_least_goes_first_and_the_rest_cools_down() {
        let mut vbucket = vbucket();
        let names: Vec<String> = (0..100).map(|number| format!("key-{number}")).collect();
        let heat = |vbucket: &mut Vbucket, name: &str| {
            let found = vbucket.get(key(name).as_key(), now(), &mut Vec::new());
            found.map(|found| found.item).ok()
        };
        for (name, used) in names.iter().zip(0..) {
            set(&mut vbucket, name);
            heat(&mut vbucket, name).unwrap().set_heat(used);
        }
        empty_the_log(&mut vbucket);
        let mut sample = RoomSample::default();
        let mut position = Some(VisitPosition::default());
        while let Some(from) = position {
            position = vbucket.sample_room(from, 7, &mut sample);
        }
        assert_eq!((sample.heat.total(), sample.heat.percentile(30.0)), (100, Some(29)));
        assert!(sample.documents_bytes > 0 && sample.tombstones_bytes == 0, "{sample:?}");
        let mut position = Some(VisitPosition::default());
        let wanted = RoomWanted { heat_max: 29, bytes: u64::MAX };
        while let Some(from) = position {
            position = vbucket.auto_delete_portion(from, 7, wanted, now(), &mut Vec::new()).0;
        }
        assert_eq!(vbucket.statistics().auto_deletions, 30);
        for (name, used) in names.iter().zip(0_u8..) {
            let left = heat(&mut vbucket, name).map(|item| item.heat());
            assert_eq!(left, (used > 29).then_some(used.saturating_sub(1)), "{name}");
        }
    }

    #[test]
    fn no_more_goes_than_is_wanted() {
        let mut vbucket = vbucket();
        for number in 0..1000 {
            set(&mut vbucket, &format!("key-{number}"));
        }
        empty_the_log(&mut vbucket);
        let wanted = RoomWanted { heat_max: u8::MAX, bytes: 1 };
        let from = VisitPosition::default();
        let (_, count) = vbucket.auto_delete_portion(from, 1000, wanted, now(), &mut Vec::new());
        assert_eq!((count, vbucket.document_count()), (1, 999));
    }
}
