//! Brings files up to date with the journal, evenly paced.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext, TaskHandle};
use executor::{TaskKind, TaskName};
use platform::{Instant, Seldom, allocator};
use storage::{Applied, StorageError, Unapplied};
use vbucket::{Effect, Vbucket};

use super::flusher::micros;
use crate::apply_pace::{self, ApplyPressure, LOOK_INTERVAL_MAX};
use crate::backing_store::BackingStore;
use crate::bucket::{Bucket, BucketCore};
use crate::bucket_file;
use crate::vbucket_slot::VbucketSlot;
use crate::write_gate::WritePath;

static APPLIER: TaskName =
    TaskName::new("ApplierTask", TaskKind::Writer).priority(6).expected(Duration::from_secs(1));

/// The lowest priority gets next to nothing of a busy machine. When that lets the journal fill up,
/// one more task writes files, at the priority of those who fill it.
static HURRIED_APPLIER: TaskName = TaskName::new("HurriedApplierTask", TaskKind::Reader)
    .priority(6)
    .expected(Duration::from_millis(200));

/// A run ends after this long, so that others of its kind have their turn.
const RUN_DURATION_MAX: Duration = Duration::from_millis(50);

/// From one line in the log to the next while files are brought up to date for those who wait.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);
/// From one line to the next about what fails in each turn of each applier.
const TROUBLE_INTERVAL: Duration = Duration::from_secs(60);

/// The tasks, for who has something for them.
pub(crate) struct Appliers {
    handles: OnceLock<Vec<TaskHandle>>,
    hurried: OnceLock<TaskHandle>,
    /// They have found nothing to do and sleep. Set before the last look at the backlog.
    are_asleep: AtomicBool,
    /// For lines that say how far files have followed the journal.
    pub(super) progress_lines: Seldom,
    /// For those that say that no room is made ready for the journal.
    no_room_lines: Seldom,
    /// For those that say that the journal cannot go on in spite of damaged files.
    damage_lines: Seldom,
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
    fn wake_if_needed(&self, store: &BackingStore) {
        if self.are_asleep.load(Ordering::Relaxed) && store.backlog().vbuckets > 0 {
            self.are_asleep.store(false, Ordering::Relaxed);
            self.handles.get().into_iter().flatten().for_each(TaskHandle::wake);
        }
    }
}

struct Applier {
    bucket: Bucket,
    /// Whether it writes only while that is urgent.
    is_hurried: bool,
    /// When the last turn was to be.
    last_turn: Instant,
    /// A file could not be written: no turn before this.
    not_before: Option<Instant>,
    /// No room could be made for the journal: not tried again before this.
    prepare_not_before: Instant,
}

pub(super) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let core = &bucket.0;
    // Also for a journal that had to stay although files alone were wanted.
    if core.store.journal_usage().is_none() {
        return Ok(());
    }
    let mut handles = Vec::new();
    for _ in 0..core.config.apply.applier_count.max(1) {
        let applier = Applier::new(bucket, false);
        handles.push(pool.schedule(core.owner(), &APPLIER, applier)?);
    }
    let hurried =
        pool.schedule_asleep(core.owner(), &HURRIED_APPLIER, Applier::new(bucket, true))?;
    assert!(core.appliers.hurried.set(hurried).is_ok(), "appliers start once");
    assert!(core.appliers.handles.set(handles).is_ok(), "appliers start once");
    Ok(())
}

impl Task for Applier {
    fn run(&mut self, context: &TaskContext<'_>) -> Next {
        let bucket = self.bucket.clone();
        let core = &bucket.0;
        let end = context.started().after(RUN_DURATION_MAX);
        loop {
            if context.is_shutting_down() {
                return Next::Finished;
            }
            let now = core.clock.now();
            if now >= end {
                return Next::Again;
            }
            let pressure = core.apply_pressure();
            let Some(pause) = apply_pace::pause(&core.config.apply, pressure) else {
                // Whoever hands something over looks at the flag after that.
                let was_asleep = core.appliers.are_asleep.swap(true, Ordering::Relaxed);
                if was_asleep || core.store.backlog().vbuckets == 0 {
                    return Next::Sleep;
                }
                continue;
            };
            self.prepare_journal(core, now);
            core.store.trim_backlog();
            if self.is_hurried && !pressure.is_critical() {
                return Next::Sleep;
            }
            if let Some(wait) = self.wait(now, pause) {
                return Next::SleepFor(wait);
            }
            if pressure.is_high() {
                core.carry_forward(now);
            }
            match core.next_to_apply(pressure, now) {
                Some(vbid) => self.apply(core, vbid),
                None => return Next::SleepFor(LOOK_INTERVAL_MAX),
            }
        }
    }
}

impl Applier {
    fn new(bucket: &Bucket, is_hurried: bool) -> Self {
        let last_turn = bucket.0.clock.now();
        let bucket = bucket.clone();
        Self { bucket, is_hurried, last_turn, not_before: None, prepare_not_before: last_turn }
    }

    fn prepare_journal(&mut self, core: &BucketCore, now: Instant) {
        if now < self.prepare_not_before {
            return;
        }
        if let Err(error) = core.store.prepare_journal() {
            if core.appliers.no_room_lines.passes(now).is_some() {
                tracing::warn!(%error, "no room is made ready for the journal");
            }
            self.prepare_not_before = now.after(core.config.flush_retry_interval);
        }
    }

    /// How long to wait before the next turn; `None` when it has come.
    fn wait(&mut self, now: Instant, pause: Duration) -> Option<Duration> {
        let turn = self.last_turn.after(pause).max(self.not_before.unwrap_or_default());
        if now < turn {
            return Some(turn.since(now).min(LOOK_INTERVAL_MAX));
        }
        // A turn that comes late does not bring the next ones forward by more than a pause.
        let late = now.since(turn);
        self.last_turn = if late > pause { now } else { turn };
        self.not_before = None;
        None
    }

