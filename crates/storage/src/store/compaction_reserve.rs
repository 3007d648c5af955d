//! What files leave of the disk, so that they can be compacted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use platform::DiskSpace;

/// At most this part of a disk is kept: a file that takes more than that cannot be compacted for
/// want of room, but its disk can be filled.
const RESERVE_PART_MAX: u64 = 10;

/// What is kept for a compaction beside the bytes that it copies.
const EXTRA_BYTES: u64 = 1 << 20;

/// What files leave of the disk for compactions.
#[derive(Debug, Default)]
pub(crate) struct CompactionReserve {
    /// Whether anything is kept: not as long as nobody compacts.
    is_kept: AtomicBool,
    /// For the copy of the largest file.
    bytes_wanted: AtomicU64,
    /// What those who are writing now have been let take.
    claimed_bytes: AtomicU64,
    /// What a flush has found no room for: it is in memory alone, and others leave room for it.
    refused_bytes: AtomicU64,
}

/// Leave to write so many bytes. Others count on them until it is dropped.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    reserve: &'a CompactionReserve,
    bytes: u64,
}

impl CompactionReserve {
    /// Keeps room for the copy of a file of which so many bytes are to be copied; `None`: for none.
    pub(crate) fn keep(&self, live_bytes_max: Option<u64>) {
        let bytes = live_bytes_max.unwrap_or(0).saturating_add(EXTRA_BYTES);
        self.bytes_wanted.store(bytes, Ordering::Relaxed);
        self.is_kept.store(live_bytes_max.is_some(), Ordering::Relaxed);
    }

    /// There is a file of which so many bytes are to be copied.
    pub(crate) fn note_file(&self, live_bytes: u64) {
        self.bytes_wanted.fetch_max(live_bytes.saturating_add(EXTRA_BYTES), Ordering::Relaxed);
    }

    /// What is kept on a disk of this size.
    pub(crate) fn bytes(&self, space: DiskSpace) -> u64 {
        if !self.is_kept.load(Ordering::Relaxed) {
            return 0;
        }
        self.bytes_wanted.load(Ordering::Relaxed).min(space.total_bytes / RESERVE_PART_MAX)
    }

    /// What others leave to the flush that was refused last; 0 since one has found room.
    pub(crate) fn refused_bytes(&self) -> u64 {
        self.refused_bytes.load(Ordering::Relaxed)
    }

    /// Notes what a flush has found no room for; 0 when it has.
    pub(crate) fn note_refused(&self, bytes: u64) {
        self.refused_bytes.store(bytes, Ordering::Relaxed);
    }

    /// What those who are writing now have been let take.
    pub(crate) fn claimed_bytes(&self) -> u64 {
        self.claimed_bytes.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, and says how many all have taken.
    pub(crate) fn claim(&self, bytes: u64) -> (Room<'_>, u64) {
        let before = self.claimed_bytes.fetch_add(bytes, Ordering::Relaxed);
        (Room { reserve: self, bytes }, before.saturating_add(bytes))
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.reserve.claimed_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
