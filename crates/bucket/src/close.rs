//! How a bucket ends: everything is flushed, files follow the journal, and a mark says so.

use std::sync::Arc;

use executor::Shutdown;

use crate::core::{Bucket, BucketCore, VbucketSlot};

impl Bucket {
    /// Ends all background tasks after flushing everything. On success the files hold every
    /// document and the next start is a clean one; otherwise this many vBuckets have documents that
    /// are not on disk.
    pub fn shut_down(&self) -> Result<(), usize> {
        // A compaction is not worth waiting for, and what is kept for them is not kept from what is
        // in memory alone.
        self.0.compaction.close();
        self.0.store.reserve_for_compaction(None);
        self.0.background.owner.unregister(Shutdown::Drain);
        let is_unflushed = |slot: &&VbucketSlot| {
            slot.lock()
                .as_ref()
                .is_some_and(|vbucket| !vbucket.is_flushed() && vbucket.has_history())
        };
        let unflushed_count = self.0.vbuckets.slots.iter().filter(is_unflushed).count();
        if unflushed_count > 0 {
            return Err(unflushed_count);
        }
        // Otherwise the journal has it all, and the next start reads it: files leave room again.
        self.0.look_at_files();
        self.0.store.leave_room_for_flushes(0);
        self.0.close_journal();
        Ok(())
    }
}

impl Bucket {
    /// Ends all background tasks and writes nothing more: the bucket is being deleted. What waits
    /// for it waits in vain. Not for its own tasks.
    pub fn discard(&self) {
        self.0.compaction.close();
        self.0.background.owner.unregister(Shutdown::Force);
    }

    /// Whether this is the only handle. Of a bucket that was discarded, whose tasks have none any
    /// more, nobody else can make another.
    pub fn is_last_handle(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl BucketCore {
    /// Brings all files up to date, and if that succeeds marks the stop as a clean one and lets go
    /// of the journal. For a node that stops: nothing is written any more.
    fn close_journal(&self) {
        self.apply_everything_at_once();
        // The journal goes after the mark: one of them tells where the files are.
        if self.store.backlog().vbuckets == 0 && self.leave_clean_mark() {
            self.store.close_journal();
        }
    }

    fn leave_clean_mark(&self) -> bool {
        // The branch that begins after a crash has to be in a file before the crash is forgotten.
        let was_clean = self.background.warmup.progress(self.clock.now()).was_clean;
        let is_loaded =
            |vbid| self.slot(vbid).is_some_and(|slot: &VbucketSlot| slot.lock().is_some());
        let witnesses = self.store.witnesses(|vbid| was_clean || is_loaded(vbid));
        let left = self.directory.leave_clean_mark(&witnesses);
        if let Err(error) = &left {
            tracing::warn!(%error, "the next start will treat this stop as a crash");
        }
        left.is_ok()
    }
}