    fn apply(&mut self, core: &BucketCore, vbid: Vbid) {
        if core.apply(vbid).is_err() {
            self.not_before = Some(core.clock.now().after(core.config.flush_retry_interval));
        }
    }
}

impl BucketCore {
    /// There is more in the journal: whoever is to bring it to the files hears of it.
    pub(super) fn wake_appliers(&self) {
        self.appliers.wake_if_needed(&self.store);
        if let Some(hurried) = self.appliers.hurried.get()
            && self.apply_pressure().is_critical()
        {
            hurried.wake();
        }
    }

    /// How urgent it is that files follow the journal.
    pub(super) fn apply_pressure(&self) -> ApplyPressure {
        let backlog = self.store.backlog();
        let journal = self.store.journal_usage().unwrap_or_default();
        let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        ApplyPressure {
            vbuckets: backlog.vbuckets,
            journal_ratio: ratio(journal.used_bytes, journal.bytes_max - journal.reserve_bytes),
            is_journal_full: self.flush_queues.is_journal_full(),
            is_gate_closed: self.gate.disk_block().is_some(),
            pinned_ratio: ratio(backlog.bytes, self.limits.wanted_bytes()),
            waited: backlog
                .oldest_since
                .map_or(Duration::ZERO, |since| self.clock.now().since(since)),
        }
    }

    /// Lets the journal go on although files are damaged, as far as the disk allows.
    pub(super) fn carry_forward(&self, now: Instant) {
        if let Err(error) = self.store.carry_forward()
            && self.appliers.damage_lines.passes(now).is_some()
        {
            tracing::warn!(%error, "what waits for damaged files fills the journal");
        }
    }

    fn next_to_apply(&self, pressure: ApplyPressure, now: Instant) -> Option<Vbid> {
        self.store.next_unapplied(|unapplied: &Unapplied| {
            let waited = now.since(unapplied.since);
            apply_pace::is_due(&self.config.apply, pressure, unapplied, waited)
        })
    }

    /// Brings the file of one vBucket up to date with the journal.
    ///
    /// # Errors
    /// Those of [`storage::Store::apply`], which are noted and logged here.
    pub(crate) fn apply(&self, vbid: Vbid) -> Result<(), StorageError> {
        let Some(slot) = self.slot(vbid) else { return Ok(()) };
        let history = slot.lock_history();
        let started = self.clock.now();
        match self.store.apply(vbid) {
            Ok(None) => {}
            Ok(Some(applied)) => {
                self.counters.add(&self.counters.applies, 1);
                self.timings.disk_apply.record(micros(self.clock.now().since(started)));
                self.note_disk(vbid, WritePath::Apply, None);
                let persisted = slot.lock().as_ref().map(Vbucket::persisted_seqno);
                if persisted.is_some_and(|persisted| persisted < applied.high_seqno) {
                    // Whoever made this durable is still about to say so.
                    drop(slot.lock_file());
                }
                self.tell_of_apply(vbid, &applied, Vec::new());
                let journal = self.store.journal_usage().unwrap_or_default();
                self.flush_queues.wake_if_journal_has_room(journal.used_bytes);
                drop(history);
                allocator::release_after_work(applied.bytes_written);
            }
            Err(error) => {
                self.counters.add(&self.counters.applies_failed, 1);
                if matches!(error, StorageError::Corrupt { .. } | StorageError::OutOfOrder { .. }) {
                    self.give_up_file(vbid, &error);
                } else {
                    self.note_disk(vbid, WritePath::Apply, Some(&error));
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Brings all files up to date, and if that succeeds marks the stop as a clean one and lets go
    /// of the journal. For a node that stops: nothing is written any more.
    pub(crate) fn close_journal(&self) {
        self.apply_everything();
        // The journal goes after the mark: one of them tells where the files are.
        if self.store.backlog().vbuckets == 0 && self.leave_clean_mark() {
            self.store.close_journal();
        }
    }

    fn leave_clean_mark(&self) -> bool {
        // The branch that begins after a crash has to be in a file before the crash is forgotten.
        let was_clean = self.warmup.progress(self.clock.now()).was_clean;
        let is_loaded =
            |vbid| self.slot(vbid).is_some_and(|slot: &VbucketSlot| slot.lock().is_some());
        let witnesses = self.store.witnesses(|vbid| was_clean || is_loaded(vbid));
        let left = bucket_file::leave_clean_mark(&*self.files, &self.directory, &witnesses);
        if let Err(error) = &left {
            tracing::warn!(%error, "the next start will treat this stop as a crash");
        }
        left.is_ok()
    }

    /// Tells the vBucket what its file has. Of many tombstones most leave memory with pauses for
    /// others who want the lock. `effects` are carried out after the first of them: who hears that
    /// its write is durable finds in the file what is said to be there.
    pub(crate) fn tell_of_apply(&self, vbid: Vbid, applied: &Applied, mut effects: Vec<Effect>) {
        self.note_growth();
        let Some(slot) = self.slot(vbid) else { return };
        if let Some(vbucket) = slot.lock().as_mut() {
            vbucket.apply_succeeded(applied.high_seqno);
            if let Some(count) = applied.document_count {
                vbucket.correct_document_count(count, applied.documents);
            }
        }
        let mut next_tombstone = Some(0);
        while let Some(from) = next_tombstone {
            let mut place = slot.lock();
            next_tombstone = place.as_mut().and_then(|vbucket| {
                vbucket.forget_tombstones(&applied.tombstones, from, &mut effects)
            });
            drop(place);
            self.carry_out(vbid, &mut effects);
        }
        self.page_if_full();
    }
}
