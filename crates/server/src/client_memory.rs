//! Memory that clients make the node hold beside documents.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that are received and not executed yet, of requests that wait, and of answers that their
/// readers have not taken, of all connections. One budget bounds them: when it is used up large
/// requests are refused, nobody gets more answers than it reads, and nobody new is let in.
///
/// A connection that keeps up with its client holds nothing, so the count is seldom written.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct ClientMemory {
    used_bytes: AtomicUsize,
    bytes_max: usize,
}

impl ClientMemory {
    pub(crate) fn with_limit(bytes_max: usize) -> Self {
        Self { used_bytes: AtomicUsize::new(0), bytes_max }
    }

    /// A connection that held `before` bytes holds `now`.
    pub(crate) fn settle(&self, before: usize, now: usize) {
        if now >= before {
            self.used_bytes.fetch_add(now - before, Ordering::Relaxed);
        } else {
            self.used_bytes.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    /// Bytes that are held.
    pub(crate) fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that may be held. What a turn adds beyond them is still taken.
    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Whether `bytes` more may be held.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        self.used_bytes().saturating_add(bytes) <= self.bytes_max
    }
}
