//! Compacting one file, and what comes of it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use document::{Item, Vbid};
use platform::{Instant, Seldom};
use storage::{
    CompactionObserver, CompactionOutcome, CompactionPace, CompactionProgress, CompactionReport,
    CompactionRequest, StorageError,
};
use vbucket::Refusal;

use super::fragmentation::fragmentation_percent;
use super::plan::{Begun, CompactionEnd, CompactionOrder, time_left};
use crate::core::{BucketCore, DamageKind, micros};
use crate::memory::CheckpointState;

/// The part of a file that is of no use, in percent, from which on it is compacted at full speed.
const UNPACED_PERCENT_MIN: u64 = 60;

/// A compaction that takes longer is worth a line in the log.
const LONG: Duration = Duration::from_secs(30);

/// How often a document that is past its time is looked at: its key may have to be looked up, then
/// its value.
const EXPIRY_ATTEMPTS_MAX: usize = 3;

/// Hears of what a compaction finds, and tells how far it is.
struct Finder<'a> {
    core: &'a BucketCore,
    vbid: Vbid,
    progress: &'a CompactionProgress,
    started: Instant,
    lines: Seldom,
}

impl<'a> Finder<'a> {
    fn new(core: &'a BucketCore, begun: &'a Begun) -> Self {
        let started = core.clock.now();
        let lines = Seldom::every(core.config.progress_interval);
        // The first line is due when an interval is over.
        let _ = lines.passes(started);
        Self { core, vbid: begun.vbid, progress: &begun.progress, started, lines }
    }
}

impl CompactionObserver for Finder<'_> {
    fn goes_on(&self) {
        let now = self.core.clock.now();
        if self.lines.passes(now).is_none() {
            return;
        }
        let took = now.since(self.started);
        let bytes_done = self.progress.bytes_done();
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).max(1);
        tracing::info!(
            bucket = self.core.config.name,
            vbucket = self.vbid.0,
            bytes_done,
            bytes_total = self.progress.bytes_total(),
            bytes_per_second = bytes_done.saturating_mul(1000) / milliseconds,
            seconds_left = time_left(self.progress, took).map(|left| left.as_secs()),
            "compacting a file"
        );
    }

    fn expired(&self, documents: Vec<Item>) {
        for document in documents {
            if self.core.checkpoint_state() == CheckpointState::Full {
                // Deletions enter the log, too. The expiry pager or the next compaction comes.
                return;
            }
            if self.core.delete_expired(self.vbid, &document) {
                self.core.compaction.plan.counters.expired.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl BucketCore {
    /// Compacts a file, and lets those know who asked for it.
    pub(super) fn compact(&self, begun: Begun) {
        let finder = Finder::new(self, &begun);
        let started = finder.started;
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
        self.compaction.plan.end(begun, end);
    }

    fn compaction_request(&self, vbid: Vbid, order: CompactionOrder) -> CompactionRequest {
        let settings = &self.compaction.plan.settings;
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
        self.compaction.plan.settings.pace().clone()
    }

    fn note_compaction(
        &self,
        vbid: Vbid,
        took: Duration,
        result: Result<CompactionOutcome, StorageError>,
    ) -> CompactionEnd {
        let counters = &self.compaction.plan.counters;
        match result {
            Ok(CompactionOutcome::Compacted(report)) => {
                self.counters.timings.compact.record(micros(took));
                counters.note(&report);
                self.note_purged(vbid);
                self.note_damaged_bodies(vbid, &report.damaged);
                self.slot(vbid).into_iter().for_each(|slot| slot.compaction_pause.clear());
                self.compaction.room_pause.clear();
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
    /// once. For want of room all files are.
    fn note_failure(&self, vbid: Vbid, error: &StorageError) {
        let Some(slot) = self.slot(vbid) else { return };
        let pause = match error {
            StorageError::NoSpace(_) | StorageError::TooManyOpenFiles(_) => self.note_no_room(vbid),
            _ => slot.compaction_pause.note_failure(self.clock.now()),
        };
        if matches!(error, StorageError::Corrupt { .. }) {
            slot.damage.note(DamageKind::InPart, &error.to_string());
        }
        if matches!(error, StorageError::NoSpace(_))
            && self.compaction.tasks.no_room_lines.passes(self.clock.now()).is_none()
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

    /// There was no room for a copy, and so is none for larger ones: smaller ones are tried. Gives
    /// the pause before the next look.
    fn note_no_room(&self, vbid: Vbid) -> Duration {
        if let Ok(sizes) = self.store.file_sizes(vbid) {
            self.compaction.plan.forget_fragmented_from(sizes.live_bytes);
        }
        self.compaction.room_pause.note_failure(self.clock.now(), self.free_bytes())
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
            let done = self
                .on_vbucket(vbid, &mut effects, |vbucket, effects| {
                    vbucket.delete_if_expired(key, now, effects)
                })
                .unwrap_or(Ok(false));
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
