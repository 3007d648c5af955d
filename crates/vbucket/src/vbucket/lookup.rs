//! Keys that are not in memory: what the file has under them.

use document::{Item, Key};

use super::Vbucket;
use crate::eviction::{Absent, EvictionPolicy, Lookup};
use crate::operation::Refusal;

impl Vbucket {
    /// Whether the file surely has no live document under `key`, which is not in the hash table.
    /// Otherwise the refusal that has it looked up.
    pub(super) fn check_absent(&mut self, key: Key<'_>) -> Result<(), Refusal> {
        // Nothing but tombstones is on disk alone when only values leave memory.
        if self.eviction.policy == EvictionPolicy::Full {
            self.find_tombstone(key)?;
        }
        Ok(())
    }

    /// Whether a write of `key` can be decided on by what is in memory. Otherwise the refusal that
    /// has the key looked up.
    pub fn prepare_write(&mut self, key: Key<'_>) -> Result<(), Refusal> {
        match self.hash_table.get(key) {
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
                match self.absent.look_up(key, count_max) {
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
            return found;
        }
        let left_over = match found {
            Some(item) if !item.is_deleted() && self.eviction.policy == EvictionPolicy::Full => {
                assert!(item.seqno() <= self.persisted_seqno, "the file is not ahead of memory");
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
    }
}
