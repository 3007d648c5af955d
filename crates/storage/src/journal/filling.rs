//! A spare in the making.

use platform::{AlignedBuffer, File, OpenMode};

use crate::error::StorageError;
use crate::journal::segment::Directory;

/// Bytes that are written and synced at a time. Groups' syncs wait behind those of others, so this
/// is about a millisecond's worth of a disk.
pub(super) const PORTION_BYTES: usize = 512 << 10;

/// A file that is filled with zeros to become a spare: every block is written once, so that no
/// append has anything to allocate.
pub(super) struct Filling {
    number: u64,
    file: Box<dyn File>,
    size: u64,
    /// Bytes that are filled, and durable.
    filled: u64,
}

impl Filling {
    pub(super) fn begin(
        directory: &Directory,
        number: u64,
        size: u64,
    ) -> Result<Self, StorageError> {
        let file =
            directory.files.open_direct(&directory.spare_path(number), OpenMode::CreateNew)?;
        Ok(Self { number, file, size, filled: 0 })
    }

    /// Fills one portion more.
    pub(super) fn fill(&mut self) -> Result<(), StorageError> {
        let left = usize::try_from(self.size - self.filled).unwrap_or(PORTION_BYTES);
        let zeros = AlignedBuffer::zeroed(left.min(PORTION_BYTES));
        self.file.write_at(&zeros, self.filled)?;
        self.file.sync()?;
        self.filled += zeros.len() as u64;
        Ok(())
    }

    pub(super) fn filled_bytes(&self) -> u64 {
        self.filled
    }

    pub(super) fn is_complete(&self) -> bool {
        self.filled == self.size
    }

    /// Gives the number of the spare that it has become.
    pub(super) fn finish(&self, directory: &Directory) -> Result<u64, StorageError> {
        assert!(self.is_complete(), "a spare has all of its blocks");
        directory.sync_names()?;
        Ok(self.number)
    }

    /// What was made of it is not wanted.
    pub(super) fn give_up(self, directory: &Directory) {
        drop(self.file);
        directory.remove_spares(&[self.number]);
    }
}
