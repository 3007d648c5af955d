//! Another eviction policy while the vBucket is in use.
//!
//! From keys that stay to documents that leave whole is a word: what is here may go. The other way
//! nothing leaves whole any more from the first moment on, and what has left comes back from the
//! file in runs of a few documents each, without values. Until the last of them a key that is not
//! here is looked up in the file, as before.

use document::{Item, Seqno};

use super::Vbucket;
use crate::eviction::{EvictionPolicy, KeyLoad};

impl Vbucket {
    /// What leaves memory.
    pub fn eviction_policy(&self) -> EvictionPolicy {
        self.eviction.policy
    }

    /// Whether the file may have live documents of which nothing is in memory.
    pub fn may_lack_documents(&self) -> bool {
        self.residency.may_lack_documents()
    }

    /// Whether documents that have left whole are to come back: [`Vbucket::begin_key_load`].
    pub fn has_keys_to_load(&self) -> bool {
        self.residency.is_returning()
    }

    /// From now on documents leave by `policy`.
    pub fn set_eviction_policy(&mut self, policy: EvictionPolicy) {
        self.eviction.policy = policy;
        self.residency.follow(policy);
        self.publish();
    }

    /// Begins a run, before the file is opened for it. `None` when nothing has to come back.
    pub fn begin_key_load(&mut self) -> Option<KeyLoad> {
        self.residency.begin()
    }

    /// Puts a live document into memory that `load` has read from the file, unless it is there or
    /// has gone since. Returns what is left over, to be dropped outside the lock.
    pub fn load_key(&mut self, load: KeyLoad, item: Item) -> Option<Item> {
        let is_here = self.hash_table.get(item.key()).is_some();
        if is_here || self.hides(&item) || !self.residency.may_bring(load, item.key()) {
            return Some(item);
        }
        if item.seqno() > self.applied_seqno {
            // What the file has there is here, so it is another history's, which has begun.
            self.residency.spoil(load);
            return Some(item);
        }
        assert!(!item.is_deleted(), "tombstones are looked up");
        self.absent.document_count = self.absent.document_count.saturating_sub(1);
        self.absent.forget(item.key());
        let replaced = self.put_back(item);
        self.settle_account();
        replaced
    }

    /// `load` has brought everything below `continue_at`, or up to the end of the file. Says
    /// whether it has: a run that is worth nothing any more changes nothing.
    pub fn end_key_load(&mut self, load: KeyLoad, continue_at: Option<Seqno>) -> bool {
        let has_counted = self.residency.end(load, continue_at);
        if !self.may_lack_documents() {
            // Copies from other nodes are counted by guess where documents leave whole.
            let guessed = i64::try_from(self.absent.document_count).unwrap_or(i64::MAX);
            self.absent.correct_by(-guessed);
        }
        self.publish();
        has_counted
    }
}

#[cfg(test)]
mod tests {
    use document::{ItemBuilder, ItemMeta, KeyBuf, VbUuid, Vbid, VbucketState};

    use super::*;
    use crate::effect::Effect;
    use crate::eviction::EvictionOptions;
    use crate::hash_table::HashSeed;
    use crate::memory_account::MemoryAccount;
    use crate::operation::{Now, Refusal, StoreMode, WriteCondition};

    const NAMES: [&str; 3] = ["a", "b", "c"];

    fn key(name: &str) -> KeyBuf {
        KeyBuf::in_default_collection(name.as_bytes()).unwrap()
    }

    /// What was flushed is in the file; returns it.
    fn flush(vbucket: &mut Vbucket) -> Vec<Item> {
        let effects: &mut Vec<Effect> = &mut Vec::new();
        let mut batch = vbucket.begin_flush().unwrap();
        let items = batch.take_items(usize::MAX).items;
        vbucket.flush_succeeded(&batch, Now::default(), effects);
        vbucket.apply_succeeded(batch.high_seqno());
        let tombstones: Vec<Item> = items.iter().filter(|it| it.is_deleted()).cloned().collect();
        assert_eq!(vbucket.forget_tombstones(&tombstones, 0, effects), None);
        items
    }

    fn evict(vbucket: &mut Vbucket, name: &str) {
        let ejected = vbucket.eject(key(name).as_key(), Now::default(), &mut Vec::new());
        assert_eq!(ejected, Some(true), "{name}");
    }

