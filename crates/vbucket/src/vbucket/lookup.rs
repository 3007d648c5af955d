//! Keys that are not in memory: what the file has under them.

use document::{Datatype, Item, Key};

use super::Vbucket;
use crate::eviction::{Absent, Lookup};
use crate::operation::Refusal;

impl Vbucket {
    /// Whether the file surely has no live document under `key`, which is not in the hash table.
    /// Otherwise the refusal that has it looked up.
    pub(super) fn check_absent(&mut self, key: Key<'_>) -> Result<(), Refusal> {
        // Nothing but tombstones is on disk alone where keys stay in memory.
        if self.may_lack_documents() {
            self.find_tombstone(key)?;
        }
        Ok(())
    }

    /// Whether a write of `key` can be decided on by what is in memory. Otherwise the refusal that
    /// has the key looked up, or the request wait.
    pub fn prepare_write(&mut self, key: Key<'_>) -> Result<(), Refusal> {
        self.check_active()?;
        self.check_collection(key)?;
        self.check_unprepared(key)?;
        match self.hash_table.get(key) {
            // A store keeps the xattrs of what it replaces.
            Some(item) if item.is_ejected() && item.datatype().contains(Datatype::XATTR) => {
                Err(Refusal::Ejected(item.clone()))
            }
            Some(_) => Ok(()),
            None => self.check_absent(key),
        }
    }

    /// The tombstone of `key`, which is not in the hash table, if there is one; the refusal that
    /// has the key looked up if that is not known.
    pub(super) fn find_tombstone(&mut self, key: Key<'_>) -> Result<Option<Item>, Refusal> {
        match self.absent.find(key) {
            Absent::Gone(tombstone) => Ok(tombstone),
            Absent::Unknown => {
                let percent = self.eviction.lookups_max_percent;
                let count_max = self.document_count_in_memory() / 100 * percent;
                let lookup = self.absent.look_up(key, count_max);
                self.publish();
                match lookup {
                    Some(lookup) => Err(Refusal::Absent(Box::new(lookup))),
                    None => Err(Refusal::TooManyLookups),
                }
            }
        }
    }

    /// What the file has under the key of `lookup`. Returns what is left over, to be dropped
    /// outside the lock.
    pub fn finish_lookup(&mut self, lookup: &Lookup, found: Option<Item>) -> Option<Item> {
        let key = Key::from_trusted(&lookup.key);
        if !self.absent.finish(lookup) || self.hash_table.get(key).is_some() {
            // Somebody has written it, or was faster to look.
            self.publish();
            return found;
        }
        let left_over = match found {
            Some(item) if self.hides(&item) => Some(item),
            Some(item) if !item.is_deleted() && self.may_lack_documents() => {
                assert!(item.seqno() <= self.high_seqno(), "the file is not ahead of memory");
                // The table counts it from now on.
                self.absent.document_count = self.absent.document_count.saturating_sub(1);
                self.put_back(item)
            }
            Some(item) if !item.is_deleted() => Some(item),
            found => {
                self.absent.note_gone(&lookup.key, found.map(|tombstone| tombstone.ejected()));
                None
            }
        };
        self.settle_account();
        left_over
    }

    /// Nobody reads the file for `lookup`: it takes no room any more. Whoever has joined it begins
    /// another.
    pub fn abandon_lookup(&mut self, lookup: &Lookup) {
        self.absent.finish(lookup);
        self.publish();
    }

    /// Puts a version into the hash table that was only in the file. Returns what was there before.
    pub(super) fn put_back(&mut self, item: Item) -> Option<Item> {
        let item = item.charged_to(self.account.id());
        item.set_heat(self.eviction.initial_frequency.get());
        self.hash_table.insert(item)
    }

    /// `key` has left the hash table and is on disk.
    pub(super) fn note_departure(&mut self, key: Key<'_>) {
        let key_count = self.document_count();
        self.absent.note_departure(key, key_count);
        self.residency.note_departure(key);
    }
}

#[cfg(test)]
mod tests {
    use document::{ItemBuilder, ItemMeta, KeyBuf, Seqno, VbUuid, Vbid, VbucketState};

