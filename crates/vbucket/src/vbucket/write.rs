//! Writing documents: every mutation takes its place in history here.

use document::{
    Cas, Datatype, Deletion, DurabilityLevel, Item, ItemBuilder, ItemMeta, Key, Operation,
    RevSeqno, Seqno, expiry, xattr,
};

use super::{Vbucket, release};
use crate::checkpoint::{QueueOutcome, Queued};
use crate::effect::Effect;
use crate::hash_table::{HashTable, Located};
use crate::operation::{KeptXattrs, Mutation, Now, Refusal, StoreMode, WriteCondition, Written};
use crate::persistence::FlushUrgency;

/// What stands under the key of a write, before it.
#[derive(Clone, Copy)]
pub(super) struct Before {
    /// Of the key in the hash table.
    pub(super) place: Located,
    /// How often the document has changed, if that is known.
    pub(super) revision: Option<RevSeqno>,
}

/// What a write that may happen has found in the hash table.
#[derive(Clone, Copy)]
struct FoundForWrite {
    before: Before,
    /// Whether it is a document whose time is not over.
    is_live: bool,
}

impl FoundForWrite {
    fn live_in(self, table: &HashTable) -> Option<&Item> {
        table.at(self.before.place).filter(|_| self.is_live)
    }
}

impl Vbucket {
    /// Makes `builder` the newest version of its key.
    ///
    /// # Panics
    /// If it is let in and not built as what the condition makes of it
    /// ([`WriteCondition::operation`]).
    pub fn store(
        &mut self,
        mode: StoreMode,
        mut builder: ItemBuilder,
        condition: WriteCondition,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<Written, Refusal> {
        let found = match self.check_store(mode, builder.key(), condition, now) {
            Ok(found) => found,
            Err(refusal) => {
                release_builder(builder, effects);
                return Err(refusal);
            }
        };
        let Some(existing) = found.live_in(&self.hash_table) else {
            // Of a document whose time is over the lock is, too.
            self.locks.release(builder.key());
            self.figures.done.creations.add(1);
            return Ok(self.write(builder, found.before, condition, now, effects));
        };
        let loses_xattrs = existing.datatype().contains(Datatype::XATTR)
            && !builder.meta().datatype.contains(Datatype::XATTR);
        if loses_xattrs && condition.computed_from.is_none() {
            let existing = existing.clone();
            if existing.is_ejected() {
                release_builder(builder, effects);
                return Err(Refusal::Ejected(existing));
            }
            return Err(Refusal::KeepsXattrs(Box::new(KeptXattrs { existing, stored: builder })));
        }
        if condition.preserve_expiry && existing.expiry() != builder.meta().expiry {
            builder.set_expiry(existing.expiry());
        }
        self.locks.release(builder.key());
        self.figures.done.updates.add(1);
        Ok(self.write(builder, found.before, condition, now, effects))
    }

    /// What a store would replace, if the store may happen at all.
    fn check_store(
        &mut self,
        mode: StoreMode,
        key: Key<'_>,
        condition: WriteCondition,
        now: Now,
    ) -> Result<FoundForWrite, Refusal> {
        let found = match self.check_write(key, condition, now) {
            // Who does not want to replace it does not wait for whoever has locked it.
            Err(Refusal::Locked) if mode == StoreMode::Add => return Err(Refusal::Exists),
            found => found?,
        };
        match (mode, found.is_live) {
            (StoreMode::Add, true) => Err(self.reject(Refusal::Exists)),
            (StoreMode::Replace, false) => Err(self.reject(Refusal::NotFound)),
            _ => Ok(found),
        }
    }

    /// Deletes the document `key`. Its system xattrs live on in the tombstone.
    pub fn delete(
        &mut self,
        key: Key<'_>,
        condition: WriteCondition,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<Written, Refusal> {
        let found = self.check_write(key, condition, now)?;
        let Some(existing) = found.live_in(&self.hash_table) else {
            return Err(self.reject(Refusal::NotFound));
        };
        if existing.is_ejected() && existing.datatype().contains(Datatype::XATTR) {
            return Err(Refusal::Ejected(existing.clone()));
        }
        let tombstone = tombstone_of(existing, Deletion::Explicit, condition.operation(), now);
        self.locks.release(key);
        self.figures.done.deletions.add(1);
        Ok(self.write(tombstone, found.before, condition, now, effects))
    }

    /// The live version of `key` to compute a new one from, when a write with `condition` would be
    /// let through now. Store the new one with its seqno in [`WriteCondition::computed_from`].
    pub fn get_for_write(
        &mut self,
        key: Key<'_>,
        condition: WriteCondition,
        now: Now,
    ) -> Result<Item, Refusal> {
        match self.check_write(key, condition, now)?.live_in(&self.hash_table) {
            None => Err(Refusal::NotFound),
            Some(item) if item.is_ejected() => Err(Refusal::Ejected(item.clone())),
            Some(item) => Ok(item.clone()),
        }
    }

    /// What a write of `key` would replace, if the write may happen at all.
    fn check_write(
        &mut self,
        key: Key<'_>,
        condition: WriteCondition,
        now: Now,
    ) -> Result<FoundForWrite, Refusal> {
        self.check_writer(key, condition)?;
        let seconds = now.wall.seconds();
        let is_live = |item: &&Item| !item.is_deleted() && !expiry::is_past(item.expiry(), seconds);
        let place = self.hash_table.locate(key);
        let newest = self.hash_table.at(place);
        let revision = newest.map(Item::revision);
        if newest.is_none() {
            self.check_absent(key)?;
        }
        let live = self.hash_table.at(place).filter(is_live);
        if condition.computed_from.is_some() && condition.computed_from != live.map(Item::seqno) {
            return Err(Refusal::Changed);
        }
        let is_live = live.is_some();
        let refusal = match live {
            Some(item) => self.locks.refusal(item, condition.cas, now.monotonic),
            None => (condition.cas != Cas::ANY).then_some(Refusal::NotFound),
        };
        match refusal {
            Some(refusal) => Err(self.reject(refusal)),
            None => Ok(FoundForWrite { before: Before { place, revision }, is_live }),
        }
    }

    /// Whether anybody may write `key` now.
    pub(super) fn check_writer(
        &self,
        key: Key<'_>,
        condition: WriteCondition,
    ) -> Result<(), Refusal> {
        self.check_active()?;
        self.check_collection(key)?;
        if self.is_takeover_late {
            return Err(self.reject(Refusal::TakeoverIsLate));
        }
        if let Some(request) = condition.sync_write {
            self.check_sync_write(request)?;
        }
        self.check_unprepared(key)
    }

    /// Whether `version`, or nothing, is what a write may replace that names a version or a lock.
    pub(super) fn check_version(
        &self,
        version: Option<Item>,
        condition: WriteCondition,
        now: Now,
    ) -> Result<Option<Item>, Refusal> {
        let Some(item) = version else {
            return match condition.cas {
                Cas::ANY => Ok(None),
                _ => Err(self.reject(Refusal::NotFound)),
            };
        };
        self.check_replaceable(&item, condition.cas, now)?;
        Ok(Some(item))
    }

    /// Whether a write that is to replace `cas` may replace `item`, which is live.
    pub(super) fn check_replaceable(&self, item: &Item, cas: Cas, now: Now) -> Result<(), Refusal> {
        match self.locks.refusal(item, cas, now.monotonic) {
            Some(refusal) => Err(self.reject(refusal)),
            None => Ok(()),
        }
    }

    /// What stands where `item` is the newest version.
    pub(super) fn before(&self, item: &Item) -> Before {
        Before { place: self.hash_table.locate(item.key()), revision: Some(item.revision()) }
    }

    pub(super) fn reject(&self, refusal: Refusal) -> Refusal {
        self.figures.done.rejections.add(1);
        refusal
    }

    /// Makes `builder` the newest version of its key, or prepares that.
    pub(super) fn write(
        &mut self,
        builder: ItemBuilder,
        before: Before,
        condition: WriteCondition,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Written {
        assert!(builder.operation() == condition.operation(), "a version is built as what it is");
        match condition.sync_write {
            None => Written::Done(self.commit(builder, before, now, effects)),
            Some(request) => {
                self.begin_sync_write(builder, before.revision, request, now, effects);
                Written::Begun
            }
        }
    }

    /// Gives `builder` the next seqno and CAS, and puts it into the hash table and the log.
    pub(super) fn commit(
        &mut self,
        builder: ItemBuilder,
        before: Before,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Mutation {
        let revision = RevSeqno(before.revision.unwrap_or(self.max_deleted_revision).0 + 1);
        let cas = self.clock.next(now.wall);
        self.commit_as(builder, before.place, cas, revision, now, effects)
    }

    /// The same with a CAS and a revision that are decided on. `place` is that of its key.
    pub(super) fn commit_as(
        &mut self,
        builder: ItemBuilder,
        place: Located,
        cas: Cas,
        revision: RevSeqno,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Mutation {
        let seqno = self.high_seqno().next();
        let initial_heat = || self.eviction.initial_frequency.get();
        let heat = self.hash_table.at(place).map_or_else(initial_heat, Item::heat);
        let builder = builder.charged_to(self.account.id()).with_heat(heat);
        let item = builder.finish(cas, seqno, revision);
        if item.is_deleted() {
            self.max_deleted_revision = self.max_deleted_revision.max(revision);
        }
        self.absent.forget(item.key());
        let replaced = self.hash_table.insert_at(place, item.clone());
        let was_alive = || replaced.as_ref().is_some_and(|before| !before.is_deleted());
        self.note_in_collection(&item, was_alive);
        self.checkpoints.set_limits(self.account.checkpoint_limits());
        let queued = self.checkpoints.queue(item, replaced.as_ref());
        release(replaced, effects);
        self.finish_queueing(queued, now, effects);
        Mutation { cas, seqno, uuid: self.uuid() }
    }

    /// Something has come into the log: whoever reads it is to hear so. Nobody waits for its flush
    /// who is not among the waiters: clients were told that it is in memory, and how a durable
    /// write ends was decided by what others hold, and is decided again from that after a crash.
    pub(super) fn finish_queueing(&mut self, queued: Queued, now: Now, effects: &mut Vec<Effect>) {
        let has_waiters = !self.waiters.is_empty();
        let urgency = if has_waiters { FlushUrgency::Awaited } else { FlushUrgency::Deferred };
        self.finish_queueing_for(urgency, queued, now, effects);
    }

    /// The same of a prepare of `level`. Its client may wait until it is durable here; where the
    /// level does not ask for that, it is to be here all the same when this node comes back at once
    /// after a crash.
    pub(super) fn finish_queueing_prepare(
        &mut self,
        level: DurabilityLevel,
        queued: Queued,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        let is_awaited = self.awaits_flush(level);
        let urgency = if is_awaited { FlushUrgency::Awaited } else { FlushUrgency::Soon };
        self.finish_queueing_for(urgency, queued, now, effects);
    }

    fn finish_queueing_for(
        &mut self,
        urgency: FlushUrgency,
        queued: Queued,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        match queued.outcome {
            QueueOutcome::Replaced => self.figures.done.deduplications.add(1),
            QueueOutcome::New | QueueOutcome::PersistAgain => self.figures.done.queue_fills.add(1),
        }
        release(queued.superseded, effects);
        self.destroy(queued.detached, effects);
        // Before the flush is asked for: the first of those that wait for it says since when.
        if self.queued_for_flush.is_none() {
            self.queued_since = now.monotonic;
        }
        self.notify_streams(effects);
        self.ask_for_flush(urgency, effects);
        self.settle_account();
    }
}

/// Has a builder that is not used dropped after the lock, as an item that never was.
pub(super) fn release_builder(builder: ItemBuilder, effects: &mut Vec<Effect>) {
    effects.push(Effect::Release(builder.finish(Cas::ANY, Seqno(0), RevSeqno(0))));
}

/// What is left of `item` once it is deleted: no flags, no body, the system xattrs.
pub(super) fn tombstone_of(
    item: &Item,
    deletion: Deletion,
    operation: Operation,
    now: Now,
) -> ItemBuilder {
    let inflated;
    let mut value = item.value();
    let has_xattrs = item.datatype().contains(Datatype::XATTR);
    if has_xattrs && item.datatype().contains(Datatype::SNAPPY) {
        inflated = document::compression::inflate(value).unwrap_or_default();
        value = &inflated;
    }
    let kept = if has_xattrs { xattr::system_only(value) } else { Vec::new() };
    let meta = ItemMeta {
        flags: [0; 4],
        expiry: now.wall.seconds().max(1),
        datatype: if kept.is_empty() { Datatype::RAW } else { Datatype::XATTR },
        deletion: Some(deletion),
    };
    ItemBuilder::step(item.key(), meta, operation, &kept)
}
