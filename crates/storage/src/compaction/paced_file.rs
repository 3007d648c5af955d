//! A file that is written with others in mind: synced often and not too fast.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use platform::{Clock, File, FileError};

use super::pace::CompactionPace;
use super::progress::{CompactionPhase, CompactionProgress};
use super::request::CompactionRequest;

/// Shorter pauses are left until they add up.
const PAUSE_MIN: Duration = Duration::from_millis(2);

/// So often a long pause looks whether there is another rate.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A new file that a compaction writes.
pub(super) struct PacedFile {
    file: Box<dyn File>,
    progress: CompactionProgress,
    clock: Clock,
    sync_bytes: u64,
    pace: CompactionPace,
    /// Bytes written since the last sync.
    unsynced: AtomicU64,
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
            pace: request.pace.clone(),
            unsynced: AtomicU64::new(0),
        }
    }

    /// Pauses until `bytes`, which were written, fit into the rate. Catching up with commits knows
    /// no pauses: it ends only when it is faster than they are.
    fn pace(&self, bytes: u64) {
        let turn = self.pace.take(bytes, self.clock.now());
        if self.progress.phase() != CompactionPhase::Copying {
            return;
        }
        let left = || self.pace.left(turn, self.clock.now());
        let mut pause = left();
        while pause >= PAUSE_MIN && !self.progress.is_aborted() {
            self.progress.pause(pause.min(LOOK_INTERVAL));
            // Where it was not long it is over.
            pause = if pause > LOOK_INTERVAL { left() } else { Duration::ZERO };
        }
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
