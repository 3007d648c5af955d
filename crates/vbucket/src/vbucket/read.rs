//! Reading documents.

use document::{Cas, Deletion, Item, Key, Operation, RevSeqno, VbucketState, expiry};

use super::Vbucket;
use super::write::tombstone_of;
use crate::effect::Effect;
use crate::eviction::frequency_counter;
use crate::hash_table::{ItemAction, VisitPosition};
use crate::operation::{Found, Now, Refusal};

impl Vbucket {
    /// The live document `key`. One whose time is over is deleted on the way.
    pub fn get(
        &mut self,
        key: Key<'_>,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<Found, Refusal> {
        self.check_active()?;
        self.check_collection(key)?;
        self.check_settled(key)?;
        let item = match self.hash_table.get(key) {
            Some(item) if !item.is_deleted() => item,
            Some(_) => return Err(Refusal::NotFound),
            None => {
                self.check_absent(key)?;
                return Err(Refusal::NotFound);
            }
        };
        if expiry::is_past(item.expiry(), now.wall.seconds()) {
            let expired = item.clone();
            self.delete_expired(&expired, now, effects);
            return Err(Refusal::NotFound);
        }
        if item.is_ejected() {
            return Err(Refusal::Ejected(item.clone()));
        }
        let item = item.clone();
        self.note_read(&item, effects);
        let cas = self.visible_cas(&item, now);
        Ok(Found { item, cas })
    }

    /// The newest version of `key`, tombstones and documents without their value included, wherever
    /// it is: nothing but its metadata may be used.
    pub fn get_metadata(&mut self, key: Key<'_>, now: Now) -> Result<Found, Refusal> {
        self.check_active()?;
        self.check_collection(key)?;
        self.check_settled(key)?;
        let item = match self.hash_table.get(key) {
            Some(item) => item.clone(),
            None => self.find_tombstone(key)?.ok_or(Refusal::NotFound)?,
        };
        let cas = self.visible_cas(&item, now);
        Ok(Found { item, cas })
    }

    /// How often the document `key`, or its tombstone, has changed, if that is in memory.
    pub fn revision_in_memory(&self, key: Key<'_>) -> Option<RevSeqno> {
        self.hash_table.get(key).map(Item::revision)
    }

    /// The newest version of `key`, if there is one, and whether it is on disk.
    pub fn observe(&mut self, key: Key<'_>, now: Now) -> Result<Option<(Item, bool)>, Refusal> {
        if !matches!(self.state, VbucketState::Active | VbucketState::Replica) {
            return Err(Refusal::NotActive);
        }
        self.check_collection(key)?;
        if self.state == VbucketState::Active {
            self.check_settled(key)?;
        }
        let Some(item) = self.hash_table.get(key) else {
            self.check_absent(key)?;
            return Ok(None);
        };
        let is_gone = expiry::is_past(item.expiry(), now.wall.seconds()) && !item.is_deleted();
        Ok((!is_gone).then(|| (item.clone(), item.seqno() <= self.persisted_for_clients())))
    }

    /// Deletes the documents whose time is over among those in about `slots_max` slots. Returns
    /// where to go on, none at the end.
    pub fn delete_expired_portion(
        &mut self,
        from: VisitPosition,
        slots_max: usize,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Option<VisitPosition> {
        self.check_active().ok()?;
        let seconds = now.wall.seconds();
        let mut expired = Vec::new();
        let look = |item: &Item| {
            if !item.is_deleted() && expiry::is_past(item.expiry(), seconds) {
                expired.push(item.clone());
            }
            ItemAction::Keep
        };
        // All of them are kept, so that nothing comes into this list to be freed under the lock
        // (invariant 10).
        let next = self.hash_table.visit(from, slots_max, look, &mut Vec::new());
        for item in expired {
            self.delete_expired(&item, now, effects);
            effects.push(Effect::Release(item));
        }
        next
    }

    /// Puts a tombstone in the place of `expired`. System xattrs survive it; those of a document
    /// without its value in memory have to be fetched first, so such a document only stays hidden
    /// until somebody fetches it, and so does one that a durable write is about to replace.
    pub(super) fn delete_expired(&mut self, expired: &Item, now: Now, effects: &mut Vec<Effect>) {
        let has_xattrs = expired.datatype().contains(document::Datatype::XATTR);
        let is_busy = self.prepared(expired.key()).is_some() || self.hides(expired);
        if is_busy || (has_xattrs && expired.is_ejected()) {
            return;
        }
        let tombstone = tombstone_of(expired, Deletion::Expired, Operation::Mutation, now);
        self.locks.release(expired.key());
        self.figures.done.expirations.add(1);
        let before = self.before(expired);
        self.commit(tombstone, before, now, effects);
    }

    /// Counts a read, and that the document is read.
    pub(super) fn note_read(&mut self, item: &Item, effects: &mut Vec<Effect>) {
        self.figures.done.reads.add(1);
        if !item.key().is_in_default_collection() {
            self.collections.note_read(item.key().collection());
        }
        let random_bits = (self.random.next_u64() >> 32) as u32;
        let before = item.heat();
        let after = frequency_counter::after_read(before, random_bits);
        if after != before {
            item.set_heat(after);
            if after == frequency_counter::SATURATED {
                effects.push(Effect::WakeDecayer);
            }
        }
    }

    pub(super) fn visible_cas(&mut self, item: &Item, now: Now) -> Cas {
        match self.lock_on(item.key(), now) {
            Some(_) => Cas::LOCKED,
            None => item.cas(),
        }
    }
}
