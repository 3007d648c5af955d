//! Locks that clients hold on documents: in memory only, gone with the process.

use document::{Cas, Key, Map};
use platform::Instant;

/// One locked document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DocumentLock {
    /// What the holder must present.
    pub(crate) cas: Cas,
    /// When the lock ends by itself.
    pub(crate) until: Instant,
}

/// All locked documents of a vBucket. Locks whose time is over count as absent and are removed
/// when they are met.
#[derive(Debug, Default)]
pub(crate) struct DocumentLocks {
    locks: Map<Box<[u8]>, DocumentLock>,
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

    /// Locks `key`.
    pub(crate) fn insert(&mut self, key: Key<'_>, lock: DocumentLock) {
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
