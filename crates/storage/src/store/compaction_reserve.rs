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
    /// What is in memory alone and will be flushed: what follows the journal leaves room for it.
    unflushed_bytes: AtomicU64,
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

    /// What is left to flushes by what follows the journal.
    pub(crate) fn unflushed_bytes(&self) -> u64 {
        self.unflushed_bytes.load(Ordering::Relaxed)
    }

    /// So much is in memory alone.
    pub(crate) fn note_unflushed(&self, bytes: u64) {
        self.unflushed_bytes.store(bytes, Ordering::Relaxed);
    }

    /// What those who are writing now have been let take.
    pub(crate) fn claimed_bytes(&self) -> u64 {
        self.claimed_bytes.load(Ordering::Relaxed)
    }

    /// Takes `bytes` if all together have then taken no more than `claimed_bytes_max`. Otherwise
    /// it says how many the others have taken: who gets nothing is in nobody's way.
    pub(crate) fn claim(&self, bytes: u64, claimed_bytes_max: u64) -> Result<Room<'_>, u64> {
        let claimed =
            |before: u64| before.checked_add(bytes).filter(|claimed| *claimed <= claimed_bytes_max);
        // Relaxed is enough: nothing but the sum itself is agreed on here.
        let result = self.claimed_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, claimed);
        result.map(|_| Room { reserve: self, bytes })
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.reserve.claimed_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
