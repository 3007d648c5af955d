//! Compacts files: those that somebody wants compacted, and those of which too much is of no use.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use document::{Item, Vbid};
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext, TaskHandle};
use executor::{TaskKind, TaskName};
use platform::{DiskSpace, Instant, Seldom};
use storage::{
    CompactionObserver, CompactionOutcome, CompactionPace, CompactionReport, CompactionRequest,
    FileSizes, StorageError,
};
use vbucket::Refusal;

use super::flusher::micros;
use crate::bucket::{Bucket, BucketCore};
use crate::bucket_type::BucketType;
use crate::checkpoint_memory::CheckpointState;
use crate::compaction::{Begun, CompactionEnd, CompactionOrder};
use crate::damage::DamageKind;

static COMPACTOR: TaskName = TaskName::new("CompactVBucketTask", TaskKind::AuxIo)
    .priority(5)
    .expected(Duration::from_secs(25));
static WATCHER: TaskName = TaskName::new("CompactionWatcherTask", TaskKind::AuxIo)
    .priority(6)
    .expected(Duration::from_secs(1));

/// The part of a file that is of no use, in percent, from which on it is compacted at full speed.
const UNPACED_PERCENT_MIN: u64 = 60;

/// Of the disk, the part below which free room is short: what can be freed is freed at once.
const SHORT_PART: u64 = 4;

/// While room is short, files are looked at this often at most.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(250);

/// A compaction that takes longer is worth a line in the log.
const LONG: Duration = Duration::from_secs(30);

/// How often a document that is past its time is looked at: its key may have to be looked up, then
/// its value.
const EXPIRY_ATTEMPTS_MAX: usize = 3;

/// From one line to the next about compactions that find no room on the disk.
const NO_ROOM_INTERVAL: Duration = Duration::from_secs(60);

/// The tasks, for those who have work for them.
pub(crate) struct Compactors {
    compactors: OnceLock<Vec<TaskHandle>>,
    watcher: OnceLock<TaskHandle>,
    /// While room is short all files are tried four times a second.
    no_room_lines: Seldom,
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

/// Compacts one file a run.
struct Compactor {
    bucket: Bucket,
}

/// Looks for fragmented files.
struct Watcher {
    bucket: Bucket,
    /// When it looked last.
    looked_at: Option<Instant>,
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    if bucket.bucket_type() == BucketType::Ephemeral {
        return Ok(());
    }
    let core = &bucket.0;
    // Appliers are paced: twice as many of them leave no more garbage behind.
    let writers = core.config.apply.applier_count.div_ceil(2);
    let count = concurrency(
        pool.threads(TaskKind::Writer).normal.min(writers),
        pool.threads(TaskKind::AuxIo).normal,
        core.config.compaction_concurrency_ratio,
    );
    let mut compactors = Vec::with_capacity(count);
    for _ in 0..count {
        let task = Compactor { bucket: bucket.clone() };
        compactors.push(pool.schedule_asleep(core.owner(), &COMPACTOR, task)?);
    }
    assert!(core.compactors.compactors.set(compactors).is_ok(), "compactors start once");
    let task = Watcher { bucket: bucket.clone(), looked_at: None };
    let watcher = pool.schedule(core.owner(), &WATCHER, task)?;
    assert!(core.compactors.watcher.set(watcher).is_ok(), "the watcher starts once");
    // What was ordered before there was anybody to do it.
    core.compactors.wake();
    Ok(())
}

/// Compactions that run at the same time (engine facts, section 4.8): a part of the threads that
/// make work for them, and never all that could do anything else.
fn concurrency(writers: usize, aux_io: usize, ratio: f64) -> usize {
    let wanted = (writers.min(aux_io) as f64 * ratio) as usize;
    wanted.clamp(1, aux_io.saturating_sub(1).max(1))
}

impl Task for Compactor {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        if context.is_shutting_down() {
            return Next::Finished;
        }
        let core = &self.bucket.0;
        match core.compactions.begin(core.clock.now()) {
            Some(begun) => {
                core.compact(begun);
                Next::Again
            }
            None => Next::Sleep,
        }
    }
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
        core.compactors.wake();
        Next::SleepFor(core.config.compaction_interval)
    }
}

/// Hears of what a compaction finds.
struct Finder<'a> {
    core: &'a BucketCore,
    vbid: Vbid,
}

