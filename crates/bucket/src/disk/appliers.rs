//! What others know of the tasks that bring files up to date with the journal.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use executor::TaskHandle;
use platform::Seldom;

use super::backing_store::BackingStore;

/// From one line in the log to the next while files are brought up to date for those who wait.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// From one line to the next about what fails in each turn of each applier.
const TROUBLE_INTERVAL: Duration = Duration::from_secs(60);

/// The tasks, for who has something for them.
pub(crate) struct Appliers {
    pub(super) handles: OnceLock<Vec<TaskHandle>>,
    pub(super) hurried: OnceLock<TaskHandle>,
    /// They have found nothing to do and sleep. Set before the last look at the backlog.
    pub(super) are_asleep: AtomicBool,
    /// For lines that say how far files have followed the journal.
    pub(super) progress_lines: Seldom,
    /// For those that say that no room is made ready for the journal.
    pub(super) no_room_lines: Seldom,
    /// For those that say that the journal cannot go on in spite of damaged files.
    pub(super) damage_lines: Seldom,
}

impl Default for Appliers {
    fn default() -> Self {
        Self {
            handles: OnceLock::new(),
            hurried: OnceLock::new(),
            are_asleep: AtomicBool::default(),
            progress_lines: Seldom::every(PROGRESS_INTERVAL),
            no_room_lines: Seldom::every(TROUBLE_INTERVAL),
            damage_lines: Seldom::every(TROUBLE_INTERVAL),
        }
    }
}

impl Appliers {
    /// Wakes the appliers if files have fallen behind since they slept.
    pub(super) fn wake_if_needed(&self, store: &BackingStore) {
        if self.are_asleep.load(Ordering::Relaxed) && store.backlog().vbuckets > 0 {
            self.are_asleep.store(false, Ordering::Relaxed);
            self.handles.get().into_iter().flatten().for_each(TaskHandle::wake);
        }
    }
}
