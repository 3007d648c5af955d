//! The place of one vBucket in its bucket, with its locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

use vbucket::Vbucket;

/// One vBucket and what guards it. Lock order: `file` before `vbucket` (docs/locks.md).
#[derive(Debug, Default)]
pub(crate) struct VbucketSlot {
    /// `None` while it is being loaded.
    vbucket: Mutex<Option<Vbucket>>,
    /// Held by whoever changes the vBucket's file: a flush, a removal. Held across I/O; never taken
    /// by a front-end worker.
    file: Mutex<()>,
}

impl VbucketSlot {
    /// The vBucket, if it is loaded. Nothing is freed, sent, logged or waited for under this lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Option<Vbucket>> {
        self.vbucket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to change the vBucket's file.
    pub(crate) fn lock_file(&self) -> MutexGuard<'_, ()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a vBucket into its place and returns the one that was there, to be dropped by the
    /// caller.
    pub(crate) fn replace(&self, vbucket: Vbucket) -> Option<Vbucket> {
        self.lock().replace(vbucket)
    }
}
