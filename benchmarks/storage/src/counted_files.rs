//! The machine's files, and how many blocks of them a device has to write.
//!
//! Of what is written between two syncs of a file each block counts once, whole, however little of
//! it was written: that is what a sync makes a device write. A byte that is written and synced on
//! its own counts as a block.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use platform::files::RealFiles;
use platform::{File, FileError, Files, OpenMode};

/// Bytes of a block of the file system.
const BLOCK_SIZE: u64 = 4096;

/// The machine's files. Clones count together.
#[derive(Clone, Default)]
pub struct CountedFiles(Arc<Counts>);

#[derive(Default)]
struct Counts {
    block_bytes: AtomicU64,
    syncs: AtomicU64,
}

struct CountedFile {
    file: Box<dyn File>,
    counts: Arc<Counts>,
    /// What was written since the last sync, as blocks from and to.
    dirty: Mutex<Vec<(u64, u64)>>,
}

impl CountedFiles {
    /// Bytes of all blocks that were synced.
    pub fn block_bytes(&self) -> u64 {
        self.0.block_bytes.load(Ordering::Relaxed)
    }

    /// How often files were synced.
    pub fn syncs(&self) -> u64 {
        self.0.syncs.load(Ordering::Relaxed)
    }

    fn counted(&self, file: Box<dyn File>) -> Box<dyn File> {
        Box::new(CountedFile { file, counts: Arc::clone(&self.0), dirty: Mutex::default() })
    }
}

impl Files for CountedFiles {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError> {
        Ok(self.counted(RealFiles.open(path, mode)?))
    }

    fn open_direct(&self, path: &Path, mode: OpenMode) -> Result<Box<dyn File>, FileError> {
        Ok(self.counted(RealFiles.open_direct(path, mode)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<(), FileError> {
        RealFiles.rename(from, to)
    }

    fn remove(&self, path: &Path) -> Result<(), FileError> {
        RealFiles.remove(path)
    }

    fn remove_directory(&self, directory: &Path) -> Result<(), FileError> {
        RealFiles.remove_directory(directory)
    }

    fn sync_directory(&self, directory: &Path) -> Result<(), FileError> {
        RealFiles.sync_directory(directory)
    }

    fn create_directory(&self, directory: &Path) -> Result<(), FileError> {
        RealFiles.create_directory(directory)
    }

    fn list(&self, directory: &Path) -> Result<Vec<String>, FileError> {
        RealFiles.list(directory)
    }

    fn exists(&self, path: &Path) -> Result<bool, FileError> {
        RealFiles.exists(path)
    }
}

impl CountedFile {
    fn dirty(&self) -> MutexGuard<'_, Vec<(u64, u64)>> {
        self.dirty.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl File for CountedFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, FileError> {
        self.file.read_at(buffer, position)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<(), FileError> {
        if !bytes.is_empty() {
            let end = (position + bytes.len() as u64).div_ceil(BLOCK_SIZE);
            let mut dirty = self.dirty();
            match dirty.last_mut() {
                // What goes on where the last write has ended.
                Some(last) if (last.0..=last.1).contains(&(position / BLOCK_SIZE)) => {
                    last.1 = last.1.max(end);
                }
                _ => dirty.push((position / BLOCK_SIZE, end)),
            }
        }
        self.file.write_at(bytes, position)
    }

    fn sync(&self) -> Result<(), FileError> {
        let dirty = std::mem::take(&mut *self.dirty());
        let blocks = distinct_blocks(dirty);
        self.counts.block_bytes.fetch_add(blocks * BLOCK_SIZE, Ordering::Relaxed);
        self.counts.syncs.fetch_add(1, Ordering::Relaxed);
        self.file.sync()
    }

    fn size(&self) -> Result<u64, FileError> {
        self.file.size()
    }

    fn set_size(&self, size: u64) -> Result<(), FileError> {
        self.file.set_size(size)
    }
}

fn distinct_blocks(mut ranges: Vec<(u64, u64)>) -> u64 {
    ranges.sort_unstable();
    let (mut blocks, mut counted_to) = (0, 0);
    for (from, to) in ranges {
        let from = from.max(counted_to);
        blocks += to.saturating_sub(from);
        counted_to = counted_to.max(to);
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_counts_once_for_each_sync_that_finds_it_written() {
        let directory = tempfile::tempdir().expect("a directory");
        let files = CountedFiles::default();
        let file = files.open(&directory.path().join("file"), OpenMode::CreateNew);
        let file = file.expect("a new file");
        let mut expected = 0;
        let rounds: [(&[(u64, usize)], u64); 5] = [
            (&[], 0),
            (&[(0, 1)], 1),
            (&[(0, 1), (1, 1), (4095, 1)], 1),
            (&[(4095, 2), (20_000, 1), (4_000, 1)], 3),
            (&[(0, 3 * 4096), (3 * 4096, 4096), (100, 100)], 4),
        ];
        for (writes, blocks) in rounds {
            for &(position, size) in writes {
                file.write_at(&vec![1; size], position).expect("room for it");
            }
            file.sync().expect("the disk works");
            expected += blocks * BLOCK_SIZE;
            assert_eq!(files.block_bytes(), expected, "{writes:?}");
        }
        assert_eq!(files.syncs(), 5);
    }
}
