//! What is done about a full journal: files follow it.

use document::Vbid;

use crate::core::BucketCore;

/// What came of bringing all files up to date.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CaughtUp {
    /// Files that have everything now which the journal had for them.
    pub(crate) file_count: usize,
    /// The disk failed.
    pub(crate) has_failed: bool,
}

impl BucketCore {
    /// Whether the journal was full and nothing of it has been let go since: gathering batches
    /// again would take the CPU, and the locks, of those who make room. Where no file is behind,
    /// nobody is about to make any.
    pub(super) fn waits_for_journal(&self) -> bool {
        let used_bytes = match self.store.backlog().vbuckets {
            0 => 0,
            _ => self.store.journal_usage().map_or(0, |journal| journal.used_bytes),
        };
        self.disk.flush_queues.wake_if_journal_has_room(used_bytes);
        self.disk.flush_queues.is_journal_full()
    }

    /// Makes what room there can be in the journal; says whether there is more than before.
    pub(super) fn make_room(&self) -> bool {
        let caught_up = self.apply_everything();
        self.carry_forward(true, self.clock.now());
        caught_up.file_count > 0 && !caught_up.has_failed
    }

    /// Brings all files up to date with what the journal has now, as far as the disk allows. What
    /// others are writing is waited for.
    pub(crate) fn apply_everything(&self) -> CaughtUp {
        let mut caught_up = CaughtUp::default();
        let is_ours = |vbid: &Vbid| self.slot(*vbid).is_some() && !self.file_is_damaged(*vbid);
        for vbid in self.store.unapplied_vbuckets().into_iter().filter(is_ours) {
            self.log_progress();
            match self.apply(vbid) {
                Ok(()) => caught_up.file_count += 1,
                Err(_) if self.file_is_damaged(vbid) => {}
                Err(_) => {
                    caught_up.has_failed = true;
                    break;
                }
            }
        }
        caught_up
    }

    fn log_progress(&self) {
        if self.disk.appliers.progress_lines.passes(self.clock.now()).is_none() {
            return;
        }
        let backlog = self.store.backlog();
        tracing::info!(
            vbuckets = backlog.vbuckets,
            items = backlog.items,
            vbuckets_to_flush = self.disk.flush_queues.waiting_count(),
            "bringing files up to date with the journal"
        );
    }
}
