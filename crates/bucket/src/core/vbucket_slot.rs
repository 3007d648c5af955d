//! The place of one vBucket in its bucket, with its locks.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use platform::Instant;
use platform::no_free::Zone;
use vbucket::{Refusal, Topology, Vbucket, VbucketFigures};

use super::awaited_role::AwaitedRole;
use super::back_off::BackOff;
use super::damage_mark::{DamageKind, DamageMark};

/// From a compaction that failed to the next of the same file, at least.
const COMPACTION_PAUSE_MIN: Duration = Duration::from_secs(60);

/// What each failure doubles that to, at most.
const COMPACTION_PAUSE_MAX: Duration = Duration::from_secs(60 * 60);

/// One vBucket and what guards it. Lock order: `history`, `file`, `vbucket` (docs/locks.md).
#[derive(Debug)]
pub(crate) struct VbucketSlot {
    /// `None` while it is being loaded, when it was deleted, and when it is out of service.
    vbucket: Mutex<Option<Vbucket>>,
    /// What of it is read without that lock: those of the vBucket that is in its place. Its own
    /// lock is taken under that one, by whoever puts a vBucket into the place or takes it out, and
    /// by whoever looks: never for a request.
    figures: Mutex<Option<Arc<VbucketFigures>>>,
    /// Held by whoever brings the file up to date with the journal, and by whoever puts another
    /// history in the place of the vBucket's. Held across I/O; never taken by a front-end worker.
    history: Mutex<()>,
    /// Held by whoever hands over batches of the vBucket, and by whoever removes its file: the
    /// order of batches. Held across I/O; never taken by a front-end worker.
    file: Mutex<()>,
    /// What is wrong with the file. A vBucket that is out of service is not there; it stays so
    /// until another takes its place.
    pub(crate) damage: DamageMark,
    /// Until when nobody compacts the file unasked: it could not be.
    pub(crate) compaction_pause: BackOff,
    /// Until then other files follow the journal before this one, which could not: nanoseconds of
    /// [`Instant`].
    applies_later_until: AtomicU64,
    /// The role that was asked for while no vBucket was in its place; of no meaning while one is.
    /// The lock is held for a look or a change.
    awaited: Mutex<AwaitedRole>,
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

#[cfg(debug_assertions)]
impl Drop for VbucketGuard<'_> {
    fn drop(&mut self) {
        if let Some(vbucket) = &*self.vbucket
            && !std::thread::panicking()
        {
            assert!(vbucket.is_published(), "what has changed under the lock is published");
        }
    }
}

impl Default for VbucketSlot {
    fn default() -> Self {
        Self {
            vbucket: Mutex::default(),
            figures: Mutex::default(),
            history: Mutex::default(),
            file: Mutex::default(),
            damage: DamageMark::default(),
            compaction_pause: BackOff::new(COMPACTION_PAUSE_MIN, COMPACTION_PAUSE_MAX),
            applies_later_until: AtomicU64::new(0),
            awaited: Mutex::default(),
            is_absent: AtomicBool::default(),
        }
    }
}

