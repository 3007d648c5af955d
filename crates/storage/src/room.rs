//! Room on the disk: some is kept for compactions; without any, the journal gives its spares.
//!
//! Files only grow until they are compacted, and to compact one takes room for its copy. Were the
//! last of the disk taken by what files append, nothing could ever be freed again.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use platform::{DiskSpace, FileError};

use crate::StorageError;
use crate::backlog::bytes_of;
use crate::flush_batch::FlushBatch;
use crate::store::Store;

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
}

/// Leave to write so many bytes. Others count on them until it is dropped.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    reserve: &'a CompactionReserve,
    bytes: u64,
}

impl CompactionReserve {
    /// There is a file of which so many bytes are to be copied.
    pub(crate) fn note_file(&self, live_bytes: u64) {
        self.bytes_wanted.fetch_max(live_bytes.saturating_add(EXTRA_BYTES), Ordering::Relaxed);
    }

    fn bytes(&self, space: DiskSpace) -> u64 {
        if !self.is_kept.load(Ordering::Relaxed) {
            return 0;
        }
        self.bytes_wanted.load(Ordering::Relaxed).min(space.total_bytes / RESERVE_PART_MAX)
    }

    /// Takes `bytes`, and says how many all have taken.
    fn claim(&self, bytes: u64) -> (Room<'_>, u64) {
        let before = self.claimed_bytes.fetch_add(bytes, Ordering::Relaxed);
        (Room { reserve: self, bytes }, before.saturating_add(bytes))
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.reserve.claimed_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Store {
    /// From now on files leave room on the disk for the copy of the largest of them, of which so
    /// many bytes are to be copied, or a tenth of the disk if that is less; `None`: for nothing. A
    /// file that becomes larger is taken note of.
    pub fn reserve_for_compaction(&self, live_bytes_max: Option<u64>) {
        let reserve = &self.compaction_reserve;
        let bytes = live_bytes_max.unwrap_or(0).saturating_add(EXTRA_BYTES);
        reserve.bytes_wanted.store(bytes, Ordering::Relaxed);
        reserve.is_kept.store(live_bytes_max.is_some(), Ordering::Relaxed);
    }

    /// Room on the disk that the files are on.
    pub fn disk_space(&self) -> Result<DiskSpace, StorageError> {
        Ok(self.files.disk_space(&self.directory)?)
    }

    /// Leave to let a file grow by about so many bytes. There is none when that, with what others
    /// are about to write, takes what compaction needs.
    pub(crate) fn room_for(&self, bytes: u64) -> Result<Room<'_>, StorageError> {
        let (room, claimed_bytes) = self.compaction_reserve.claim(bytes);
        // A disk that does not tell says so when it is full.
        let Ok(space) = self.files.disk_space(&self.directory) else { return Ok(room) };
        let reserve_bytes = self.compaction_reserve.bytes(space);
        if reserve_bytes == 0 || space.free_bytes >= claimed_bytes.saturating_add(reserve_bytes) {
            return Ok(room);
        }
        let cause = io::Error::new(
            io::ErrorKind::StorageFull,
            format!(
                "{bytes} bytes do not fit into {}, of which {reserve_bytes} are for compactions",
                space.free_bytes
            ),
        );
        Err(FileError::new("write", &self.directory, cause).into())
    }

    /// Leave for the journal to take these batches. Its segments are as much in the way of
    /// compaction as files are; roles alone take next to nothing.
    pub(crate) fn room_for_batches(
        &self,
        batches: &[FlushBatch],
    ) -> Result<Option<Room<'_>>, StorageError> {
        let bytes: u64 = batches.iter().map(|batch| bytes_of(&batch.items)).sum();
        if bytes == 0 { Ok(None) } else { self.room_for(bytes).map(Some) }
    }

    /// Does what may need room on the disk; when there is none, once more with the spares of the
    /// journal, but for `kept_count` of them.
    pub(crate) fn with_spared_room<T>(
        &self,
        kept_count: usize,
        attempt: impl Fn() -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        match attempt() {
            Err(StorageError::NoSpace(_)) if self.give_back_spares(kept_count) => attempt(),
            done => done,
        }
    }

    fn give_back_spares(&self, kept_count: usize) -> bool {
        let journalled = self.journalled.as_ref();
        journalled.is_some_and(|journalled| journalled.journal.give_back_spares(kept_count))
    }
}
