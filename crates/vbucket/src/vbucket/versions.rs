//! The version of a document that parts are read of, and that a new one is computed from:
//! tombstones, too, where the client wants to see them. Source:
//! docs/specification/protocol.md, section 12.5.
//!
//! A tombstone that has left memory does not come back into it: its value is read from the file for
//! the request that needs it, and comes along when that is executed again.

use document::{Cas, Datatype, Item, Key, Seqno, VbucketState, expiry};
use platform::WallTime;

use super::Vbucket;
use super::restore::is_same_version;
use super::write::{Before, release_builder};
use crate::effect::Effect;
use crate::operation::{Found, NewVersion, Now, Refusal, Visibility, WriteCondition, Written};

impl Vbucket {
    /// The version of `key` that there is for who reads. `fetched` is what was read from the file
    /// for this request.
    pub fn get_version(
        &mut self,
        key: Key<'_>,
        visibility: Visibility,
        fetched: Option<&Item>,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<Found, Refusal> {
        if visibility == Visibility::Live {
            return self.get(key, now, effects);
        }
        self.check_active()?;
        self.check_collection(key)?;
        self.check_settled(key)?;
        let item = self.newest_version(key, fetched, now, effects)?.ok_or(Refusal::NotFound)?;
        self.note_read(&item, effects);
        let cas = self.visible_cas(&item, now);
        Ok(Found { item, cas })
    }

    /// The same of a replica.
    pub fn get_replica_version(
        &mut self,
        key: Key<'_>,
        visibility: Visibility,
        fetched: Option<&Item>,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<Found, Refusal> {
        if visibility == Visibility::Live {
            return self.get_replica(key, now, effects);
        }
        if self.state() != VbucketState::Replica {
            return Err(Refusal::NotActive);
        }
        self.check_collection(key)?;
        let item = self.newest_version(key, fetched, now, effects)?.ok_or(Refusal::NotFound)?;
        self.note_read(&item, effects);
        Ok(Found { cas: item.cas(), item })
    }

    /// The version of `key` to compute a new one from, when a write with `condition` would be let
    /// through now; `None` when there is nothing. The new one is stored by
    /// [`Vbucket::store_version`].
    pub fn get_version_for_write(
        &mut self,
        key: Key<'_>,
        visibility: Visibility,
        fetched: Option<&Item>,
        condition: WriteCondition,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Item>, Refusal> {
        if visibility == Visibility::Live {
            return match self.get_for_write(key, condition, now) {
                Ok(item) => Ok(Some(item)),
                Err(Refusal::NotFound) if condition.cas == Cas::ANY => Ok(None),
                Err(refusal) => Err(refusal),
            };
        }
        self.check_writer(key, condition)?;
        let newest = self.newest_version(key, fetched, now, effects)?;
        self.check_version(newest, condition, now)
    }

    /// Makes `new` the newest version of its key, unless what it was computed from is not that any
    /// more.
    ///
    /// # Panics
    /// If it is let in and not built as what the condition makes of it
    /// ([`WriteCondition::operation`]).
    pub fn store_version(
        &mut self,
        new: NewVersion,
        fetched: Option<&Item>,
        condition: WriteCondition,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<Written, Refusal> {
        let NewVersion { mut builder, placeholders, computed_from, visibility } = new;
        let found = self
            .get_version_for_write(builder.key(), visibility, fetched, condition, now, effects)
            .and_then(|found| match found.as_ref().map(Item::seqno) == computed_from {
                true => Ok(found),
                false => Err(Refusal::Changed),
            });
        let replaced = match found {
            Ok(found) => found,
            Err(refusal) => {
                release_builder(builder, effects);
                return Err(refusal);
            }
        };
        self.locks.release(builder.key());
        let was_live = replaced.as_ref().is_some_and(|item| !item.is_deleted());
        let counter = match (was_live, builder.meta().deletion) {
            (_, Some(_)) => &self.figures.done.deletions,
            (false, None) => &self.figures.done.creations,
            (true, None) => &self.figures.done.updates,
        };
        counter.add(1);
        let place = self.hash_table.locate(builder.key());
        let known = replaced.as_ref().or_else(|| self.hash_table.at(place));
        let before = Before { place, revision: known.map(Item::revision) };
        let (cas, seqno) = (self.clock.peek(now.wall), self.high_seqno().next());
        if !placeholders.is_empty() {
            let datatype = builder.meta().datatype;
            assert!(!datatype.contains(Datatype::SNAPPY), "places are those of the plain value");
            placeholders.fill(builder.value_mut(), cas, seqno);
        }
        effects.extend(replaced.map(Effect::Release));
        let written = self.write(builder, before, condition, now, effects);
        let is_placed =
            |mutation: crate::operation::Mutation| (mutation.cas, mutation.seqno) == (cas, seqno);
        assert!(written.done().is_none_or(is_placed), "its value says what it is");
        Ok(written)
    }

    /// Whether the CAS of the version at `seqno` is a time: since the history counts so.
    pub fn is_cas_a_time(&self, seqno: Seqno) -> bool {
        let begins_behind_file = self.persisted_seqno.next().0;
        seqno.0 >= u64::try_from(self.facts.hlc_epoch).unwrap_or(begins_behind_file)
    }

    /// The time by the clock that names versions, and whether that runs ahead of the wall clock.
    pub fn clock_reading(&self, now: Now) -> (WallTime, bool) {
        self.clock.reading(now.wall)
    }

    /// The newest version of `key`, with its value. One whose time is over is a tombstone, if this
    /// vBucket may make it one, and nothing otherwise.
    fn newest_version(
        &mut self,
        key: Key<'_>,
        fetched: Option<&Item>,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Item>, Refusal> {
        let newest = match self.hash_table.get(key) {
            Some(item) => Some(item.clone()),
            None => self.find_tombstone(key)?,
        };
        let Some(mut item) = newest else { return Ok(None) };
        let has_xattrs = item.datatype().contains(Datatype::XATTR);
        // A tombstone without xattrs has nothing that would have to be fetched.
        let has_value = !item.is_deleted() || has_xattrs;
        if item.is_ejected() && has_value {
            item = match fetched.filter(|fetched| is_same_version(fetched, &item)) {
                Some(fetched) => fetched.clone(),
                None => return Err(Refusal::Ejected(item)),
            };
        }
        if item.is_deleted() || !expiry::is_past(item.expiry(), now.wall.seconds()) {
            return Ok(Some(item));
        }
        if self.state() == VbucketState::Active {
            self.delete_expired(&item, now, effects);
        }
        effects.push(Effect::Release(item));
        Ok(self.hash_table.get(key).filter(|newest| newest.is_deleted()).cloned())
    }
}

#[cfg(test)]
mod tests {
    use document::{
        Deletion, ItemBuilder, ItemMeta, KeyBuf, PlaceholderKind, Placeholders, VbUuid, Vbid,
    };

    use super::*;
    use crate::hash_table::HashSeed;
    use crate::memory_account::MemoryAccount;
    use crate::operation::{Mutation, StoreMode};

    const CONDITION: WriteCondition = WriteCondition {
        cas: Cas::ANY,
        computed_from: None,
        preserve_expiry: false,
        sync_write: None,
    };

    fn vbucket() -> Vbucket {
        let (seed, account) = (HashSeed::new(1), MemoryAccount::default());
        Vbucket::new(Vbid(0), VbucketState::Active, VbUuid(7), seed, account)
    }

    fn key() -> KeyBuf {
        KeyBuf::in_default_collection(b"k").unwrap()
    }

    /// A version, or a tombstone, that was computed from what is at `computed_from`.
    fn store_computed(
        vbucket: &mut Vbucket,
        computed_from: Option<Seqno>,
        visibility: Visibility,
        is_deleted: bool,
    ) -> Result<Mutation, Refusal> {
        let meta =
            ItemMeta { deletion: is_deleted.then_some(Deletion::Explicit), ..Default::default() };
        let builder = ItemBuilder::new(key().as_key(), meta, b"");
        let placeholders = Placeholders::default();
        let new = NewVersion { builder, placeholders, computed_from, visibility };
        let stored = vbucket.store_version(new, None, CONDITION, Now::default(), &mut Vec::new());
        stored.map(|written| written.done().unwrap())
    }

    fn found(vbucket: &mut Vbucket, visibility: Visibility) -> Option<Seqno> {
        let now = Now::default();
        let key = key();
        let found =
            vbucket.get_version(key.as_key(), visibility, None, now, &mut Vec::new()).ok()?;
        Some(found.item.seqno())
    }

    #[test]
    fn what_was_computed_from_another_version_is_not_stored() {
        use Visibility::{Deleted, Live};
        let vbucket = &mut vbucket();
        let first = store_computed(vbucket, None, Live, false).unwrap().seqno;
        for stale in [None, Some(Seqno(9))] {
            let refused = store_computed(vbucket, stale, Live, false);
            assert!(matches!(refused, Err(Refusal::Changed)), "{stale:?}");
        }
        let second = store_computed(vbucket, Some(first), Live, true).unwrap().seqno;
        assert_eq!((found(vbucket, Live), found(vbucket, Deleted)), (None, Some(second)));
        let refused = store_computed(vbucket, None, Deleted, true);
        assert!(matches!(refused, Err(Refusal::Changed)), "a tombstone has come about");
        let third = store_computed(vbucket, Some(second), Deleted, false).unwrap().seqno;
        assert_eq!(found(vbucket, Live), Some(third));
        let revision = vbucket.get(key().as_key(), Now::default(), &mut Vec::new());
        assert_eq!(revision.unwrap().item.revision().0, 3);
        let statistics = vbucket.statistics();
        assert_eq!((statistics.creations, statistics.deletions, statistics.updates), (2, 1, 0));
    }

    #[test]
    fn a_version_says_its_own_cas_and_seqno() {
        let vbucket = &mut vbucket();
        let mut placeholders = Placeholders::default();
        placeholders.push(PlaceholderKind::Cas, 0);
        placeholders.push(PlaceholderKind::Seqno, 16);
        let builder = ItemBuilder::new(key().as_key(), ItemMeta::default(), &[b'0'; 32]);
        let (computed_from, visibility) = (None, Visibility::Live);
        let new = NewVersion { builder, placeholders, computed_from, visibility };
        let now = Now { wall: WallTime(0x0123_4567_89ab_cdef), ..Now::default() };
        vbucket.store_version(new, None, CONDITION, now, &mut Vec::new()).unwrap();
        let found = vbucket.get(key().as_key(), now, &mut Vec::new()).unwrap();
        assert_eq!(found.item.value(), b"0000ab89674523010000000000000001");
    }

    #[test]
    fn a_document_whose_time_is_over_is_a_tombstone() {
        let vbucket = &mut vbucket();
        let meta = ItemMeta { expiry: 5, ..ItemMeta::default() };
        let builder = ItemBuilder::new(key().as_key(), meta, b"v");
        let effects = &mut Vec::new();
        let stored = vbucket.store(StoreMode::Set, builder, CONDITION, Now::default(), effects);
        stored.unwrap();
        let now = Now { wall: WallTime(9_000_000_000), ..Now::default() };
        let key = key();
        let found = vbucket.get_version_for_write(
            key.as_key(),
            Visibility::Deleted,
            None,
            CONDITION,
            now,
            effects,
        );
        let tombstone = found.unwrap().unwrap();
        assert_eq!((tombstone.is_deleted(), tombstone.seqno()), (true, Seqno(2)));
    }
}
