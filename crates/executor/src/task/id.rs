//! The numbers of tasks.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers that a thread takes at a time, so that threads do not contend for each one.
const BLOCK: u64 = 1 << 10;

static NEXT_BLOCK: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// Unique within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaskId(pub(crate) u64);

impl TaskId {
    /// A number that no other task has had.
    pub(crate) fn new() -> Self {
        NEXT.with(|next| {
            if next.get().is_multiple_of(BLOCK) {
                next.set(NEXT_BLOCK.fetch_add(1, Ordering::Relaxed) * BLOCK);
            }
            let id = next.get();
            next.set(id + 1);
            Self(id)
        })
    }
}
