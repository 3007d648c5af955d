//! When a task is due: the part of a timer that others write without a lock.
//!
//! `due` is what the task's users want, `armed` is when the wheel will look at it. A deadline that
//! moves to a later time, as nearly all do, is one store: the wheel comes at the old time, sees the
//! new one and goes away until then. Only a deadline before `armed` takes the lock of a shard.
//!
//! Two threads decide together who acts, each writing before it reads (all four operations are
//! sequentially consistent): a user stores `due`, then loads `armed`; the wheel stores `armed`,
//! then loads `due`. At least one sees what the other wrote.

use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The tick of a task that is not due at any time.
pub(crate) const NEVER: u64 = u64::MAX;

/// One task's deadline, in ticks of its pool.
#[derive(Debug)]
pub(crate) struct Deadline {
    due: AtomicU64,
    /// Written under the lock of the shard.
    armed: AtomicU64,
    /// The entry in the shard's wheel while `armed` is not [`NEVER`]. Used under the shard's lock.
    entry: AtomicU32,
}

impl Deadline {
    pub(crate) const fn never() -> Self {
        Self { due: AtomicU64::new(NEVER), armed: AtomicU64::new(NEVER), entry: AtomicU32::new(0) }
    }

    pub(crate) fn due(&self) -> u64 {
        self.due.load(Ordering::SeqCst)
    }

    pub(crate) fn armed(&self) -> u64 {
        self.armed.load(Ordering::SeqCst)
    }

    pub(crate) fn entry(&self) -> u32 {
        self.entry.load(Ordering::Relaxed)
    }

    /// Replaces the deadline. Whether the shard must be told.
    pub(crate) fn set(&self, tick: u64) -> bool {
        self.due.store(tick, Ordering::SeqCst);
        tick < self.armed()
    }

    /// Sets the deadline unless there is an earlier one. Whether the shard must be told.
    pub(crate) fn set_if_earlier(&self, tick: u64) -> bool {
        self.due.fetch_min(tick, Ordering::SeqCst);
        tick < self.armed()
    }

    /// Forgets the deadline. The wheel finds out when it comes to it.
    pub(crate) fn clear(&self) {
        if self.due.load(Ordering::Relaxed) != NEVER {
            self.due.store(NEVER, Ordering::SeqCst);
        }
    }

    /// Forgets the deadline if it is `tick` still.
    pub(crate) fn take(&self, tick: u64) -> bool {
        self.due.compare_exchange(tick, NEVER, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Says when the wheel comes. The caller holds the lock of the shard.
    pub(crate) fn set_armed(&self, tick: u64) {
        self.armed.store(tick, Ordering::SeqCst);
    }

    /// Says where the wheel keeps it. The caller holds the lock of the shard.
    pub(crate) fn set_entry(&self, entry: u32) {
        self.entry.store(entry, Ordering::Relaxed);
    }
}

/// Whoever has a deadline.
pub(crate) trait Timed {
    fn deadline(&self) -> &Deadline;
}
