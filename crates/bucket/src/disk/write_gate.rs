//! The gate that failing disks close, and how often writes were turned away.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use document::Vbid;

use crate::core::WriteBlock;

const OPEN: u8 = 0;
const DISK_FULL: u8 = 1;
const DISK_FAILED: u8 = 2;

/// What writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WritePath {
    /// The flusher, to the journal or to files.
    Flush,
    /// The applier, from the journal to files.
    Apply,
}

/// The gate. Flushers close and open it; writers look.
#[derive(Debug)]
pub(crate) struct WriteGate {
    disk: AtomicU8,
    /// Bytes that the disk could take when somebody looked last.
    room_bytes: AtomicU64,
    /// vBuckets whose last flush failed, or whose file could not follow the journal. While there is
    /// any the gate stays closed.
    failing: Mutex<BTreeSet<(Vbid, WritePath)>>,
    memory_refusals: AtomicU64,
    checkpoint_refusals: AtomicU64,
    disk_refusals: AtomicU64,
}

/// Writes that were refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RefusalCounts {
    /// Because of the memory of documents.
    pub(crate) memory: u64,
    /// Because of the checkpoints' memory.
    pub(crate) checkpoints: u64,
    /// Because of the disk.
    pub(crate) disk: u64,
}

impl Default for WriteGate {
    fn default() -> Self {
        Self {
            disk: AtomicU8::new(OPEN),
            room_bytes: AtomicU64::new(u64::MAX),
            failing: Mutex::default(),
            memory_refusals: AtomicU64::new(0),
            checkpoint_refusals: AtomicU64::new(0),
            disk_refusals: AtomicU64::new(0),
        }
    }
}

impl WriteGate {
    /// Why a write is refused now, if it is. The memory in use and the state of the vBucket's file
    /// are the caller's to know.
    pub(crate) fn check(
        &self,
        used_bytes: u64,
        used_bytes_max: u64,
        file_is_damaged: bool,
    ) -> Result<(), WriteBlock> {
        if file_is_damaged {
            self.disk_refusals.fetch_add(1, Ordering::Relaxed);
            return Err(WriteBlock::VbucketFileDamaged);
        }
        if let Some(block) = self.disk_block() {
            self.disk_refusals.fetch_add(1, Ordering::Relaxed);
            return Err(block);
        }
        if used_bytes >= used_bytes_max {
            self.memory_refusals.fetch_add(1, Ordering::Relaxed);
            return Err(WriteBlock::Memory);
        }
        Ok(())
    }

    /// Whether the disk had room, when somebody looked last, for what is in memory alone, which is
    /// at most `log_bytes`.
    pub(crate) fn has_room_for(&self, log_bytes: u64) -> bool {
        log_bytes < self.room_bytes.load(Ordering::Relaxed)
    }

    /// The disk can take so many bytes.
    pub(super) fn note_room(&self, bytes: u64) {
        self.room_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Counts a write that is refused because what is in memory alone fills the disk.
    pub(crate) fn refuse_for_room(&self) -> WriteBlock {
        self.disk_refusals.fetch_add(1, Ordering::Relaxed);
        WriteBlock::DiskFull
    }

    /// Counts a write that is refused because checkpoints have used up their memory.
    pub(crate) fn refuse_for_checkpoints(&self) -> WriteBlock {
        self.checkpoint_refusals.fetch_add(1, Ordering::Relaxed);
        WriteBlock::Checkpoints
    }

    /// How many writes were refused, and why.
    pub(crate) fn refusal_counts(&self) -> RefusalCounts {
        RefusalCounts {
            memory: self.memory_refusals.load(Ordering::Relaxed),
            checkpoints: self.checkpoint_refusals.load(Ordering::Relaxed),
            disk: self.disk_refusals.load(Ordering::Relaxed),
        }
    }

    /// What is wrong with the disk, if anything is.
    pub(crate) fn disk_block(&self) -> Option<WriteBlock> {
        match self.disk.load(Ordering::Relaxed) {
            DISK_FULL => Some(WriteBlock::DiskFull),
            DISK_FAILED => Some(WriteBlock::DiskFailed),
            _ => None,
        }
    }

    /// Notes how writing a vBucket went. Returns whether the gate has closed or opened by it.
    pub(super) fn note_write(
        &self,
        vbid: Vbid,
        path: WritePath,
        block: Option<WriteBlock>,
    ) -> bool {
        // While the gate is open nothing is noted as failing, so that the usual case takes no lock.
        if block.is_none() && self.disk_block().is_none() {
            return false;
        }
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if block.is_some() {
            failing.insert((vbid, path));
        } else {
            failing.remove(&(vbid, path));
            if !failing.is_empty() {
                return false;
            }
        }
        let state = match block {
            None => OPEN,
            Some(WriteBlock::DiskFull) => DISK_FULL,
            Some(WriteBlock::DiskFailed) => DISK_FAILED,
            Some(
                WriteBlock::Memory
                | WriteBlock::Checkpoints
                | WriteBlock::NoMemory
                | WriteBlock::Takeover
                | WriteBlock::VbucketFileDamaged,
            ) => OPEN,
        };
        self.disk.swap(state, Ordering::Relaxed) != state
    }
}
