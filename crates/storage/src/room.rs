//! Room on the disk: some is kept for compactions; without any, the journal gives its spares.
//!
//! Files only grow until they are compacted, and to compact one takes room for its copy. Were the
//! last of the disk taken by what files append, nothing could ever be freed again.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use platform::{DiskSpace, FileError};

use crate::StorageError;
use crate::store::Store;

/// At most this part of a disk is kept: a file that takes more than that cannot be compacted for
/// want of room, but its disk can be filled.
const RESERVE_PART_MAX: u64 = 10;

/// What files leave of the disk for compactions.
#[derive(Debug, Default)]
pub(crate) struct CompactionReserve(AtomicU64);

impl CompactionReserve {
    fn bytes(&self, space: DiskSpace) -> u64 {
        self.0.load(Ordering::Relaxed).min(space.total_bytes / RESERVE_PART_MAX)
    }
}

impl Store {
    /// From now on files leave so many bytes of the disk for compactions, or a tenth of the disk if
    /// that is less.
    pub fn reserve_for_compaction(&self, bytes: u64) {
        self.compaction_reserve.0.store(bytes, Ordering::Relaxed);
    }

    /// Room on the disk that the files are on.
    pub fn disk_space(&self) -> Result<DiskSpace, StorageError> {
        Ok(self.files.disk_space(&self.directory)?)
    }

    /// Whether a file may grow: it may not when that takes what compaction needs.
    pub(crate) fn check_room(&self) -> Result<(), StorageError> {
        // A disk that does not tell says so when it is full.
        let Ok(space) = self.files.disk_space(&self.directory) else { return Ok(()) };
        if space.free_bytes >= self.compaction_reserve.bytes(space) {
            return Ok(());
        }
        let cause = io::Error::new(
            io::ErrorKind::StorageFull,
            format!("the last {} bytes of the disk are for compactions", space.free_bytes),
        );
        Err(FileError::new("write", &self.directory, cause).into())
    }

    /// Does what may need room on the disk; once more with what the journal keeps for later, when
    /// there is none.
    pub(crate) fn with_spared_room<T>(
        &self,
        attempt: impl Fn() -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        match attempt() {
            Err(StorageError::NoSpace(_)) if self.give_back_spares() => attempt(),
            done => done,
        }
    }

    fn give_back_spares(&self) -> bool {
        self.journalled.as_ref().is_some_and(|journalled| journalled.journal.give_back_spares())
    }
}
