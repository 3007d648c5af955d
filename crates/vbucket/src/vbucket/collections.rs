//! Collections that come and go: what becomes of the vBucket's documents. Source:
//! docs/specification/engine.md, sections 5.4, 5.6 and 6.5.
//!
//! An active vBucket follows the manifest of its bucket, and has each change in its history as an
//! event. A replica follows the events that it receives, and a vBucket that comes back those in its
//! file. Documents of a collection that is not there are hidden at once, and erased portion by
//! portion.

use document::{
    CollectionId, Deletion, Item, ItemBuilder, ItemMeta, Key, Manifest, ManifestEvent, Map,
    RevSeqno, ScopeId, Seqno, VbucketState,
};

use super::{Vbucket, release};
use crate::collection_figures::{CollectionCells, count_write};
use crate::collections::{OpenCollection, OtherMeaning};
use crate::effect::Effect;
use crate::hash_table::{ItemAction, VisitPosition};
use crate::operation::{Now, Refusal, SyncWriteEnd};
use crate::vbucket::receiving::ReceiveError;

/// How far the documents of dropped collections are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Erasure {
    /// There are none.
    Nothing,
    /// Go on here.
    GoesOn(VisitPosition),
    /// None is in memory. The file is to be compacted, which has to know of the drop: it does once
    /// this seqno is durable; ask again.
    Waits(Seqno),
    /// None is in memory, and the file knows that those in it are not wanted.
    Done,
}

/// An event of another node's vBucket.
pub struct ReceivedEvent {
    /// Its key, and its value in the form of the files.
    pub builder: ItemBuilder,
    /// Its place in history.
    pub seqno: Seqno,
}

/// What an event is kept as.
pub fn event_builder(event: &ManifestEvent<'_>, wall_seconds: u32) -> ItemBuilder {
    let (key, value) = (event.key(), event.encode());
    let deletion = event.is_deletion().then_some(Deletion::Explicit);
    let expiry = if event.is_deletion() { wall_seconds.max(1) } else { 0 };
    let meta = ItemMeta { expiry, deletion, ..ItemMeta::default() };
    ItemBuilder::new(Key::from_trusted(&key), meta, &value)
}