impl CompactionObserver for Finder<'_> {
    fn expired(&self, documents: Vec<Item>) {
        for document in documents {
            if self.core.checkpoint_state() == CheckpointState::Full {
                // Deletions enter the log, too. The expiry pager or the next compaction comes.
                return;
            }
            if self.core.delete_expired(self.vbid, &document) {
                self.core.compactions.counters.expired.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl BucketCore {
    /// A file has grown, or could not: when room is short, all that can be freed is looked for.
    pub(crate) fn note_growth(&self) {
        let is_short = |space: DiskSpace| space.free_bytes < space.total_bytes / SHORT_PART;
        if self.store.disk_space().is_some_and(is_short) {
            self.compactors.look_again();
        }
    }

    /// Finds the files that are large enough and of which too much is of no use, the worst first;
    /// and keeps room for the copy of the largest one, now or later.
    fn look_at_files(&self) {
        let (settings, now) = (&self.compactions.settings, self.clock.now());
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
                found.push((percent, sizes.file_bytes, vbid));
            }
        }
        found.sort_unstable_by(|left, right| right.cmp(left));
        self.compactions.set_fragmented(found.into_iter().map(|(_, _, vbid)| vbid).collect());
        self.store.reserve_for_compaction((percent_min > 0).then_some(live_bytes_max));
    }

    fn compact(&self, begun: Begun) {
        let started = self.clock.now();
        let finder = Finder { core: self, vbid: begun.vbid };
        // What the journal alone has is to be compacted, too. On a full disk it waits: this is what
        // makes room for it.
        let applied = match self.apply(begun.vbid) {
            Err(StorageError::NoSpace(_)) => Ok(()),
            applied => applied,
        };
        let compact = |()| {
            let request = self.compaction_request(begun.vbid, begun.order);
            self.store.compact(begun.vbid, &request, &begun.progress, &finder)
        };
        let result = applied.and_then(compact);
        let took = self.clock.now().since(started);
        let end = self.note_compaction(begun.vbid, took, result);
        self.compactions.end(begun, end);
    }

    fn compaction_request(&self, vbid: Vbid, order: CompactionOrder) -> CompactionRequest {
        let settings = &self.compactions.settings;
        let now_seconds = self.clock.wall_time().seconds();
        let age = u32::try_from(settings.purge_age_seconds()).unwrap_or(u32::MAX);
        let purge_before_seconds = match order.purge_before_seconds {
            0 => now_seconds.saturating_sub(age),
            seconds => seconds,
        };
        CompactionRequest {
            purge_before_seconds,
            purge_before_seqno: order.purge_before_seqno,
            drop_deletes: order.drop_deletes,
            retain_erroneous_tombstones: self.config.retain_erroneous_tombstones,
            now_seconds,
            dropped: Vec::new(),
            sync_bytes: self.config.compaction_sync_bytes,
            pace: self.compaction_pace(vbid),
        }
    }

    /// What a file frees outweighs what its copy costs the device when little of it is copied; to
    /// hold that back would let files grow faster than they are compacted.
    fn compaction_pace(&self, vbid: Vbid) -> CompactionPace {
        let is_nearly_useless = |sizes| fragmentation_percent(sizes) >= UNPACED_PERCENT_MIN;
        if self.store.file_sizes(vbid).is_ok_and(is_nearly_useless) {
            return CompactionPace::default();
        }
        self.compactions.settings.pace().clone()
    }

    fn note_compaction(
        &self,
        vbid: Vbid,
        took: Duration,
        result: Result<CompactionOutcome, StorageError>,
    ) -> CompactionEnd {
        let counters = &self.compactions.counters;
        match result {
            Ok(CompactionOutcome::Compacted(report)) => {
                self.timings.compact.record(micros(took));
                counters.note(&report);
                self.note_purged(vbid);
                self.note_damaged_bodies(vbid, &report.damaged);
                self.slot(vbid).into_iter().for_each(|slot| slot.compaction_pause.clear());
                log_compaction(vbid, took, &report);
                CompactionEnd::Done
            }
            Ok(CompactionOutcome::NoFile) => CompactionEnd::Done,
            Ok(CompactionOutcome::Aborted | CompactionOutcome::Busy) => {
                counters.aborted.fetch_add(1, Ordering::Relaxed);
                CompactionEnd::Aborted
            }
            Err(error) => {
                counters.failed.fetch_add(1, Ordering::Relaxed);
                self.note_failure(vbid, &error);
                CompactionEnd::Failed
            }
        }
    }

    /// A file stays as it is, and is left alone for a while: it would be the worst one again at
    /// once. Not so for want of room, which another compaction may make.
    fn note_failure(&self, vbid: Vbid, error: &StorageError) {
        let Some(slot) = self.slot(vbid) else { return };
        let pause = match error {
            StorageError::NoSpace(_) | StorageError::TooManyOpenFiles(_) => Duration::ZERO,
            _ => slot.compaction_pause.note_failure(self.clock.now()),
        };
        if matches!(error, StorageError::Corrupt { .. }) {
            slot.damage.note(DamageKind::InPart, &error.to_string());
        }
        if matches!(error, StorageError::NoSpace(_))
            && self.compactors.no_room_lines.passes(self.clock.now()).is_none()
        {
            return;
        }
        tracing::error!(
            %error,
            vbucket = vbid.0,
            tried_again_after_seconds = pause.as_secs(),
            "the vBucket's file could not be compacted and stays as it is"
        );
    }

    /// Tells the vBucket up to where its file is purged.
    fn note_purged(&self, vbid: Vbid) {
        let Some(slot) = self.slot(vbid) else { return };
        // The file stays the vBucket's as long as this is held: it is not emptied in between.
        let _file = slot.lock_file();
        // If it cannot be read, the next start or compaction tells.
        let Ok(purge_seqno) = self.store.purge_seqno(vbid) else { return };
        if let Some(vbucket) = slot.lock().as_mut() {
            vbucket.note_purged(purge_seqno);
        }
    }

    /// Deletes a document that a file has as past its time, if its newest version is. Whether it
    /// did.
    fn delete_expired(&self, vbid: Vbid, document: &Item) -> bool {
        let Some(slot) = self.slot(vbid) else { return false };
        let key = document.key();
        let mut effects = Vec::new();
        for _ in 0..EXPIRY_ATTEMPTS_MAX {
            let now = self.now();
            let done = match slot.lock().as_mut() {
                Some(vbucket) => vbucket.delete_if_expired(key, now, &mut effects),
                None => Ok(false),
            };
            self.carry_out(vbid, &mut effects);
            // The file has the newest version of what is not in memory.
            let lookup = match done {
                Ok(is_deleted) => return is_deleted,
                Err(Refusal::Absent(lookup)) => Some(lookup),
                Err(Refusal::Ejected(_)) => None,
                Err(_) => return false,
            };
            let found = self.store.get(vbid, &[key]).ok().and_then(|mut found| found.pop());
            let left_over = match (slot.lock().as_mut(), lookup, found) {
                (Some(vbucket), Some(lookup), Some(found)) => vbucket.finish_lookup(&lookup, found),
                (Some(vbucket), Some(lookup), None) => {
                    vbucket.abandon_lookup(&lookup);
                    return false;
                }
                (Some(vbucket), None, Some(Some(value))) => vbucket.restore_value(value),
                _ => return false,
            };
            drop(left_over);
        }
        false
    }
}

/// The part of a file that nothing needs.
fn fragmentation_percent(sizes: FileSizes) -> u64 {
    let useless = sizes.file_bytes.saturating_sub(sizes.live_bytes);
    useless.saturating_mul(100).checked_div(sizes.file_bytes).unwrap_or(0)
}

fn log_compaction(vbid: Vbid, took: Duration, report: &CompactionReport) {
    if let Some(error) = &report.old_file_left {
        tracing::warn!(%error, vbucket = vbid.0, "the file before compaction is left behind");
    }
    if took >= LONG {
        tracing::info!(
            vbucket = vbid.0,
            seconds = took.as_secs(),
            bytes_before = report.file_bytes_before,
            bytes_after = report.file_bytes_after,
            rounds = report.rounds,
            "a compaction took long"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compactions_leave_threads_for_others() {
        let cases = [
            ((1, 1), 1),
            ((2, 2), 1),
            ((4, 4), 2),
            ((4, 2), 1),
            ((8, 3), 1),
            ((16, 8), 4),
            ((64, 8), 4),
            ((0, 0), 1),
        ];
        for ((writers, aux_io), expected) in cases {
            assert_eq!(concurrency(writers, aux_io, 0.5), expected, "{writers}, {aux_io}");
        }
        assert_eq!(concurrency(8, 8, 1.0), 7);
    }

    #[test]
    fn fragmentation_is_what_nothing_needs() {
        let percent =
            |file_bytes, live_bytes| fragmentation_percent(FileSizes { file_bytes, live_bytes });
        assert_eq!([percent(0, 0), percent(100, 100), percent(100, 70)], [0, 0, 30]);
        assert_eq!([percent(100, 0), percent(100, 200)], [100, 0]);
    }
}
