//! What operators ask of compaction, and what they change about it.

use std::sync::atomic::Ordering;

use document::Vbid;

use super::plan::{CompactionEnd, CompactionOrder, CompactionStatistics};
use crate::core::{Bucket, BucketCore, Refused};

impl BucketCore {
    /// Has a file compacted that knows of a dropped collection.
    pub(crate) fn compact_behind_drop(&self, vbid: Vbid) {
        if self.has_files() {
            self.compaction.plan.order(vbid, CompactionOrder::default(), None);
            self.compaction.tasks.wake();
        }
    }
}

impl Bucket {
    /// Has a vBucket's file compacted, after those that were asked for before. `on_end` hears how
    /// it went, on another thread.
    pub fn compact(
        &self,
        vbid: Vbid,
        order: CompactionOrder,
        on_end: impl FnOnce(CompactionEnd) + Send + 'static,
    ) -> Result<(), Refused> {
        self.check_has_disk()?;
        if self.0.slot(vbid).is_none() {
            return Err(Refused::NotMyVbucket);
        }
        self.0.compaction.plan.order(vbid, order, Some(Box::new(on_end)));
        self.0.compaction.tasks.wake();
        Ok(())
    }

    /// Has the files of all vBuckets compacted, behind everything that was asked for before.
    pub fn compact_all(&self) -> Result<(), Refused> {
        self.check_has_disk()?;
        for (vbid, _) in self.0.slots() {
            self.0.compaction.plan.order(vbid, CompactionOrder::default(), None);
        }
        self.0.compaction.tasks.wake();
        Ok(())
    }

    /// Stops compactions that are under way and forgets those that wait.
    pub fn cancel_compactions(&self) {
        self.0.compaction.plan.cancel();
    }

    /// What compaction has done and is doing.
    pub fn compaction_statistics(&self) -> CompactionStatistics {
        self.0.compaction.plan.statistics(self.0.clock.now())
    }
}

impl Bucket {
    /// The part of a file, in percent, from which on it is compacted if nothing needs it; 0 for
    /// never.
    pub fn compaction_fragmentation_percent(&self) -> u8 {
        self.0.compaction.plan.settings.fragmentation_percent()
    }

    /// Changes from which fragmentation on files are compacted.
    pub fn set_compaction_fragmentation_percent(&self, percent: u8) {
        self.0.compaction.plan.settings.fragmentation_percent.store(percent, Ordering::Relaxed);
        self.0.compaction.tasks.look_again();
    }

    /// Bytes below which files are not compacted on their own.
    pub fn compaction_file_bytes_min(&self) -> u64 {
        self.0.compaction.plan.settings.file_bytes_min()
    }

    /// Changes how large a file has to be to be compacted on its own.
    pub fn set_compaction_file_bytes_min(&self, bytes: u64) {
        self.0.compaction.plan.settings.file_bytes_min.store(bytes, Ordering::Relaxed);
        self.0.compaction.tasks.look_again();
    }

    /// Bytes a second that compactions write together, at most; 0 for no limit.
    pub fn compaction_bytes_per_second(&self) -> u64 {
        self.0.compaction.plan.settings.pace.bytes_per_second()
    }

    /// Changes how fast compactions write from now on.
    pub fn set_compaction_bytes_per_second(&self, bytes: u64) {
        self.0.compaction.plan.settings.pace.set_bytes_per_second(bytes);
    }

    /// Seconds for which files keep tombstones.
    pub fn persistent_purge_age_seconds(&self) -> u64 {
        self.0.compaction.plan.settings.purge_age_seconds()
    }

    /// Changes for how many seconds files keep tombstones.
    pub fn set_persistent_purge_age_seconds(&self, seconds: u64) {
        self.0.compaction.plan.settings.purge_age_seconds.store(seconds, Ordering::Relaxed);
    }
}
