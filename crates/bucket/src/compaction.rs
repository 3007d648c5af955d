//! Files are written anew without what nothing needs.

mod compact_file;
pub(crate) mod compactor;
mod compactors;
mod fragmentation;
mod orders;
mod plan;
mod room_pause;
mod settings;
pub(crate) mod watcher;

pub use plan::{CompactionEnd, CompactionOrder, CompactionStatistics, RunningCompaction};

use self::compactors::Compactors;
use self::plan::Compactions;
use self::room_pause::RoomPause;
use crate::config::BucketConfig;

/// What a bucket knows of its compactions. Which of it changes, only the files of this folder say.
pub(crate) struct Compaction {
    /// What is to be compacted, what is being, and what has come of it.
    plan: Compactions,
    /// Who does it.
    tasks: Compactors,
    /// Until when nobody tries, for want of room.
    room_pause: RoomPause,
}

impl Compaction {
    pub(crate) fn new(config: &BucketConfig) -> Self {
        Self {
            plan: Compactions::new(config),
            tasks: Compactors::default(),
            room_pause: RoomPause::default(),
        }
    }

    /// Stops what is under way, and takes no orders any more.
    pub(crate) fn close(&self) {
        self.plan.close();
    }
}
