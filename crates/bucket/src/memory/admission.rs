//! Whether there is memory for more, and whether writes are let in: memory and disk both have a
//! say.

use document::{Key, Vbid, VbucketState};
use vbucket::WriteCondition;

use super::checkpoint_memory::CheckpointState;
use crate::core::{Bucket, BucketCore, Refused, WriteBlock};

/// Durable writes of larger values wait as others do: a few of them would use up the reserve.
const RESERVE_VALUE_BYTES_MAX: usize = 64 << 10;

impl Bucket {
    /// Lets a write in, or says why not. A write that finds memory full first frees what it can of
    /// its own vBucket, so that only what is not on disk yet can keep writes out. A durable write
    /// of a small value finds room in the checkpoints where others do not: a flood of those would
    /// take all of it.
    ///
    /// # Errors
    /// [`Refused::Blocked`], and instead [`Refused::NotMyVbucket`] where the vBucket is not active
    /// here, and [`Refused::UnknownCollection`] where it has no such collection: whoever is told to
    /// come again comes here again.
    pub(crate) fn check_write_gate(
        &self,
        vbid: Vbid,
        key: Key<'_>,
        condition: &WriteCondition,
        value_bytes: usize,
    ) -> Result<(), Refused> {
        self.admit(vbid, condition, value_bytes)
            .map_err(|refused| self.0.without_place(vbid, Some(key), refused))
    }

    fn admit(
        &self,
        vbid: Vbid,
        condition: &WriteCondition,
        value_bytes: usize,
    ) -> Result<(), Refused> {
        let core = &self.0;
        let mut used_bytes = core.page_if_full();
        let used_bytes_max = core.memory.limits.mutation_bytes_max();
        if used_bytes >= used_bytes_max {
            core.page_at_once(vbid);
            used_bytes = core.memory.account.used_bytes();
        }
        let is_damaged = core.file_is_damaged(vbid);
        let log_bytes = core.memory.account.checkpoints_bytes();
        let checkpoints = core.memory.checkpoint_state(log_bytes);
        if checkpoints != CheckpointState::Available {
            core.memory.checkpoint_recovery.wake();
        }
        core.disk.gate().check(used_bytes, used_bytes_max, is_damaged).map_err(|block| {
            // Final only if nothing is on its way to be freed, and nothing makes room for new data
            // later.
            let is_final = block == WriteBlock::Memory
                && !core.log_gives_memory_back()
                && self.fails_new_data();
            Refused::Blocked(if is_final { WriteBlock::NoMemory } else { block })
        })?;
        core.check_room(log_bytes)?;
        let has_reserve = condition.sync_write.is_some()
            && value_bytes <= RESERVE_VALUE_BYTES_MAX
            && core.has_checkpoint_reserve();
        if checkpoints == CheckpointState::Full && !has_reserve {
            return Err(Refused::Blocked(core.disk.gate().refuse_for_checkpoints()));
        }
        Ok(())
    }

    /// Whether there is memory for more of what other nodes send. Sees to it that there will be.
    pub fn has_room_to_receive(&self) -> bool {
        let core = &self.0;
        let checkpoints = core.checkpoint_state();
        if checkpoints != CheckpointState::Available {
            core.memory.checkpoint_recovery.wake();
        }
        core.page_if_full() < core.memory.limits.mutation_bytes_max()
            && checkpoints != CheckpointState::Full
    }

    /// Whether there is memory for a stream that has to read a file, beside `unsent_bytes` that
    /// were read for streams and not sent. Sees to it that there will be.
    ///
    /// Those count here alone: if they kept writes out, two nodes that send to each other could
    /// each wait for the other to take what it has read.
    pub fn has_room_to_backfill(&self, unsent_bytes: u64) -> bool {
        let core = &self.0;
        // What is read of a bucket without files is what its memory holds, and counts there.
        let beside = if core.has_files() { unsent_bytes } else { 0 };
        core.page_if_full() + beside < core.memory.limits.backfill_bytes_max()
    }

    /// Like [`Bucket::check_write_gate`] for writes that make room in memory, of a document or of
    /// the vBucket itself.
    pub(crate) fn check_disk(&self, vbid: Vbid, key: Option<Key<'_>>) -> Result<(), Refused> {
        let core = &self.0;
        let open = core.disk.gate().check(0, u64::MAX, core.file_is_damaged(vbid));
        let checked = open.map_err(Refused::Blocked);
        let checked =
            checked.and_then(|()| core.check_room(core.memory.account.checkpoints_bytes()));
        checked.map_err(|refused| core.without_place(vbid, key, refused))
    }
}

impl BucketCore {
    /// Why a write does not happen that was `refused` before its vBucket was looked at: there is no
    /// place for it whatever else is short.
    fn without_place(&self, vbid: Vbid, key: Option<Key<'_>>, refused: Refused) -> Refused {
        let Some(slot) = self.slot(vbid) else { return Refused::NotMyVbucket };
        let is_active = match slot.figures() {
            Some(vbucket) => vbucket.state() == VbucketState::Active,
            // One that is being loaded may be.
            None => !slot.is_absent(),
        };
        if !is_active {
            return Refused::NotMyVbucket;
        }
        let is_unknown = key.filter(|key| !key.is_in_default_collection()).is_some_and(|key| {
            slot.lock().as_ref().is_some_and(|vbucket| vbucket.check_collection(key).is_err())
        });
        if is_unknown { Refused::UnknownCollection } else { refused }
    }

    /// What is acknowledged and in memory alone must fit on the disk, so that an orderly stop
    /// writes it there. The log has more than that while streams are behind: near the end of the
    /// disk, writers wait for them.
    fn check_room(&self, log_bytes: u64) -> Result<(), Refused> {
        if self.disk.gate().has_room_for(log_bytes) {
            return Ok(());
        }
        // The last look may be old, and room may have come.
        self.look_for_room();
        if self.disk.gate().has_room_for(log_bytes) {
            return Ok(());
        }
        Err(Refused::Blocked(self.disk.gate().refuse_for_room()))
    }
}
