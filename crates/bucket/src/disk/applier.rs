//! Brings files up to date with the journal, evenly paced.

use std::sync::atomic::Ordering;
use std::time::Duration;

use document::Vbid;
use executor::{ExecutorPool, Next, OwnerIsGone, Task, TaskContext};
use executor::{TaskKind, TaskName};
use platform::Instant;

use super::apply_pace::{self, LOOK_INTERVAL_MAX};
use crate::core::{Bucket, BucketCore};

static APPLIER: TaskName =
    TaskName::new("ApplierTask", TaskKind::Writer).priority(6).expected(Duration::from_secs(1));

/// The lowest priority gets next to nothing of a busy machine. When that lets the journal fill up,
/// one more task writes files, at the priority of those who fill it.
static HURRIED_APPLIER: TaskName = TaskName::new("HurriedApplierTask", TaskKind::Reader)
    .priority(6)
    .expected(Duration::from_millis(200));

/// A run ends after this long, so that others of its kind have their turn.
const RUN_DURATION_MAX: Duration = Duration::from_millis(50);

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

pub(crate) fn start(bucket: &Bucket, pool: &ExecutorPool) -> Result<(), OwnerIsGone> {
    let core = &bucket.0;
    // Also for a journal that had to stay although files alone were wanted.
    if core.store.journal_usage().is_none() {
        return Ok(());
    }
    let mut handles = Vec::new();
    for _ in 0..core.config.apply.applier_count.max(1) {
        let applier = Applier::new(bucket, false);
        handles.push(pool.schedule(&core.background.owner, &APPLIER, applier)?);
    }
    let hurried =
        pool.schedule_asleep(&core.background.owner, &HURRIED_APPLIER, Applier::new(bucket, true))?;
    assert!(core.disk.appliers.hurried.set(hurried).is_ok(), "appliers start once");
    assert!(core.disk.appliers.handles.set(handles).is_ok(), "appliers start once");
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
                let was_asleep = core.disk.appliers.are_asleep.swap(true, Ordering::Relaxed);
                if was_asleep || core.store.backlog().vbuckets == 0 {
                    return Next::Sleep;
                }
                continue;
            };
            // Before files grow: what is in memory alone, and changes all the time, needs its room,
            // too.
            core.store.leave_room_for_flushes(core.memory.account.checkpoints_bytes());
            self.prepare_journal(core, now);
            core.store.trim_backlog();
            if self.is_hurried && !pressure.is_critical() {
                return Next::Sleep;
            }
            if let Some(wait) = self.wait(now, pause) {
                return Next::SleepFor(wait);
            }
            if pressure.is_high() {
                core.carry_forward(pressure.is_journal_full, now);
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
            if core.disk.appliers.no_room_lines.passes(now).is_some() {
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
