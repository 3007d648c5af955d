//! What others know of the tasks that compact.

use std::sync::OnceLock;
use std::time::Duration;

use executor::TaskHandle;
use platform::Seldom;

/// From one line to the next about compactions that find no room on the disk.
const NO_ROOM_INTERVAL: Duration = Duration::from_secs(60);

/// The tasks, for those who have work for them.
pub(crate) struct Compactors {
    pub(super) compactors: OnceLock<Vec<TaskHandle>>,
    pub(super) watcher: OnceLock<TaskHandle>,
    /// Each look at the files may find several for which there is no room.
    pub(super) no_room_lines: Seldom,
}

impl Default for Compactors {
    fn default() -> Self {
        let no_room_lines = Seldom::every(NO_ROOM_INTERVAL);
        Self { compactors: OnceLock::new(), watcher: OnceLock::new(), no_room_lines }
    }
}

impl Compactors {
    /// There is something to compact.
    pub(crate) fn wake(&self) {
        self.compactors.get().into_iter().flatten().for_each(TaskHandle::wake);
    }

    /// What is fragmented may be another file now.
    pub(crate) fn look_again(&self) {
        self.watcher.get().into_iter().for_each(TaskHandle::wake);
    }
}
