//! What a failing disk means for writers.

use document::Vbid;
use storage::StorageError;

use super::write_gate::WritePath;
use crate::core::{BucketCore, WriteBlock};

impl BucketCore {
    /// Looks how much the disk can take.
    pub(crate) fn look_for_room(&self) {
        self.disk.gate.note_room(self.store.room_bytes());
    }

    /// Notes what the disk said to the flush of a vBucket; logs when that is news.
    pub(crate) fn note_disk(&self, vbid: Vbid, path: WritePath, error: Option<&StorageError>) {
        let block = error.map(|error| match error {
            StorageError::NoSpace { .. } => WriteBlock::DiskFull,
            _ => WriteBlock::DiskFailed,
        });
        if block == Some(WriteBlock::DiskFull) {
            self.note_growth();
        }
        if !self.disk.gate.note_write(vbid, path, block) {
            return;
        }
        match error {
            Some(error) => {
                tracing::error!(%error, "flushing fails; writes are refused until it succeeds");
            }
            None => tracing::info!("flushing succeeds again; writes are let in"),
        }
    }

    /// What could not be written of a vBucket is not wanted any more: it keeps nobody out.
    pub(crate) fn forget_failed_writes(&self, vbid: Vbid) {
        self.note_disk(vbid, WritePath::Flush, None);
        self.note_disk(vbid, WritePath::Apply, None);
    }
}
