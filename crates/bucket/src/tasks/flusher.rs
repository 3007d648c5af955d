//! Brings what vBuckets have queued to disk.

use std::time::Duration;

use document::{Seqno, Vbid};
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext};
use executor::{TaskKind, TaskName};
use platform::Instant;
use storage::{CommitReport, StorageError, VbucketRecord};
use vbucket::{FlushBatch, Vbucket};

use crate::apply_pace;
use crate::bucket::{Bucket, BucketCore};
use crate::checkpoint_memory::CheckpointState;
use crate::file_state;
use crate::vbucket_slot::VbucketSlot;
use crate::write_gate::WritePath;

static FLUSHER: TaskName =
    TaskName::new("FlusherTask", TaskKind::Writer).priority(5).expected(Duration::from_secs(1));
/// Clients wait for what the journal's flusher does, and it takes no longer than a fetch: it must
/// not stand behind others at the lowest priority.
static JOURNAL_FLUSHER: TaskName = TaskName::new("JournalFlusherTask", TaskKind::Reader)
    .priority(0)
    .expected(Duration::from_millis(100));
/// Pause before another try when the journal is full and nobody says earlier that it is not.
const JOURNAL_FULL_PAUSE: Duration = Duration::from_millis(50);
/// For so long nothing is tried that would be in vain as far as anybody can tell.
const JOURNAL_FULL_WAIT_MAX: Duration = Duration::from_secs(1);

/// Items that a flusher writes, at most, before it gives memory back when it has nothing to do.
const UNRELEASED_ITEMS_MAX: usize = 10_000;
/// The journal's memory is given back when there has been nothing to do for so long: what the next
/// groups want again costs milliseconds to take anew.
const JOURNAL_RELEASE_DELAY: Duration = Duration::from_secs(1);
/// When nothing has come for so long, the last group is protected.
const JOURNAL_REST_DELAY: Duration = Duration::from_secs(1);
/// How often a flusher tries again to flush what a failing disk refuses while the node stops.
const SHUTDOWN_ATTEMPTS_MAX: usize = 3;
/// How often room is made in a full journal for what a backup waits for, without any use.
const FULL_ROUNDS_MAX: usize = 100;

struct Flusher {
    bucket: Bucket,
    index: usize,
    failed_attempts: usize,
    /// The journal fills up: the next group waits until then.
    not_before: Instant,
    /// The journal was full: tried again then, whatever became of it.
    full_retry_at: Instant,
    /// Items written since memory was given back to the system.
    unreleased_items: usize,
    /// When to give the journal's memory back, if there is nothing to do before.
    journal_release_at: Option<Instant>,
    /// When to end what the last group has begun, if there is nothing to do before.
    rest_at: Option<Instant>,
}

/// What became of a group of vBuckets.
pub(crate) struct Flushed {
    item_count: usize,
    /// A vBucket could not be flushed: the disk failed.
    pub(crate) has_failed: bool,
    /// The journal has no room before files have followed it.
    pub(crate) journal_is_full: bool,
}

/// How the flush of one vBucket went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It is durable, or will never be.
    Done,
    /// The disk failed.
    Failed,
    /// The journal has no room.
    JournalIsFull,
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let is_journal = bucket.0.store.journal_usage().is_some();
    let name = if is_journal { &JOURNAL_FLUSHER } else { &FLUSHER };
    for (index, queue) in bucket.0.flush_queues.queues.iter().enumerate() {
        let flusher = Flusher {
            bucket: bucket.clone(),
            index,
            failed_attempts: 0,
            not_before: Instant::default(),
            full_retry_at: Instant::default(),
            unreleased_items: 0,
            journal_release_at: None,
            rest_at: None,
        };
        let handle = pool.schedule(bucket.0.owner(), name, flusher)?;
        queue.flusher.set(handle).expect("flushers start once");
    }
    Ok(())
}

impl Task for Flusher {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        let core = &self.bucket.0;
        if let Some(pause) = self.pause()
            && !context.is_shutting_down()
        {
            return Next::SleepFor(pause);
        }
        let queue = &core.flush_queues.queues[self.index];
        let now = core.clock.now();
        let due_by = (!context.is_shutting_down()).then_some(now);
        let group = queue.pop_group(core.config.persistence.group_vbuckets_max(), due_by);
        if group.is_empty() {
            if let Some(next) = queue.next_deferred() {
                return Next::SleepFor(next.since(now));
            }
            return self.rest(now);
        }
        self.rest_at = None;
        if let Some(release_at) = &mut self.journal_release_at {
            *release_at = now.after(JOURNAL_RELEASE_DELAY);
        }
        let flushed = core.flush(&group);
        self.unreleased_items += flushed.item_count;
        if flushed.journal_is_full {
            if !context.is_shutting_down() {
                self.full_retry_at = core.clock.now().after(JOURNAL_FULL_WAIT_MAX);
                return Next::SleepFor(JOURNAL_FULL_PAUSE);
            }
            return self.make_room_for_the_last();
        }
        if !flushed.has_failed {
            self.failed_attempts = 0;
            let pause = apply_pace::pause_of_commits(core.apply_pressure());
            self.not_before = core.clock.now().after(pause);
            return Next::Again;
        }
        self.failed_attempts += 1;
        if context.is_shutting_down() && self.failed_attempts < SHUTDOWN_ATTEMPTS_MAX {
            return Next::Again;
        }
        Next::SleepFor(core.config.flush_retry_interval)
    }
}