    /// Three documents that have left memory, keys that are to stay from now on, and the file.
    fn returning() -> (Vbucket, Vec<Item>) {
        let options = EvictionOptions { policy: EvictionPolicy::Full, ..Default::default() };
        let (seed, account) = (HashSeed::new(1), MemoryAccount::default());
        let mut vbucket = Vbucket::new(Vbid(0), VbucketState::Active, VbUuid(7), seed, account)
            .with_eviction(options);
        for name in NAMES {
            let key = key(name);
            let builder = ItemBuilder::new(key.as_key(), ItemMeta::default(), b"value");
            let condition = WriteCondition::default();
            let effects: &mut Vec<Effect> = &mut Vec::new();
            vbucket.store(StoreMode::Set, builder, condition, Now::default(), effects).unwrap();
        }
        let file = flush(&mut vbucket);
        NAMES.iter().for_each(|name| evict(&mut vbucket, name));
        assert_eq!((vbucket.document_count(), vbucket.document_count_in_memory()), (3, 0));
        vbucket.set_eviction_policy(EvictionPolicy::ValueOnly);
        (vbucket, file)
    }

    fn load_all(vbucket: &mut Vbucket, load: KeyLoad, file: &[Item]) {
        for item in file {
            drop(vbucket.load_key(load, item.ejected()));
        }
    }

    fn read(vbucket: &mut Vbucket, name: &str) -> Result<bool, Refusal> {
        let found = vbucket.get(key(name).as_key(), Now::default(), &mut Vec::new());
        found.map(|found| found.item.is_ejected())
    }

    #[test]
    fn what_has_left_whole_comes_back_without_values_and_stays() {
        let (mut vbucket, file) = returning();
        assert!(matches!(read(&mut vbucket, "a"), Err(Refusal::Absent(_))), "it is looked up");
        let load = vbucket.begin_key_load().unwrap();
        load_all(&mut vbucket, load, &file[..1]);
        assert_eq!((vbucket.document_count(), vbucket.document_count_in_memory()), (3, 1));
        assert!(matches!(read(&mut vbucket, "a"), Err(Refusal::Ejected(_))), "its key is here");
        evict(&mut vbucket, "a");
        assert_eq!(vbucket.document_count_in_memory(), 1, "keys stay");
        assert!(vbucket.end_key_load(load, Some(file[1].seqno())));
        assert!(vbucket.has_keys_to_load());
        let load = vbucket.begin_key_load().unwrap();
        assert_eq!(load.from, file[1].seqno());
        load_all(&mut vbucket, load, &file[1..]);
        assert!(vbucket.end_key_load(load, None));
        assert!(!vbucket.may_lack_documents());
        assert_eq!((vbucket.document_count(), vbucket.document_count_in_memory()), (3, 3));
        assert!(matches!(read(&mut vbucket, "none"), Err(Refusal::NotFound)));
    }

    #[test]
    fn what_was_deleted_during_a_run_does_not_come_back() {
        let (mut vbucket, file) = returning();
        let load = vbucket.begin_key_load().unwrap();
        let condition = WriteCondition::default();
        let effects: &mut Vec<Effect> = &mut Vec::new();
        let key = key("a");
        let Err(Refusal::Absent(lookup)) =
            vbucket.delete(key.as_key(), condition, Now::default(), effects)
        else {
            panic!("it is looked up");
        };
        drop(vbucket.finish_lookup(&lookup, Some(file[0].clone())));
        vbucket.delete(key.as_key(), condition, Now::default(), effects).unwrap();
        flush(&mut vbucket);
        load_all(&mut vbucket, load, &file);
        assert!(vbucket.end_key_load(load, None));
        assert_eq!((vbucket.document_count(), vbucket.document_count_in_memory()), (2, 2));
        assert!(matches!(read(&mut vbucket, "a"), Err(Refusal::NotFound)));
    }

    #[test]
    fn documents_that_leave_whole_again_are_looked_up_and_counted() {
        let (mut vbucket, file) = returning();
        let load = vbucket.begin_key_load().unwrap();
        load_all(&mut vbucket, load, &file[..2]);
        vbucket.set_eviction_policy(EvictionPolicy::Full);
        evict(&mut vbucket, "a");
        load_all(&mut vbucket, load, &file);
        assert!(!vbucket.end_key_load(load, None));
        assert!(vbucket.may_lack_documents());
        assert_eq!((vbucket.document_count(), vbucket.document_count_in_memory()), (3, 1));
        assert!(matches!(read(&mut vbucket, "a"), Err(Refusal::Absent(_))));
    }
}
