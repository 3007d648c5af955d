//! A task as both designs of the original have it: numbered, counted references, a wake time.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use executor::TaskKind;
use platform::{Clock, Instant};

/// The wake time of a task that sleeps until it is woken.
pub(super) const NEVER: Instant = Instant(u64::MAX);

/// Priority of the tasks that the benchmarks schedule (item pager, durability timeout).
pub(super) const PRIORITY: u8 = 1;

/// Returns whether the task stays.
type Body = Box<dyn FnMut(&OriginalTask) -> bool + Send>;

/// One task. Pools find it by its number.
pub(super) struct OriginalTask {
    pub(super) id: u64,
    pub(super) kind: TaskKind,
    pub(super) priority: u8,
    is_dead: AtomicBool,
    /// Nanoseconds of [`Instant`]; [`NEVER`] sleeps until it is woken.
    wake_time: AtomicU64,
    /// What the original counts for each task.
    run_count: AtomicU64,
    run_nanos: AtomicU64,
    queue_nanos: AtomicU64,
    body: Mutex<Body>,
}

impl OriginalTask {
    pub(super) fn new(
        id: u64,
        kind: TaskKind,
        wake_time: Instant,
        body: impl FnMut(&Self) -> bool + Send + 'static,
    ) -> Self {
        Self {
            id,
            kind,
            priority: PRIORITY,
            is_dead: AtomicBool::new(false),
            wake_time: AtomicU64::new(wake_time.0),
            run_count: AtomicU64::new(0),
            run_nanos: AtomicU64::new(0),
            queue_nanos: AtomicU64::new(0),
            body: Mutex::new(Box::new(body)),
        }
    }

    /// Runs the task, unless it is dead, and says whether it stays.
    pub(super) fn execute(&self, clock: &Clock) -> bool {
        if self.is_dead() {
            return false;
        }
        let started = clock.now();
        count(&self.queue_nanos, started.since(self.wake_time()));
        let stays = self.body.lock().unwrap_or_else(PoisonError::into_inner)(self);
        count(&self.run_nanos, clock.now().since(started));
        self.run_count.fetch_add(1, Ordering::Relaxed);
        stays && !self.is_dead()
    }

    pub(super) fn wake_time(&self) -> Instant {
        Instant(self.wake_time.load(Ordering::Acquire))
    }

    pub(super) fn set_wake_time(&self, at: Instant) {
        self.wake_time.store(at.0, Ordering::Release);
    }

    /// A task that did not say when it wants to run again wants to now.
    pub(super) fn wake_not_before(&self, now: Instant) {
        self.wake_time.fetch_max(now.0, Ordering::AcqRel);
    }

    pub(super) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Acquire)
    }

    pub(super) fn kill(&self) {
        self.is_dead.store(true, Ordering::Release);
    }
}

fn count(total: &AtomicU64, duration: Duration) {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    total.fetch_add(nanos, Ordering::Relaxed);
}

impl fmt::Debug for OriginalTask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OriginalTask")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .field("wake_time", &self.wake_time())
            .finish_non_exhaustive()
    }
}