impl Flusher {
    /// The journal is full while the node stops, and nobody else brings files up to date any more.
    /// That is done until everything is durable, however long it takes; given up is only what the
    /// disk refuses again and again, or what damaged files leave no room for.
    fn make_room_for_the_last(&mut self) -> Next {
        let core = &self.bucket.0;
        if core.make_room() {
            self.failed_attempts = 0;
            return Next::Again;
        }
        self.failed_attempts += 1;
        if self.failed_attempts < SHUTDOWN_ATTEMPTS_MAX {
            Next::Again
        } else {
            Next::SleepFor(core.config.flush_retry_interval)
        }
    }

    /// How long the journal's state has this flusher wait, if it does.
    fn pause(&self) -> Option<Duration> {
        let core = &self.bucket.0;
        let now = core.clock.now();
        if now < self.full_retry_at && core.waits_for_journal() {
            return Some(JOURNAL_FULL_PAUSE);
        }
        (now < self.not_before).then(|| self.not_before.since(now))
    }

    /// There is nothing to do. Gives back what large batches took.
    fn rest(&mut self, now: Instant) -> Next {
        if self.unreleased_items >= UNRELEASED_ITEMS_MAX {
            self.unreleased_items = 0;
            platform::allocator::release_unused();
            self.journal_release_at = Some(now.after(JOURNAL_RELEASE_DELAY));
        }
        if let Some(rest_at) = self.rest_journal(now) {
            return Next::SleepFor(rest_at.since(now));
        }
        let Some(release_at) = self.journal_release_at else { return Next::Sleep };
        if now < release_at {
            return Next::SleepFor(release_at.since(now));
        }
        self.journal_release_at = None;
        self.bucket.0.store.give_memory_back();
        Next::Sleep
    }

    /// Nothing follows the last group: damage of it would look like a group that was being written.
    /// When that has been so for a while, has an empty one follow it. Returns when to look again.
    fn rest_journal(&mut self, now: Instant) -> Option<Instant> {
        let store = &self.bucket.0.store;
        if !store.is_restless() {
            self.rest_at = None;
            return None;
        }
        let rest_at = *self.rest_at.get_or_insert(now.after(JOURNAL_REST_DELAY));
        if now < rest_at {
            return Some(rest_at);
        }
        self.rest_at = None;
        if let Err(error) = store.rest() {
            tracing::warn!(%error, "the journal's last group is not protected against damage yet");
            self.rest_at = Some(now.after(self.bucket.0.config.flush_retry_interval));
        }
        self.rest_at
    }
}

impl BucketCore {
    /// A vBucket has something to flush that nobody waits for, unless the log's memory gets short.
    pub(crate) fn defer_flush(&self, vbid: Vbid) {
        match self.checkpoint_state() {
            CheckpointState::Available => self.flush_queues.defer(vbid),
            CheckpointState::High | CheckpointState::Full => self.flush_queues.push(vbid),
        }
    }

    /// Flushes `group`, whose order is that of vBuckets. What fails is queued again.
    pub(crate) fn flush(&self, group: &[Vbid]) -> Flushed {
        self.flush_each(group, Vbucket::begin_flush)
    }

    /// Flushes of `group` the states alone, for which a full journal has a reserve.
    pub(crate) fn flush_states(&self, group: &[Vbid]) -> Flushed {
        self.flush_each(group, Vbucket::begin_state_flush)
    }

    fn flush_each(
        &self,
        group: &[Vbid],
        begin: impl Fn(&mut Vbucket) -> Option<FlushBatch>,
    ) -> Flushed {
        let slots: Vec<_> = group.iter().filter_map(|&vbid| self.slot(vbid)).collect();
        let _files: Vec<_> = slots.iter().map(|slot| slot.lock_file()).collect();
        let mut batches: Vec<FlushBatch> =
            slots.iter().filter_map(|slot| begin(slot.lock().as_mut()?)).collect();
        let mut started = self.clock.now();
        let writes = batches.iter_mut().map(|batch| self.storage_batch(batch)).collect();
        let item_count = batches.iter().map(FlushBatch::item_count).sum();
        let mut flushed = Flushed { item_count, has_failed: false, journal_is_full: false };
        let mut answered = batches.iter();
        self.store.commit(writes, |vbid, result| {
            let batch = answered.next().filter(|batch| batch.vbid == vbid);
            let batch = batch.expect("storage answers for what it was given, in its order");
            let now = self.clock.now();
            let is_own_commit = result.as_ref().is_ok_and(|report| report.applied.is_some());
            match self.finish_flush(batch, now.since(started), result) {
                Outcome::Done => {}
                Outcome::Failed => flushed.has_failed = true,
                Outcome::JournalIsFull => flushed.journal_is_full = true,
            }
            if is_own_commit {
                started = self.clock.now();
            }
        });
        if flushed.journal_is_full {
            self.counters.add(&self.counters.journal_full_waits, 1);
            let used_bytes = self.store.journal_usage().map_or(0, |journal| journal.used_bytes);
            self.flush_queues.note_full_journal(used_bytes);
        }
        self.wake_appliers();
        flushed
    }

