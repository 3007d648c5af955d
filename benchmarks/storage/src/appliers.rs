//! Brings the files of a store up to date with its journal as a bucket's appliers do: with the same
//! pace, on as many threads of the same priority, and one more when it presses.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Result;
use bucket::{ApplyConfig, BucketConfig};
use platform::threads::{NICE_LOWEST, set_own_nice, spawn};
use platform::{Clock, Instant, allocator};
use storage::{Store, Unapplied};

use crate::apply_pace::{self, ApplyPressure, LOOK_INTERVAL_MAX};

/// Threads that write files. Dropping it stops them; what is behind stays behind.
pub struct Appliers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    store: Arc<Store>,
    clock: Clock,
    config: ApplyConfig,
    quota_bytes: u64,
    is_over: AtomicBool,
    /// The last commit found no room in the journal.
    is_journal_full: AtomicBool,
    /// Applies so far, for whom the journal was full.
    applies: Mutex<u64>,
    applied: Condvar,
    /// Those who write whenever files are behind.
    steady: Sleepers,
    /// The one that writes only while that is urgent. To be woken for nothing at each commit would
    /// cost a commit of one document a tenth of its time.
    hurried: Sleepers,
}

/// Threads that have nothing to do.
#[derive(Default)]
struct Sleepers {
    /// Wakes them early.
    bell: Condvar,
    count: AtomicU64,
}

impl Appliers {
    /// Starts them, with a bucket's defaults.
    pub fn start(store: &Arc<Store>) -> Result<Self> {
        let defaults = BucketConfig::named("benchmark");
        let shared = Arc::new(Shared {
            store: Arc::clone(store),
            clock: Clock::real(),
            config: defaults.apply,
            quota_bytes: defaults.memory_quota_bytes,
            is_over: AtomicBool::new(false),
            is_journal_full: AtomicBool::new(false),
            applies: Mutex::default(),
            applied: Condvar::new(),
            steady: Sleepers::default(),
            hurried: Sleepers::default(),
        });
        let mut threads = Vec::new();
        for number in 0..=shared.config.applier_count {
            let is_hurried = number == shared.config.applier_count;
            let shared = Arc::clone(&shared);
            threads.push(spawn("Applier", move || run(&shared, is_hurried))?);
        }
        Ok(Self { shared, threads })
    }

    /// Whether the last commit found no room in the journal. Files are written as fast as the disk
    /// takes it until one does.
    pub fn note_journal(&self, is_full: bool) {
        self.shared.is_journal_full.store(is_full, Ordering::Relaxed);
    }

    /// There is more in the journal. Waits as a bucket's flusher does while it fills up.
    pub fn follow(&self) {
        let pressure = self.shared.pressure();
        let pause = apply_pace::pause_of_commits(pressure);
        if !pause.is_zero() {
            self.wait_for_apply(pause);
        }
        if pressure.vbuckets > 0 {
            self.shared.wake(&self.shared.steady);
        }
        if pressure.is_critical() {
            self.shared.wake(&self.shared.hurried);
        }
    }

    /// Waits until a file was written, at most for `patience`.
    pub fn wait_for_apply(&self, patience: Duration) {
        let applies = self.shared.lock();
        let wait = self.shared.applied.wait_timeout(applies, patience);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Appliers {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        drop(self.shared.lock());
        self.shared.steady.bell.notify_all();
        self.shared.hurried.bell.notify_all();
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok(), "an applier has panicked");
        }
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, u64> {
        self.applies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pressure(&self) -> ApplyPressure {
        let backlog = self.store.backlog();
        let journal = self.store.journal_usage().unwrap_or_default();
        let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        ApplyPressure {
            vbuckets: backlog.vbuckets,
            journal_ratio: ratio(journal.used_bytes, journal.bytes_max - journal.reserve_bytes),
            is_journal_full: self.is_journal_full.load(Ordering::Relaxed),
            // A disk that fails ends the benchmark.
            is_gate_closed: false,
            pinned_ratio: ratio(backlog.bytes, self.quota_bytes),
            waited: backlog
                .oldest_since
                .map_or(Duration::ZERO, |since| self.clock.now().since(since)),
        }
    }

    fn next(&self, pressure: ApplyPressure, now: Instant) -> Option<document::Vbid> {
        self.store.next_unapplied(|unapplied: &Unapplied| {
            let waited = now.since(unapplied.since);
            apply_pace::is_due(&self.config, pressure, unapplied, waited)
        })
    }

    fn sleep(&self, sleepers: &Sleepers, duration: Duration) {
        let guard = self.lock();
        if self.is_over.load(Ordering::Relaxed) {
            return;
        }
        sleepers.count.fetch_add(1, Ordering::Relaxed);
        let wait = sleepers.bell.wait_timeout(guard, duration);
        drop(wait.unwrap_or_else(PoisonError::into_inner));
        sleepers.count.fetch_sub(1, Ordering::Relaxed);
    }

    fn wake(&self, sleepers: &Sleepers) {
        if sleepers.count.load(Ordering::Relaxed) > 0 {
            let _guard = self.lock();
            sleepers.bell.notify_all();
        }
    }
}

fn run(shared: &Shared, is_hurried: bool) {
    if !is_hurried {
        set_own_nice(NICE_LOWEST).expect("a lower priority is always granted");
    }
    let mut last_turn = shared.clock.now();
    while !shared.is_over.load(Ordering::Relaxed) {
        shared.store.prepare_journal().expect("there is room for a segment");
        shared.store.trim_backlog();
        let now = shared.clock.now();
        let pressure = shared.pressure();
        let pause = apply_pace::pause(&shared.config, pressure);
        let Some(pause) = pause.filter(|_| !is_hurried || pressure.is_critical()) else {
            let sleepers = if is_hurried { &shared.hurried } else { &shared.steady };
            shared.sleep(sleepers, LOOK_INTERVAL_MAX);
            continue;
        };
        let turn = last_turn.after(pause);
        if now < turn {
            // Nobody shortens a pause: the bell is for who has nothing to do.
            std::thread::sleep(turn.since(now).min(LOOK_INTERVAL_MAX));
            continue;
        }
        last_turn = if now.since(turn) > pause { now } else { turn };
        match shared.next(pressure, now) {
            None => std::thread::sleep(LOOK_INTERVAL_MAX),
            Some(vbid) => {
                let applied = shared.store.apply(vbid).expect("the disk works");
                allocator::release_after_work(applied.map_or(0, |applied| applied.bytes_written));
                *shared.lock() += 1;
                shared.applied.notify_all();
            }
        }
    }
}
