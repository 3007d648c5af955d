//! What others know of the pager: how to wake it, and up to which documents it evicts.

use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};

use crate::core::Wakeable;

/// What others need of the pager.
#[derive(Default)]
pub(crate) struct Pager {
    pub(super) task: Wakeable,
    /// The pager pauses, and wakes would be in vain.
    pub(super) is_pausing: AtomicBool,
    /// Up to which frequency counter documents left in the last round.
    pub(super) threshold: AtomicU16,
    /// The vBucket in which the last walk of active ones ended.
    pub(super) last: AtomicU64,
}

impl Pager {
    /// Has the pager look at memory now, unless it knows that it can do nothing.
    pub(crate) fn wake(&self) {
        if !self.is_pausing.load(Ordering::Relaxed) {
            self.task.wake();
        }
    }
}
