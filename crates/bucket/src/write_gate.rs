//! Whether writes are let in: memory and disk both have a say.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use document::Vbid;

use crate::bucket::Bucket;
use crate::checkpoint_memory::CheckpointState;
use crate::refused::Refused;

/// Why writes are refused for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteBlock {
    /// Documents take nearly all the memory that the bucket may use, and none of it can be freed at
    /// once.
    Memory,
    /// Checkpoints take all the memory that they may: the disk, or a replica, is slower than the
    /// writers.
    Checkpoints,
    /// The same as memory in a bucket that makes no room by itself, once its log has given back
    /// what it can.
    NoMemory,
    /// The device is full: what is in memory cannot be flushed.
    DiskFull,
    /// Writing or syncing a file fails.
    DiskFailed,
    /// Another node takes the document's vBucket over and does not catch up with its writers. Said
    /// by the vBucket, never by the gate.
    Takeover,
    /// The file of the document's vBucket is damaged. Other vBuckets take writes.
    VbucketFileDamaged,
}

impl WriteBlock {
    /// What the client reads.
    pub fn context(self) -> &'static str {
        match self {
            Self::Memory => {
                "the bucket's memory is used up until more of it is on disk; try again, or raise \
                 the quota"
            }
            Self::Checkpoints => {
                "checkpoints have used up their part of the memory quota; the disk or a replica \
                 is slower than the writers: write again a little later"
            }
            Self::NoMemory => {
                "the bucket's memory quota is used up, and it deletes nothing by itself"
            }
            Self::DiskFull => "the data directory's device is full; writes resume when it has room",
            Self::DiskFailed => "writing to the data directory fails; see the node's log",
            Self::Takeover => {
                "the vBucket moves to another node, which does not catch up with its writers; try \
                 again a little later, there"
            }
            Self::VbucketFileDamaged => "the vBucket's file is damaged; see the node's log",
        }
    }
}

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
#[derive(Debug, Default)]
pub(crate) struct WriteGate {
    disk: AtomicU8,
    /// vBuckets whose last flush failed, or whose file could not follow the journal. While there is
    /// any the gate stays closed.
    failing: Mutex<BTreeSet<(Vbid, WritePath)>>,
    /// Writes refused because of memory.
    pub(crate) memory_refusals: AtomicU64,
    /// Writes refused because of the checkpoints' memory.
    pub(crate) checkpoint_refusals: AtomicU64,
    /// Writes refused because of the disk.
    pub(crate) disk_refusals: AtomicU64,
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

    /// Counts a write that is refused because checkpoints have used up their memory.
    pub(crate) fn refuse_for_checkpoints(&self) -> WriteBlock {
        self.checkpoint_refusals.fetch_add(1, Ordering::Relaxed);
        WriteBlock::Checkpoints
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
    pub(crate) fn note_write(
        &self,
        vbid: Vbid,
        path: WritePath,
        block: Option<WriteBlock>,
    ) -> bool {
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

impl Bucket {
    /// Lets a write in, or says why not. A write that finds memory full first frees what it can of
    /// its own vBucket, so that only what is not on disk yet can keep writes out.
    pub(crate) fn check_write_gate(&self, vbid: Vbid) -> Result<(), Refused> {
        let core = &self.0;
        let mut used_bytes = core.page_if_full();
        let used_bytes_max = core.limits.mutation_bytes_max();
        if used_bytes >= used_bytes_max {
            core.page_at_once(vbid);
            used_bytes = core.account.used_bytes();
        }
        let is_damaged = core.file_is_damaged(vbid);
        let checkpoints = core.checkpoint_state();
        if checkpoints != CheckpointState::Available {
            core.checkpoint_recovery.wake();
        }
        core.gate.check(used_bytes, used_bytes_max, is_damaged).map_err(|block| {
            let is_final = block == WriteBlock::Memory
                && !core.log_gives_memory_back()
                && self.fails_new_data();
            Refused::Blocked(if is_final { WriteBlock::NoMemory } else { block })
        })?;
        if checkpoints == CheckpointState::Full {
            return Err(Refused::Blocked(core.gate.refuse_for_checkpoints()));
        }
        Ok(())
    }

    /// Whether there is memory for more of what other nodes send. Sees to it that there will be.
    pub fn has_room_to_receive(&self) -> bool {
        let core = &self.0;
        let checkpoints = core.checkpoint_state();
        if checkpoints != CheckpointState::Available {
            core.checkpoint_recovery.wake();
        }
        core.page_if_full() < core.limits.mutation_bytes_max()
            && checkpoints != CheckpointState::Full
    }

    /// Whether there is memory for a stream that has to read a file. Sees to it that there will be.
    pub fn has_room_to_backfill(&self) -> bool {
        let core = &self.0;
        core.page_if_full() < core.limits.backfill_bytes_max()
    }

    /// Like [`Bucket::check_write_gate`] for writes that make room in memory.
    pub(crate) fn check_disk(&self, vbid: Vbid) -> Result<(), Refused> {
        self.0.gate.check(0, u64::MAX, self.0.file_is_damaged(vbid)).map_err(Refused::Blocked)
    }
}
