//! Locking documents (GET_LOCKED, UNLOCK_KEY).

use std::time::Duration;

use document::{Cas, Key, expiry};

use super::Vbucket;
use crate::document_locks::DocumentLock;
use crate::effect::Effect;
use crate::operation::{Found, Now, Refusal};

impl Vbucket {
    /// Locks the document `key` for `duration` and returns it with the lock's CAS.
    pub fn lock(
        &mut self,
        key: Key<'_>,
        duration: Duration,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<Found, Refusal> {
        self.check_active()?;
        self.check_collection(key)?;
        self.check_unprepared(key)?;
        let found = self.get(key, now, effects)?;
        if found.cas == Cas::LOCKED {
            return Err(Refusal::Locked);
        }
        let cas = self.clock.next(now.wall);
        let until = now.monotonic.after(duration);
        self.locks.insert(key, DocumentLock { cas, until }, now.monotonic);
        self.publish();
        Ok(Found { item: found.item, cas })
    }

    /// The lock on `key`, unless its time is over.
    #[inline]
    pub(super) fn lock_on(&mut self, key: Key<'_>, now: Now) -> Option<DocumentLock> {
        if self.locks.count() == 0 {
            return None;
        }
        let lock = self.locks.get(key, now.monotonic);
        if lock.is_none() {
            // One whose time is over is gone now.
            self.publish();
        }
        lock
    }

    /// Ends the lock on `key` that `cas` names.
    pub fn unlock(&mut self, key: Key<'_>, cas: Cas, now: Now) -> Result<(), Refusal> {
        self.check_active()?;
        self.check_collection(key)?;
        self.check_unprepared(key)?;
        let seconds = now.wall.seconds();
        let Some(newest) = self.hash_table.get(key) else {
            self.check_absent(key)?;
            return Err(Refusal::NotFound);
        };
        if newest.is_deleted() || expiry::is_past(newest.expiry(), seconds) {
            return Err(Refusal::NotFound);
        }
        match self.lock_on(key, now) {
            None => Err(Refusal::NotLocked),
            Some(lock) if lock.cas != cas => Err(Refusal::Locked),
            Some(_) => {
                self.locks.release(key);
                self.publish();
                Ok(())
            }
        }
    }
}
