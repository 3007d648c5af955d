//! A file that is written with others in mind: synced often and not too fast.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use platform::{Clock, File, FileError, Instant};

use super::progress::{CompactionPhase, CompactionProgress};
use super::request::CompactionRequest;

/// A new file that a compaction writes.
pub(super) struct PacedFile {
    file: Box<dyn File>,
    progress: CompactionProgress,
    clock: Clock,
    sync_bytes: u64,
    bytes_per_second: u64,
    /// Bytes written since the last sync.
    unsynced: AtomicU64,
    /// The moment up to which the device is taken, on the clock.
    taken_until: AtomicU64,
}

impl PacedFile {
    pub(super) fn new(
        file: Box<dyn File>,
        request: &CompactionRequest,
        progress: &CompactionProgress,
        clock: &Clock,
    ) -> Self {
        Self {
            file,
            progress: progress.clone(),
            clock: clock.clone(),
            sync_bytes: request.sync_bytes.max(1),
            bytes_per_second: request.bytes_per_second,
            unsynced: AtomicU64::new(0),
            taken_until: AtomicU64::new(clock.now().0),
        }
    }

    /// Pauses until `bytes` fit into the rate. Catching up with commits knows no pauses: it ends
    /// only when it is faster than they are.
    fn pace(&self, bytes: u64) {
        if self.bytes_per_second == 0 || self.progress.phase() != CompactionPhase::Copying {
            return;
        }
        let cost = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second as f64);
        let now = self.clock.now();
        let taken_until = Instant(self.taken_until.load(Ordering::Relaxed)).max(now).after(cost);
        self.taken_until.store(taken_until.0, Ordering::Relaxed);
        self.progress.pause(taken_until.since(now));
    }
}

impl File for PacedFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> Result<usize, FileError> {
        self.file.read_at(buffer, position)
    }

    fn write_at(&self, bytes: &[u8], position: u64) -> Result<(), FileError> {
        self.file.write_at(bytes, position)?;
        let count = bytes.len() as u64;
        self.progress.note_written(count);
        let unsynced = self.unsynced.fetch_add(count, Ordering::Relaxed).saturating_add(count);
        if unsynced >= self.sync_bytes {
            self.sync()?;
        }
        self.pace(count);
        Ok(())
    }

    fn sync(&self) -> Result<(), FileError> {
        self.unsynced.store(0, Ordering::Relaxed);
        self.file.sync()
    }

    fn size(&self) -> Result<u64, FileError> {
        self.file.size()
    }

    fn set_size(&self, size: u64) -> Result<(), FileError> {
        self.file.set_size(size)
    }
}