impl Vbucket {
    /// Brings an active vBucket to the collections of `manifest`, each change with its place in
    /// history. Nothing happens where history follows that manifest, or a newer one, already.
    ///
    /// # Errors
    /// The manifest is of another history: to follow it would give the documents of one collection
    /// to another, or erase them. The vBucket stays as it is.
    pub fn follow_manifest(
        &mut self,
        manifest: &Manifest,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<(), OtherMeaning> {
        if self.state != VbucketState::Active || manifest.uid <= self.collections.uid() {
            return Ok(());
        }
        self.collections.check_meaning(manifest)?;
        let events = self.collections.events_towards(manifest);
        if !events.is_empty() {
            // No key twice in a checkpoint: between the two come documents that need the first.
            let detached = self.checkpoints.begin_checkpoint();
            self.destroy(detached, effects);
        }
        for event in &events {
            let (cas, seqno) = (self.clock.next(now.wall), self.high_seqno().next());
            let builder = event_builder(event, now.wall.seconds());
            let item = builder.charged_to(self.account.id()).finish(cas, seqno, RevSeqno(1));
            release(self.collections.keep(&item), effects);
            self.checkpoints.set_limits(self.account.checkpoint_limits());
            let queued = self.checkpoints.queue(item, None);
            self.finish_queueing(queued, now, effects);
            self.carry_out_event(event, seqno, now, effects);
        }
        self.collections.follow(manifest.uid);
        Ok(())
    }

    /// Receives an event.
    pub fn receive_event(
        &mut self,
        received: ReceivedEvent,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ReceiveError> {
        let ReceivedEvent { builder, seqno } = received;
        let checked = self.check_received(seqno);
        let cas = self.clock.next(now.wall);
        let item = builder.charged_to(self.account.id()).finish(cas, seqno, RevSeqno(1));
        let key = item.key().encoded();
        let event = ManifestEvent::decode(key, item.is_deleted(), item.value());
        let may_be_second = event.is_some_and(|event| {
            event.is_deletion() || matches!(event, ManifestEvent::CollectionChanged(_))
        });
        let event = event.ok_or(ReceiveError::BadEvent);
        if let Err(error) = checked.and(event) {
            effects.push(Effect::Release(item));
            return Err(error);
        }
        if may_be_second && !self.snapshot_kind.is_disk() {
            // As in the sender's log: no key twice in a checkpoint.
            let detached = self.checkpoints.begin_part();
            self.destroy(detached, effects);
        }
        release(self.collections.keep(&item), effects);
        let queued = self.checkpoints.queue_received(item.clone(), None);
        self.finish_queueing(queued, now, effects);
        let key = item.key().encoded();
        if let Some(event) = ManifestEvent::decode(key, item.is_deleted(), item.value()) {
            self.carry_out_event(&event, seqno, now, effects);
        }
        effects.push(Effect::Release(item));
        self.end_received(effects);
        Ok(())
    }

    /// Puts an event that was durable back. In the order of seqnos, among the documents.
    pub fn restore_event(&mut self, item: &Item) {
        self.clock.observe(item.cas());
        let event = ManifestEvent::decode(item.key().encoded(), item.is_deleted(), item.value());
        // Of a damaged one the collection stays hidden: that is what can be said of it.
        let Some(event) = event else { return };
        self.collections.apply(&event, item.seqno());
        self.publish();
    }

    /// Has named collections from the beginning, without a place in history.
    #[cfg(test)]
    pub(crate) fn assume_collections(&mut self, ids: &[CollectionId]) {
        for id in ids {
            let (scope, name) = (ScopeId::DEFAULT, "named");
            let (uid, id, max_ttl, history) = (0, *id, None, false);
            let it = document::manifest_event::EventCollection {
                uid,
                scope,
                id,
                name,
                max_ttl,
                history,
            };
            self.collections.apply(&ManifestEvent::CollectionCreated(it), Seqno(0));
        }
    }

    fn carry_out_event(
        &mut self,
        event: &ManifestEvent<'_>,
        seqno: Seqno,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        self.collections.apply(event, seqno);
        if let ManifestEvent::CollectionDropped { collection, .. } = event {
            self.drop_prepares(*collection, seqno, now, effects);
            effects.push(Effect::EraseCollections);
        }
        self.publish();
    }

    /// The uid of the manifest that history follows.
    pub fn manifest_uid(&self) -> u64 {
        self.collections.uid()
    }

    /// The named collections, in no order.
    pub fn collections(&self) -> impl Iterator<Item = (CollectionId, &OpenCollection)> {
        self.collections.iter()
    }

    /// The scopes but the default one, in no order.
    pub fn scopes(&self) -> impl Iterator<Item = (ScopeId, &str)> {
        self.collections.scopes()
    }

    /// A named collection, if it is there.
    pub fn collection(&self, id: CollectionId) -> Option<&OpenCollection> {
        self.collections.get(id)
    }

    /// The last seqno of anything visible in a collection; `None` if there is no such collection.
    pub fn collection_high_seqno(&self, id: CollectionId) -> Option<Seqno> {
        if id == CollectionId::DEFAULT {
            return Some(self.collections.default_high_seqno());
        }
        self.collection(id).map(|collection| collection.high_seqno)
    }

    /// Whether there is such a scope.
    pub fn has_scope(&self, id: ScopeId) -> bool {
        self.collections.has_scope(id)
    }

    /// Documents of the default collection.
    pub fn default_collection_count(&self) -> usize {
        let named: u64 = self.collections.iter().map(|(_, it)| it.item_count()).sum();
        let others = named.saturating_add(self.leaving_document_count());
        let others = usize::try_from(others).unwrap_or(usize::MAX);
        self.document_count().saturating_sub(others)
    }

    /// Documents of dropped collections that are not erased yet.
    pub(super) fn leaving_document_count(&self) -> u64 {
        self.collections.leaving.iter().map(|it| it.item_count).sum()
    }

    /// The newest events, in no order, of a vBucket that has no file.
    pub fn events(&self) -> Vec<Item> {
        self.collections.events().cloned().collect()
    }

    /// Whether a version that comes from a file is of a collection that is not there any more.
    pub fn hides(&self, item: &Item) -> bool {
        let key = item.key();
        !key.is_in_default_collection()
            && !key.is_of_event()
            && !self.collections.is_open(key.collection())
    }

    /// The same of one that is met when the vBucket comes back: it is to be erased.
    pub fn note_hidden(&mut self, item: &Item) {
        self.collections.note_hidden(item.key().collection(), item.seqno());
    }

    /// Whether documents of a collection are served, to clients.
    pub fn check_served(&self, collection: CollectionId) -> Result<(), Refusal> {
        self.check_active()?;
        match collection == CollectionId::DEFAULT || self.collections.is_open(collection) {
            true => Ok(()),
            false => Err(Refusal::UnknownCollection),
        }
    }

    /// Whether documents of the key's collection are served.
    #[inline]
    pub fn check_collection(&self, key: Key<'_>) -> Result<(), Refusal> {
        if key.is_in_default_collection() { Ok(()) } else { self.check_named_collection(key) }
    }

    fn check_named_collection(&self, key: Key<'_>) -> Result<(), Refusal> {
        match self.collections.is_open(key.collection()) {
            true => Ok(()),
            false => Err(Refusal::UnknownCollection),
        }
    }

    /// Takes note of a version that comes into its collection, and counts it.
    /// `was_alive` says whether there was a document before.
    #[inline]
    pub(super) fn note_in_collection(&mut self, item: &Item, was_alive: impl FnOnce() -> bool) {
        if item.key().is_in_default_collection() {
            self.collections.note_in_default(item.seqno());
            let figures = &self.figures;
            count_write(item, &figures.default_stores, &figures.default_deletions);
        } else if let Some(cells) = self.note_in_named(item, was_alive()) {
            count_write(item, &cells.stores, &cells.deletions);
        }
    }

    fn note_in_named(&mut self, item: &Item, was_alive: bool) -> Option<&CollectionCells> {
        let (id, seqno) = (item.key().collection(), item.seqno());
        self.collections.note_version(id, seqno, was_alive, !item.is_deleted())
    }

    /// Counts one that comes back.
    pub(super) fn note_restored(&mut self, item: &Item, replaced: Option<&Item>) {
        if item.key().is_in_default_collection() {
            self.collections.note_in_default(item.seqno());
        } else {
            self.note_in_named(item, replaced.is_some_and(|replaced| !replaced.is_deleted()));
        }
    }

    /// Takes a portion of the documents of dropped collections out of memory, those in at most
    /// `slots_max` slots.
    pub fn erase_dropped(
        &mut self,
        from: VisitPosition,
        slots_max: usize,
        effects: &mut Vec<Effect>,
    ) -> Erasure {
        if self.collections.leaving.is_empty() {
            return Erasure::Nothing;
        }
        if from == VisitPosition::default() {
            self.collections.begin_erasure();
        }
        // Whoever waits for the drop to be durable has searched memory, and need not do it again.
        if !self.collections.is_searched() {
            if let Some(next) = self.erase_from_memory(from, slots_max, effects) {
                return Erasure::GoesOn(next);
            }
            self.collections.note_searched();
        }
        let ends = self.collections.leaving.iter().map(|leaving| leaving.end_seqno);
        let end = ends.max().unwrap_or_default();
        if end > self.persisted_seqno {
            return Erasure::Waits(end);
        }
        self.finish_erasure();
        self.publish();
        match self.collections.leaving.is_empty() {
            true => Erasure::Done,
            false => Erasure::GoesOn(VisitPosition::default()),
        }
    }

    /// The portion of that which is about memory. Returns where to go on.
    fn erase_from_memory(
        &mut self,
        from: VisitPosition,
        slots_max: usize,
        effects: &mut Vec<Effect>,
    ) -> Option<VisitPosition> {
        let mut released = Vec::new();
        let mut erased: Map<CollectionId, u64> = Map::default();
        let collections = &self.collections;
        let act = |item: &Item| {
            let key = item.key();
            if key.is_in_default_collection() || collections.is_open(key.collection()) {
                return ItemAction::Keep;
            }
            *erased.entry(key.collection()).or_default() += u64::from(!item.is_deleted());
            ItemAction::Remove
        };
        let next = self.hash_table.visit(from, slots_max, act, &mut released);
        effects.extend(released.into_iter().map(Effect::Release));
        for leaving in &mut self.collections.leaving {
            let count = erased.remove(&leaving.id).unwrap_or(0);
            leaving.item_count = leaving.item_count.saturating_sub(count);
        }
        self.settle_account();
        next
    }

    /// What was not met in memory is only in the file, and counts no more.
    fn finish_erasure(&mut self) {
        let count: u64 = self.collections.finish_erasure().map(|left| left.item_count).sum();
        if self.may_lack_documents() {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            self.absent.document_count = self.absent.document_count.saturating_sub(count);
        }
    }

    /// Forgets the prepares of `collection` up to `through`, the seqno at which it was dropped:
    /// nobody ends them any more, here or on another node, and their clients hear so. What was
    /// behind them goes on. For whoever drops a collection, in a vBucket of any role.
    ///
    /// The file has them until it is compacted: after a restart this is called again, behind the
    /// last [`Vbucket::restore_prepare`].
    pub fn drop_prepares(
        &mut self,
        collection: CollectionId,
        through: Seqno,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        let dropped = self.monitor.drop_writes(|write| {
            write.seqno <= through && write.item.key().collection() == collection
        });
        let Some(last) = dropped.last().map(|write| write.seqno) else { return };
        // A key of a collection that comes again may have another prepare: not in one checkpoint.
        self.last_abort_seqno = self.last_abort_seqno.max(Some(last));
        for write in dropped {
            self.forget_prepare(write.item, effects);
            let waiter = write.client.map(|client| client.waiter);
            let dropped = |waiter| Effect::SyncWriteEnded(waiter, SyncWriteEnd::Dropped);
            effects.extend(waiter.map(dropped));
        }
        self.resolve_sync_writes(now, effects);
        self.settle_account();
    }
}

#[cfg(test)]
mod tests;
