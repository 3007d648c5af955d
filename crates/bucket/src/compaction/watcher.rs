//! Looks for files of which too much is of no use, and for room while the disk is short of it.

use std::time::Duration;

use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext};
use executor::{TaskKind, TaskName};
use platform::{DiskSpace, Instant};

use super::fragmentation::fragmentation_percent;
use super::plan::Fragmented;
use crate::core::{Bucket, BucketCore};

static WATCHER: TaskName = TaskName::new("CompactionWatcherTask", TaskKind::AuxIo)
    .priority(6)
    .expected(Duration::from_secs(1));

/// Of the disk, the part below which free room is short: what can be freed is freed at once.
const SHORT_PART: u64 = 4;

/// While room is short, files are looked at this often at most.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(250);

/// Looks for fragmented files.
struct Watcher {
    bucket: Bucket,
    /// When it looked last.
    looked_at: Option<Instant>,
}

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let core = &bucket.0;
    if !core.has_files() {
        return Ok(());
    }
    let task = Watcher { bucket: bucket.clone(), looked_at: None };
    let watcher = pool.schedule(&core.background.owner, &WATCHER, task)?;
    assert!(core.compaction.tasks.watcher.set(watcher).is_ok(), "the watcher starts once");
    Ok(())
}

impl Task for Watcher {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let core = &self.bucket.0;
        let now = core.clock.now();
        let since = self.looked_at.map(|looked_at| now.since(looked_at));
        if let Some(since) = since.filter(|since| *since < LOOK_INTERVAL_MIN) {
            return Next::SleepFor(LOOK_INTERVAL_MIN - since);
        }
        self.looked_at = Some(now);
        core.look_at_files();
        core.compaction.tasks.wake();
        let pause = core.compaction.room_pause.left(now, core.free_bytes());
        let is_paused = !pause.is_zero();
        let interval = core.config.compaction_interval;
        Next::SleepFor(if is_paused { pause.min(interval) } else { interval })
    }
}

impl BucketCore {
    /// A file has grown, or could not: when room is short, all that can be freed is looked for.
    pub(crate) fn note_growth(&self) {
        let is_short = |space: DiskSpace| space.free_bytes < space.total_bytes / SHORT_PART;
        if self.store.disk_space().is_some_and(is_short) {
            self.compaction.tasks.look_again();
        }
    }

    /// Bytes that are free on the disk; 0 where it does not tell.
    pub(super) fn free_bytes(&self) -> u64 {
        self.store.disk_space().map_or(0, |space| space.free_bytes)
    }

    /// Finds the files that are large enough and of which too much is of no use, the worst first;
    /// and keeps room for the copy of the largest one, now or later.
    pub(crate) fn look_at_files(&self) {
        let (settings, now) = (&self.compaction.plan.settings, self.clock.now());
        let percent_min = u64::from(settings.fragmentation_percent());
        let (mut found, mut live_bytes_max) = (Vec::new(), 0);
        for (vbid, slot) in self.slots() {
            if slot.file_is_damaged() || slot.lock().is_none() {
                continue;
            }
            // What cannot be asked about cannot be compacted; whoever needs the file says why.
            let Ok(sizes) = self.store.file_sizes(vbid) else { continue };
            let percent = fragmentation_percent(sizes);
            live_bytes_max = sizes.live_bytes.max(live_bytes_max);
            if percent_min > 0
                && sizes.file_bytes >= settings.file_bytes_min()
                && percent >= percent_min
                && slot.compaction_pause.is_due(now)
            {
                let live_bytes = sizes.live_bytes;
                found.push((percent, sizes.file_bytes, Fragmented { vbid, live_bytes }));
            }
        }
        found.sort_unstable_by(|left, right| right.cmp(left));
        // What an earlier look found goes on meanwhile: smaller files may have the room.
        if self.compaction.room_pause.left(now, self.free_bytes()).is_zero() {
            self.compaction.plan.set_fragmented(found.into_iter().map(|(_, _, one)| one).collect());
        }
        // Where files are not compacted unasked, no room is kept from writers for it.
        self.store.reserve_for_compaction((percent_min > 0).then_some(live_bytes_max));
    }
}