    /// Flushes the items that are only in memory now, as many flushes as that takes; brings files
    /// up to date where the journal has no room for them. What fails is queued again; then this is
    /// a vBucket of which not everything is durable.
    pub(crate) fn flush_items(&self) -> Result<(), Vbid> {
        let seqnos = |slot: &VbucketSlot| {
            let place = slot.lock();
            place.as_ref().map(|vbucket| (vbucket.persisted_seqno(), vbucket.high_seqno()))
        };
        let mut behind: Vec<(Vbid, Seqno, Seqno)> = self
            .slots()
            .filter_map(|(vbid, slot)| {
                seqnos(slot).map(|(persisted, high)| (vbid, persisted, high))
            })
            .filter(|(_, persisted, wanted)| persisted < wanted)
            .collect();
        let mut rounds_left = FULL_ROUNDS_MAX;
        while let Some(&(first, ..)) = behind.first() {
            let mut journal_is_full = false;
            for group in behind.chunks(self.config.persistence.group_vbuckets_max()) {
                let group: Vec<Vbid> = group.iter().map(|(vbid, ..)| *vbid).collect();
                journal_is_full |= self.flush(&group).journal_is_full;
            }
            if journal_is_full {
                self.apply_everything();
            }
            let mut has_moved = false;
            behind.retain_mut(|(vbid, before, wanted)| {
                let persisted = self.slot(*vbid).and_then(seqnos).map(|(persisted, _)| persisted);
                has_moved |= persisted.is_none_or(|persisted| persisted > *before);
                *before = persisted.unwrap_or(*wanted);
                *before < *wanted
            });
            if has_moved {
                rounds_left = FULL_ROUNDS_MAX;
            } else if journal_is_full && rounds_left > 0 {
                // Others may have taken the room that was made.
                rounds_left -= 1;
            } else {
                return Err(first);
            }
        }
        Ok(())
    }

    pub(crate) fn storage_batch(&self, batch: &mut FlushBatch) -> storage::FlushBatch {
        let mut items = Vec::new();
        if self.store.keeps_items() {
            let content = batch.take_items(self.config.batch_bytes_max());
            self.counters.add(&self.counters.flusher_deduplications, content.superfluous);
            items = content.items;
        } else {
            batch.count_items();
        }
        let document_count = batch.document_count;
        let state = VbucketRecord { document_count, ..file_state::to_file(&batch.state) };
        let previous_seqno = batch.previous_seqno;
        storage::FlushBatch { vbid: batch.vbid, previous_seqno, items, state }
    }

    /// Tells the vBucket how its flush went.
    fn finish_flush(
        &self,
        batch: &FlushBatch,
        took: Duration,
        result: Result<CommitReport, StorageError>,
    ) -> Outcome {
        let slot = self.slot(batch.vbid).expect("a flushed vBucket has a place");
        match result {
            Ok(report) => {
                self.note_commit(batch, took, &report);
                let mut effects = Vec::new();
                if let Some(vbucket) = slot.lock().as_mut() {
                    vbucket.flush_succeeded(batch, self.now(), &mut effects);
                }
                self.note_disk(batch.vbid, WritePath::Flush, None);
                match report.applied {
                    Some(applied) => self.tell_of_apply(batch.vbid, &applied, effects),
                    None => self.carry_out(batch.vbid, &mut effects),
                }
                Outcome::Done
            }
            Err(error) => {
                if let Some(vbucket) = slot.lock().as_mut() {
                    vbucket.flush_failed();
                }
                if matches!(error, StorageError::JournalFull { .. }) {
                    self.flush_queues.push_again(batch.vbid);
                    return Outcome::JournalIsFull;
                }
                self.counters.add(&self.counters.commits_failed, 1);
                if matches!(error, StorageError::Corrupt { .. } | StorageError::OutOfOrder { .. }) {
                    self.give_up_file(batch.vbid, &error);
                    return Outcome::Done;
                }
                self.note_disk(batch.vbid, WritePath::Flush, Some(&error));
                self.flush_queues.push_again(batch.vbid);
                Outcome::Failed
            }
        }
    }

    fn note_commit(&self, batch: &FlushBatch, took: Duration, report: &CommitReport) {
        let age = self.clock.now().since(batch.queued_since);
        self.timings.storage_age.record(micros(age));
        self.timings.disk_commit.record(micros(took));
        self.counters.add(&self.counters.commits, 1);
        self.counters.add(&self.counters.items_persisted, report.item_count);
    }
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
