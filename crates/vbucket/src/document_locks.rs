//! Locks that clients hold on documents: in memory only, gone with the process.

use std::collections::BTreeMap;

use document::{Cas, Item, Key};
use platform::Instant;

use crate::operation::Refusal;

/// Ended locks are looked for when there are so many, and then twice as many as are left.
const SWEEP_COUNT_MIN: usize = 64;

/// One locked document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentLock {
    /// What the holder must present.
    pub(crate) cas: Cas,
    /// When the lock ends by itself.
    pub(crate) until: Instant,
}

/// All locked documents of a vBucket. Locks whose time is over count as absent and are removed
/// when they are met, or when there are many.
#[derive(Debug, Default)]
pub(crate) struct DocumentLocks {
    /// In order: keys that clients choose make no hash table slow.
    locks: BTreeMap<Box<[u8]>, DocumentLock>,
    /// How many there were left after the last look for ended ones.
    left_count: usize,
}

impl DocumentLocks {
    /// The lock on `key`, unless its time is over.
    pub(crate) fn get(&mut self, key: Key<'_>, now: Instant) -> Option<DocumentLock> {
        if self.locks.is_empty() {
            return None;
        }
        let lock = *self.locks.get(key.encoded())?;
        if lock.until > now {
            return Some(lock);
        }
        self.release(key);
        None
    }

    /// Why a write that is to replace `cas` may not replace `item`, which is live.
    pub(crate) fn refusal(&mut self, item: &Item, cas: Cas, now: Instant) -> Option<Refusal> {
        match self.get(item.key(), now) {
            Some(lock) if lock.cas != cas => Some(Refusal::Locked),
            None if cas != Cas::ANY && cas != item.cas() => Some(Refusal::CasMismatch),
            _ => None,
        }
    }

    /// Locks `key`.
    pub(crate) fn insert(&mut self, key: Key<'_>, lock: DocumentLock, now: Instant) {
        if self.locks.len() >= SWEEP_COUNT_MIN.max(2 * self.left_count) {
            self.locks.retain(|_, lock| lock.until > now);
            self.left_count = self.locks.len();
        }
        self.locks.insert(key.encoded().into(), lock);
    }

    /// Ends the lock on `key`.
    pub(crate) fn release(&mut self, key: Key<'_>) {
        if !self.locks.is_empty() {
            self.locks.remove(key.encoded());
        }
    }

    /// How many locks are held, ended ones that nobody has met since included.
    pub(crate) fn count(&self) -> usize {
        self.locks.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use document::KeyBuf;

    use super::*;

    #[test]
    fn locks_that_have_ended_and_that_nobody_meets_again_are_let_go_of() {
        let mut locks = DocumentLocks::default();
        let start = Instant::default();
        for second in 0..10_000_u64 {
            let key = KeyBuf::in_default_collection(second.to_string().as_bytes()).unwrap();
            let now = start.after(Duration::from_secs(second));
            let lock = DocumentLock { cas: Cas(1), until: now.after(Duration::from_secs(15)) };
            locks.insert(key.as_key(), lock, now);
            assert!(locks.get(key.as_key(), now).is_some());
            assert!(locks.count() <= SWEEP_COUNT_MIN, "{} at {second}", locks.count());
        }
    }
}
