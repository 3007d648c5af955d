//! What is done about a full journal: files follow it.

use std::sync::{Mutex, PoisonError};
use std::{thread, vec};

use document::Vbid;
use platform::threads;

use crate::core::BucketCore;

/// Threads that bring files up to date at a stop, at most. They wait for the disk.
const STOP_THREADS_MAX: usize = 8;
/// Files for which another of them is begun.
const FILES_A_THREAD_MIN: usize = 8;

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
        self.apply_each_of(&Mutex::new(self.files_behind().into_iter()))
    }

    /// The same for a stop, whose time is that of one sync after the other: several threads have
    /// the disk carry out those that come together at once. Fewer files than make that worth while
    /// are brought up to date by the calling thread, in their order.
    pub(crate) fn apply_everything_at_once(&self) {
        let behind = self.files_behind();
        let thread_count = (behind.len() / FILES_A_THREAD_MIN).min(STOP_THREADS_MAX);
        let files = Mutex::new(behind.into_iter());
        thread::scope(|scope| {
            for _ in 1..thread_count {
                // Where there is no thread to be had there is one more for the others.
                drop(threads::spawn_scoped(scope, "stop-apply", || self.apply_each_of(&files)));
            }
            self.apply_each_of(&files);
        });
    }

    fn files_behind(&self) -> Vec<Vbid> {
        let is_ours = |vbid: &Vbid| self.slot(*vbid).is_some() && !self.file_is_damaged(*vbid);
        self.store.unapplied_vbuckets().into_iter().filter(is_ours).collect()
    }

    /// Takes files from `files` until there are none, or the disk fails: then nobody takes more.
    fn apply_each_of(&self, files: &Mutex<vec::IntoIter<Vbid>>) -> CaughtUp {
        let files = || files.lock().unwrap_or_else(PoisonError::into_inner);
        let next = || files().next();
        let mut caught_up = CaughtUp::default();
        while let Some(vbid) = next() {
            self.log_progress();
            match self.apply(vbid) {
                Ok(()) => caught_up.file_count += 1,
                Err(_) if self.file_is_damaged(vbid) => {}
                Err(_) => {
                    caught_up.has_failed = true;
                    files().by_ref().for_each(drop);
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
