//! What producers and their streams count.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum StreamState {
    /// It reads a file.
    Backfilling = 1,
    /// It follows the log.
    InMemory = 2,
    /// It hands its vBucket over.
    TakeoverSend = 3,
    /// It waits for the other side of that.
    TakeoverWait = 4,
    /// It has ended.
    Dead = 5,
}

/// Written by the producer's owner, read by anybody.
#[derive(Debug, Default)]
pub(super) struct ProducerCounters {
    pub(super) items_sent: AtomicU64,
    pub(super) bytes_sent: AtomicU64,
    pub(super) buffer_bytes: AtomicU64,
    pub(super) unacked_bytes: AtomicU64,
    pub(super) acked_bytes: AtomicU64,
    /// Rises and falls with what backfills read ahead, on two threads.
    pub(super) backfill_bytes: AtomicU64,
}

/// The same of a stream.
#[derive(Debug, Default)]
pub(super) struct StreamCounters {
    pub(super) state: AtomicU64,
    pub(super) opaque: AtomicU64,
    pub(super) flags: AtomicU64,
    pub(super) start: AtomicU64,
    pub(super) end: AtomicU64,
    pub(super) last_sent: AtomicU64,
    pub(super) last_read: AtomicU64,
    pub(super) backfill_items: AtomicU64,
    pub(super) memory_items: AtomicU64,
    /// [`UNKNOWN`] before a backfill has found out.
    pub(super) backfill_remaining: AtomicU64,
    pub(super) waiting_messages: AtomicU64,
}

/// A number of items that nobody knows yet.
pub(super) const UNKNOWN: u64 = u64::MAX;

pub(super) fn set(counter: &AtomicU64, value: u64) {
    counter.store(value, Ordering::Relaxed);
}

pub(super) fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Ordering::Relaxed);
}

pub(super) fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