impl VbucketSlot {
    /// The vBucket, if it is loaded. Nothing is freed, sent, logged or waited for under this lock;
    /// debug builds check the first of these.
    pub(crate) fn lock(&self) -> VbucketGuard<'_> {
        let vbucket = self.vbucket.lock().unwrap_or_else(PoisonError::into_inner);
        VbucketGuard { vbucket, _zone: Zone::enter() }
    }

    /// The same, unless somebody holds the lock: then `None`.
    pub(crate) fn try_lock(&self) -> Option<VbucketGuard<'_>> {
        let vbucket = match self.vbucket.try_lock() {
            Ok(vbucket) => vbucket,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(VbucketGuard { vbucket, _zone: Zone::enter() })
    }

    /// The right to keep the vBucket's history what it is, or to put another in its place; for the
    /// latter [`VbucketSlot::lock_file`] is taken after it.
    pub(crate) fn lock_history(&self) -> MutexGuard<'_, ()> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same, unless somebody holds that right: then `None`.
    pub(crate) fn try_lock_history(&self) -> Option<MutexGuard<'_, ()>> {
        match self.history.try_lock() {
            Ok(history) => Some(history),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The right to hand over batches of the vBucket.
    pub(crate) fn lock_file(&self) -> MutexGuard<'_, ()> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the file is damaged, so that nothing more can be flushed to it.
    pub(crate) fn file_is_damaged(&self) -> bool {
        self.damage.kind() >= Some(DamageKind::RefusesWrites)
    }

    /// Whether there is no vBucket because its file is damaged.
    pub(crate) fn is_out_of_service(&self) -> bool {
        self.damage.kind() == Some(DamageKind::OutOfService)
    }

    /// Why there is no vBucket, for whoever has found none.
    pub(crate) fn why_not_here(&self) -> Refusal {
        if self.is_absent() {
            Refusal::NotActive
        } else if self.is_out_of_service() {
            Refusal::FileIsDamaged
        } else {
            Refusal::Loading
        }
    }

    /// Whether what is loaded of the file is still wanted: nothing is in the place, and nobody has
    /// deleted the vBucket or found it damaged. The caller holds `file`.
    pub(crate) fn awaits_loading(&self) -> bool {
        !self.is_absent() && !self.is_out_of_service() && self.lock().is_none()
    }

    /// Whether other files are to follow the journal before this one.
    pub(crate) fn applies_later(&self, now: Instant) -> bool {
        now.0 < self.applies_later_until.load(Ordering::Relaxed)
    }

    /// The file could not follow the journal: others do before it, until then.
    pub(crate) fn apply_later(&self, until: Instant) {
        self.applies_later_until.store(until.0, Ordering::Relaxed);
    }

    /// Whether the vBucket was deleted.
    pub(crate) fn is_absent(&self) -> bool {
        self.is_absent.load(Ordering::Acquire)
    }

    /// The role that was asked for while no vBucket was in its place.
    pub(crate) fn awaited(&self) -> AwaitedRole {
        self.lock_awaited().clone()
    }

    /// A role was asked for, and no vBucket is there to play it.
    pub(crate) fn await_role(&self, role: AwaitedRole) {
        *self.lock_awaited() = role;
    }

    /// The same of who must hold durable writes, in whatever role.
    pub(crate) fn await_topology(&self, topology: Topology) {
        self.lock_awaited().topology = topology;
    }

    fn lock_awaited(&self) -> MutexGuard<'_, AwaitedRole> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the vBucket out, to be dropped by the caller: it is deleted.
    pub(crate) fn take_absent(&self) -> Option<Vbucket> {
        // In this order: whoever finds no vBucket finds why.
        self.is_absent.store(true, Ordering::Release);
        self.forget_file();
        self.put(None)
    }

    /// Nothing has come into the place of one that was deleted: it stays out of service.
    pub(crate) fn put_out_of_service(&self, reason: &str) {
        // In this order: whoever finds that it was not deleted finds why it is not here.
        self.damage.note(DamageKind::OutOfService, reason);
        self.is_absent.store(false, Ordering::Release);
    }

    /// Takes the vBucket out, to be dropped by the caller: its file is about to be set aside.
    pub(crate) fn take_out_of_service(&self, reason: &str) -> Option<Vbucket> {
        self.damage.note(DamageKind::OutOfService, reason);
        self.put(None)
    }

    /// Puts a vBucket into the place of one that was deleted, or is out of service.
    pub(crate) fn put_present(&self, vbucket: Vbucket) {
        // In this order: whoever finds that it was not deleted finds the vBucket.
        let before = self.replace(vbucket);
        assert!(before.is_none(), "a vBucket that was taken out is not there");
        self.is_absent.store(false, Ordering::Release);
        self.forget_file();
    }

    /// Another file has taken the place of the one that was there, or will.
    pub(crate) fn forget_file(&self) {
        self.damage.clear();
        self.compaction_pause.clear();
    }

    /// Puts a vBucket into its place and returns the one that was there, to be dropped by the
    /// caller.
    pub(crate) fn replace(&self, vbucket: Vbucket) -> Option<Vbucket> {
        self.put(Some(vbucket))
    }

    fn put(&self, vbucket: Option<Vbucket>) -> Option<Vbucket> {
        // Was asked for of what was, or was not, here before.
        self.await_role(AwaitedRole::default());
        let figures = vbucket.as_ref().map(|vbucket| Arc::clone(vbucket.figures()));
        let mut place = self.lock();
        // What is let go here is still held by the vBucket that leaves.
        *self.lock_figures() = figures;
        std::mem::replace(&mut *place, vbucket)
    }

    /// What may be read of the vBucket while somebody holds its lock, if it is loaded.
    pub(crate) fn figures(&self) -> Option<Arc<VbucketFigures>> {
        self.lock_figures().clone()
    }

    fn lock_figures(&self) -> MutexGuard<'_, Option<Arc<VbucketFigures>>> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
