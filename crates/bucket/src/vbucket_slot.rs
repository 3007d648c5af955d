//! The place of one vBucket in its bucket, with its locks.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use platform::no_free::Zone;
use vbucket::Vbucket;

/// One vBucket and what guards it. Lock order: `history`, `file`, `vbucket` (docs/locks.md).
#[derive(Debug, Default)]
pub(crate) struct VbucketSlot {
    /// `None` while it is being loaded.
    vbucket: Mutex<Option<Vbucket>>,
    /// Held by whoever brings the file up to date with the journal, and by whoever puts another
    /// history in the place of the vBucket's. Held across I/O; never taken by a front-end worker.
    history: Mutex<()>,
    /// Held by whoever hands over batches of the vBucket, and by whoever removes its file: the
    /// order of batches. Held across I/O; never taken by a front-end worker.
    file: Mutex<()>,
    /// Whether the file is damaged, so that nothing more can be flushed to it.
    file_is_damaged: AtomicBool,
    /// Whether the vBucket was deleted: then there is none, and none is being loaded. Changed by
    /// whoever holds `file`.
    is_absent: AtomicBool,
}

/// A vBucket under its lock.
pub(crate) struct VbucketGuard<'a> {
    vbucket: MutexGuard<'a, Option<Vbucket>>,
    _zone: Zone,
}

impl Deref for VbucketGuard<'_> {
    type Target = Option<Vbucket>;

    fn deref(&self) -> &Self::Target {
        &self.vbucket
    }
}

impl DerefMut for VbucketGuard<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.vbucket
    }
}

impl VbucketSlot {
    /// The vBucket, if it is loaded. Nothing is freed, sent, logged or waited for under this lock;
    /// debug builds check the first of these.
    pub(crate) fn lock(&self) -> VbucketGuard<'_> {
        let vbucket = self.vbucket.lock().unwrap_or_else(PoisonError::into_inner);
        VbucketGuard { vbucket, _zone: Zone::enter() }
    }

    /// The right to keep the vBucket's history what it is, or to put another in its place; for the
    /// latter [`VbucketSlot::lock_file`] is taken after it.
    pub(crate) fn lock_history(&self) -> MutexGuard<'_, ()> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to hand over batches of the vBucket.
    pub(crate) fn lock_file(&self) -> MutexGuard<'_, ()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the file is damaged.
    pub(crate) fn file_is_damaged(&self) -> bool {
        self.file_is_damaged.load(Ordering::Relaxed)
    }

    /// Notes whether the file is damaged; says whether it was.
    pub(crate) fn set_file_is_damaged(&self, is_damaged: bool) -> bool {
        self.file_is_damaged.swap(is_damaged, Ordering::Relaxed)
    }

    /// Whether the vBucket was deleted.
    pub(crate) fn is_absent(&self) -> bool {
        self.is_absent.load(Ordering::Acquire)
    }

    /// Takes the vBucket out, to be dropped by the caller: it is deleted.
    pub(crate) fn take_absent(&self) -> Option<Vbucket> {
        // In this order: whoever finds no vBucket finds why.
        self.is_absent.store(true, Ordering::Release);
        self.lock().take()
    }

    /// Puts a vBucket into the place of one that was deleted.
    pub(crate) fn put_present(&self, vbucket: Vbucket) {
        let before = self.replace(vbucket);
        assert!(before.is_none(), "a deleted vBucket is not there");
        self.is_absent.store(false, Ordering::Release);
    }

    /// Puts a vBucket into its place and returns the one that was there, to be dropped by the
    /// caller.
    pub(crate) fn replace(&self, vbucket: Vbucket) -> Option<Vbucket> {
        self.lock().replace(vbucket)
    }
}
