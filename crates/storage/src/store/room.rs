//! Room on the disk: some is kept for compactions; without any, the journal gives its spares.
//!
//! Files only grow until they are compacted, and to compact one takes room for its copy. Were the
//! last of the disk taken by what files append, nothing could ever be freed again. What is in
//! memory alone comes before what the journal has already: files that follow it leave room for
//! that.

use std::io;

use platform::{DiskSpace, FileError};

use crate::behind::backlog::bytes_of;
use crate::behind::journalled::Journalled;
use crate::error::StorageError;
use crate::store::Store;
use crate::store::compaction_reserve::Room;
use crate::store::flush_batch::FlushBatch;

impl Store {
    /// From now on files leave room on the disk for the copy of the largest of them, of which so
    /// many bytes are to be copied, or a tenth of the disk if that is less; `None`: for nothing. A
    /// file that becomes larger is taken note of.
    pub fn reserve_for_compaction(&self, live_bytes_max: Option<u64>) {
        self.compaction_reserve.keep(live_bytes_max);
    }

    /// Room on the disk that the files are on.
    pub fn disk_space(&self) -> Result<DiskSpace, StorageError> {
        Ok(self.files.disk_space(&self.directory)?)
    }

    /// Bytes that flushes may take of the disk now; all there are on one that does not tell.
    pub fn room_bytes(&self) -> u64 {
        let Ok(space) = self.disk_space() else { return u64::MAX };
        let reserve = &self.compaction_reserve;
        space
            .free_bytes
            .saturating_sub(reserve.claimed_bytes())
            .saturating_sub(reserve.bytes(space))
    }

    /// From now on what follows the journal leaves room for so many bytes, which are in memory
    /// alone.
    pub fn leave_room_for_flushes(&self, bytes: u64) {
        self.compaction_reserve.note_unflushed(bytes);
    }

    /// Leave to write so many bytes that are in memory alone. There is none when that, with what
    /// others are about to write, takes what compaction needs.
    pub(crate) fn room_for_flush(&self, bytes: u64) -> Result<Room<'_>, StorageError> {
        self.room_for(bytes, 0)
    }

    /// Leave to write so many bytes that are durable elsewhere: what compaction needs stays, and
    /// what is in memory alone.
    pub(crate) fn room_to_follow(&self, bytes: u64) -> Result<Room<'_>, StorageError> {
        self.room_for(bytes, self.compaction_reserve.unflushed_bytes())
    }

    fn room_for(&self, bytes: u64, flush_bytes: u64) -> Result<Room<'_>, StorageError> {
        let reserve = &self.compaction_reserve;
        let space = self.files.disk_space(&self.directory);
        let reserve_bytes = space.as_ref().map_or(0, |space| reserve.bytes(*space));
        let kept_bytes = reserve_bytes.saturating_add(flush_bytes);
        let (free_bytes, claimed_bytes_max) = match space {
            Ok(space) if kept_bytes > 0 => {
                (space.free_bytes, space.free_bytes.saturating_sub(kept_bytes))
            }
            // Nothing is kept, or the disk does not tell: it says so when it is full.
            _ => (u64::MAX, u64::MAX),
        };
        let claimed_bytes = match reserve.claim(bytes, claimed_bytes_max) {
            Ok(room) => return Ok(room),
            Err(claimed_bytes) => claimed_bytes,
        };
        let cause = io::Error::new(
            io::ErrorKind::StorageFull,
            format!(
                "{bytes} bytes do not fit into {free_bytes}, of which {reserve_bytes} are for \
                 compactions and {} for what is being written",
                claimed_bytes.saturating_add(flush_bytes)
            ),
        );
        Err(FileError::new("write", &self.directory, cause).into())
    }

    /// Leave for the journal to take these batches. Its segments are as much in the way of
    /// compaction as files are; roles alone take next to nothing.
    fn room_for_batches(&self, batches: &[FlushBatch]) -> Result<Option<Room<'_>>, StorageError> {
        let bytes: u64 = batches.iter().map(|batch| bytes_of(&batch.items)).sum();
        if bytes == 0 { Ok(None) } else { self.room_for_flush(bytes).map(Some) }
    }

    /// The same; when there is none, once more with the spares of the journal, and then without
    /// what it has kept until it could tell that files have it, too.
    pub(crate) fn room_to_commit(
        &self,
        journalled: &Journalled,
        batches: &[FlushBatch],
    ) -> Result<Option<Room<'_>>, StorageError> {
        let attempt = || self.with_spared_room(1, || self.room_for_batches(batches));
        match attempt() {
            Err(StorageError::NoSpace(_)) => {
                journalled.make_room();
                attempt()
            }
            done => done,
        }
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
