//! Whether writes are let in: memory and disk both have a say.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// Why writes are refused for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBlock {
    /// Documents take nearly all the memory that the bucket may use.
    Memory,
    /// The device is full: what is in memory cannot be flushed.
    DiskFull,
    /// Writing or syncing a file fails.
    DiskFailed,
}

impl WriteBlock {
    /// What the client reads.
    pub fn context(self) -> &'static str {
        match self {
            Self::Memory => "the bucket's memory quota is used up; delete documents or raise it",
            Self::DiskFull => "the data directory's device is full; writes resume when it has room",
            Self::DiskFailed => "writing to the data directory fails; see the node's log",
        }
    }
}

const OPEN: u8 = 0;
const DISK_FULL: u8 = 1;
const DISK_FAILED: u8 = 2;

/// The gate. Flushers close and open it; writers look.
#[derive(Debug, Default)]
pub(crate) struct WriteGate {
    disk: AtomicU8,
    /// Writes refused because of memory.
    pub(crate) memory_refusals: AtomicU64,
    /// Writes refused because of the disk.
    pub(crate) disk_refusals: AtomicU64,
}

impl WriteGate {
    /// Why a write is refused now, if it is. The memory in use is the caller's to know.
    pub(crate) fn check(&self, used_bytes: u64, used_bytes_max: u64) -> Result<(), WriteBlock> {
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

    /// What is wrong with the disk, if anything is.
    pub(crate) fn disk_block(&self) -> Option<WriteBlock> {
        match self.disk.load(Ordering::Relaxed) {
            DISK_FULL => Some(WriteBlock::DiskFull),
            DISK_FAILED => Some(WriteBlock::DiskFailed),
            _ => None,
        }
    }

    /// Notes how a flush went. Returns whether that is news.
    pub(crate) fn set_disk_block(&self, block: Option<WriteBlock>) -> bool {
        let state = match block {
            None | Some(WriteBlock::Memory) => OPEN,
            Some(WriteBlock::DiskFull) => DISK_FULL,
            Some(WriteBlock::DiskFailed) => DISK_FAILED,
        };
        self.disk.swap(state, Ordering::Relaxed) != state
    }
}