    use super::*;
    use crate::effect::Effect;
    use crate::eviction::{EvictionOptions, EvictionPolicy};
    use crate::hash_table::HashSeed;
    use crate::memory_account::MemoryAccount;
    use crate::operation::{Now, StoreMode, WriteCondition};

    fn vbucket() -> Vbucket {
        let options = EvictionOptions { policy: EvictionPolicy::Full, ..Default::default() };
        let (seed, account) = (HashSeed::new(1), MemoryAccount::default());
        Vbucket::new(Vbid(0), VbucketState::Active, VbUuid(7), seed, account).with_eviction(options)
    }

    fn key() -> KeyBuf {
        KeyBuf::in_default_collection(b"k").unwrap()
    }

    /// Stores a version over the one in the file, which becomes persisted and leaves memory;
    /// returns what the file has then.
    fn store_and_evict(vbucket: &mut Vbucket, in_file: Option<&Item>, value: &[u8]) -> Item {
        let effects: &mut Vec<Effect> = &mut Vec::new();
        let builder = ItemBuilder::new(key().as_key(), ItemMeta::default(), value);
        let condition = WriteCondition::default();
        let stored = vbucket.store(StoreMode::Set, builder, condition, Now::default(), effects);
        if let Err(Refusal::Absent(lookup)) = stored {
            // A write looks first, too.
            drop(vbucket.finish_lookup(&lookup, in_file.cloned()));
            return store_and_evict(vbucket, None, value);
        }
        stored.unwrap();
        let mut batch = vbucket.begin_flush().unwrap();
        let item = batch.take_items(usize::MAX).items.remove(0);
        vbucket.flush_succeeded(&batch, Now::default(), effects);
        vbucket.apply_succeeded(batch.high_seqno());
        assert_eq!(vbucket.eject(key().as_key(), Now::default(), effects), Some(true));
        item
    }

    fn look_up(vbucket: &mut Vbucket) -> Lookup {
        match vbucket.get(key().as_key(), Now::default(), &mut Vec::new()) {
            Err(Refusal::Absent(lookup)) => *lookup,
            other => panic!("{other:?}"),
        }
    }

    fn value(vbucket: &mut Vbucket) -> Vec<u8> {
        let found = vbucket.get(key().as_key(), Now::default(), &mut Vec::new());
        found.unwrap().item.value().to_vec()
    }

    #[test]
    fn what_was_read_before_a_write_is_not_brought_back_after_it_has_left_memory() {
        let mut vbucket = vbucket();
        let old = store_and_evict(&mut vbucket, None, b"old");
        let early = look_up(&mut vbucket);
        let new = store_and_evict(&mut vbucket, Some(&old), b"new");
        let late = look_up(&mut vbucket);
        assert!(vbucket.finish_lookup(&early, Some(old)).is_some());
        assert_eq!(look_up(&mut vbucket).ticket, late.ticket, "still to be looked up");
        assert!(vbucket.finish_lookup(&late, Some(new)).is_none());
        assert_eq!(value(&mut vbucket), b"new");
        assert_eq!((vbucket.document_count(), vbucket.high_seqno()), (1, Seqno(2)));
    }

    #[test]
    fn two_requests_for_a_document_share_what_the_first_fetch_brings() {
        let mut vbucket = vbucket();
        let item = store_and_evict(&mut vbucket, None, b"value");
        let (first, second) = (look_up(&mut vbucket), look_up(&mut vbucket));
        assert!(vbucket.finish_lookup(&first, Some(item.clone())).is_none());
        assert!(vbucket.finish_lookup(&second, Some(item)).is_some());
        assert_eq!(value(&mut vbucket), b"value");
        assert_eq!(vbucket.document_count(), 1);
    }

    #[test]
    fn what_warmup_has_read_is_old_once_anything_has_left_memory() {
        let mut vbucket = vbucket();
        let old = store_and_evict(&mut vbucket, None, b"old");
        let departures = vbucket.departures();
        let new = store_and_evict(&mut vbucket, Some(&old), b"new");
        assert!(vbucket.restore_absent(old, departures).is_some());
        let departures = vbucket.departures();
        assert!(vbucket.restore_absent(new, departures).is_none());
        assert_eq!(value(&mut vbucket), b"new");
    }
}
