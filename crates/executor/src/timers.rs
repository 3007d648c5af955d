//! Deadlines of sleeping tasks: shards of timers, and the thread that waits for the next one.

pub(crate) mod deadline;
pub(crate) mod shard;
mod wheel;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use platform::{Clock, Instant};

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{CacheAligned, thread};
use crate::timers::deadline::{NEVER, Timed};
use crate::timers::shard::TimerShard;

/// The resolution of deadlines in a pool with threads, 10 ms. A task is woken at the first multiple
/// of it at which its time has passed: never early, and late by less than a tick, the error of
/// [`Clock::ceiling`] and the time that the timer thread needs to wake up.
const TICK_NS: u64 = 10_000_000;
/// Deadlines looked at while a shard's lock is held.
const EXPIRE_COUNT_MAX: usize = 256;
/// How long a task may stand in a queue whose workers believed that waking another one would not
/// pay, nanoseconds.
const WATCH_INTERVAL_NS: u64 = 1_000_000;

/// Who is woken when the deadline has passed.
pub(crate) trait Sleeper: Timed {
    /// Unlike that of any other.
    fn number(&self) -> u64;
    /// The deadline has passed.
    fn on_deadline(self: Arc<Self>);
}

/// The deadlines of one pool.
#[derive(Debug)]
pub(crate) struct Timers<T: ?Sized> {
    resolution: Resolution,
    /// A power of two. A task belongs to the shard of its number.
    shards: Box<[CacheAligned<TimerShard<T>>]>,
    /// Until when the timer thread sleeps, in nanoseconds of [`Instant`]; 0 while it is awake.
    sleeping_until: CacheAligned<AtomicU64>,
    /// When the timer thread is to look at the run queues; [`NEVER`] when it need not.
    watch_at: AtomicU64,
    thread: OnceLock<thread::Thread>,
    is_stopping: AtomicBool,
    /// How often the timer thread has returned from waiting.
    wakeups: AtomicU64,
}

/// The length of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// [`TICK_NS`].
    TenMilliseconds,
    /// One nanosecond, for simulated time.
    Exact,
}

impl Resolution {
    fn tick_not_before(self, time: Instant) -> u64 {
        let tick = match self {
            Self::TenMilliseconds => time.0.div_ceil(TICK_NS),
            Self::Exact => time.0,
        };
        tick.min(NEVER - 1)
    }

    fn tick_at(self, time: Instant) -> u64 {
        match self {
            Self::TenMilliseconds => time.0 / TICK_NS,
            Self::Exact => time.0,
        }
    }

    fn time_of(self, tick: u64) -> u64 {
        match self {
            Self::TenMilliseconds => tick.saturating_mul(TICK_NS),
            Self::Exact => tick,
        }
    }
}

/// What [`Timers::arm`] does with a deadline that the task has already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// It is replaced.
    Replaced,
    /// It stays if it is the earlier one.
    Kept,
}

impl<T: Sleeper + ?Sized> Timers<T> {
    /// `shard_count` is a power of two.
    pub(crate) fn new(resolution: Resolution, shard_count: usize) -> Self {
        assert!(shard_count.is_power_of_two(), "a shard is found with a mask");
        let shards = std::iter::repeat_with(|| CacheAligned(TimerShard::new()));
        Self {
            resolution,
            shards: shards.take(shard_count).collect(),
            sleeping_until: CacheAligned(AtomicU64::new(0)),
            watch_at: AtomicU64::new(NEVER),
            thread: OnceLock::new(),
            is_stopping: AtomicBool::new(false),
            wakeups: AtomicU64::new(0),
        }
    }

    /// Wakes `task` when `duration` from now has passed.
    #[inline]
    pub(crate) fn arm(&self, task: &Arc<T>, clock: &Clock, duration: Duration, earlier: Earlier) {
        let now = clock.ceiling();
        let tick = self.resolution.tick_not_before(now.after(duration));
        let is_early = match earlier {
            Earlier::Replaced => task.deadline().set(tick),
            Earlier::Kept => task.deadline().set_if_earlier(tick),
        };
        if is_early {
            self.look_earlier(task, now);
        }
    }

    /// Sees to it that the deadline of `task` is looked at in time.
    #[cold]
    fn look_earlier(&self, task: &Arc<T>, now: Instant) {
        let shard = self.shard_of(task);
        shard.arm(task, self.resolution.tick_at(now));
        self.call_before(self.resolution.time_of(shard.next_tick()));
    }

    /// Forgets `task`, which ends.
    pub(crate) fn remove(&self, task: &T) {
        self.shard_of(task).remove(task);
    }

    /// Asks the timer thread to look soon whether a task waits behind one that turned out long.
    pub(crate) fn watch(&self, now: Instant) {
        if self.watch_at.load(Ordering::Relaxed) == NEVER {
            let watch_at = now.0 + WATCH_INTERVAL_NS;
            self.watch_at.store(watch_at, Ordering::SeqCst);
            self.call_before(watch_at);
        }
    }

    /// When `task` is due, if it is.
    pub(crate) fn due_time(&self, task: &T) -> Option<Instant> {
        let due = task.deadline().due();
        (due != NEVER).then(|| Instant(self.resolution.time_of(due)))
    }

    /// The first time at which [`Timers::expire`] has something to do.
    pub(crate) fn next_time(&self) -> Option<Instant> {
        let next = self.shards.iter().map(|shard| shard.next_tick()).min();
        next.filter(|&tick| tick != NEVER).map(|tick| Instant(self.resolution.time_of(tick)))
    }

    /// Wakes the tasks whose deadline is not later than `now`.
    pub(crate) fn expire(&self, now: Instant) {
        let tick = self.resolution.tick_at(now);
        let mut expired = Vec::new();
        for shard in self.shards.iter().filter(|shard| shard.next_tick() <= tick) {
            let mut is_done = false;
            while !is_done {
                is_done = shard.expire(tick, EXPIRE_COUNT_MAX, &mut expired);
                expired.drain(..).for_each(|task| task.on_deadline());
            }
        }
    }

    /// The timer thread: wakes tasks at their deadlines until [`Timers::stop`]. `relieve` sees to
    /// the tasks that have waited in a run queue since before a time, and answers whether younger
    /// ones wait.
    pub(crate) fn run(&self, clock: &Clock, relieve: impl Fn(Instant) -> bool) {
        self.thread.set(thread::current()).expect("a pool has one timer thread");
        while !self.is_stopping.load(Ordering::SeqCst) {
            let now = clock.now();
            self.expire(now);
            if self.watch_at.load(Ordering::SeqCst) <= now.0 {
                self.watch_at.store(NEVER, Ordering::SeqCst);
                if relieve(Instant(now.0.saturating_sub(WATCH_INTERVAL_NS))) {
                    self.watch(now);
                }
            }
            self.sleep(clock);
        }
    }

    /// Sleeps until there is something to do. Who finds something more urgent to do afterwards
    /// sees `sleeping_until`; what came before is seen here.
    fn sleep(&self, clock: &Clock) {
        let until = self.next_wakeup();
        self.sleeping_until.store(until, Ordering::SeqCst);
        if self.next_wakeup() >= until && !self.is_stopping.load(Ordering::SeqCst) {
            let now = clock.now().0;
            if until == NEVER {
                thread::park();
            } else if until > now {
                thread::park_timeout(Duration::from_nanos(until - now));
            }
            self.wakeups.fetch_add(1, Ordering::Relaxed);
        }
        self.sleeping_until.store(0, Ordering::SeqCst);
    }

    fn next_wakeup(&self) -> u64 {
        let deadline = self.next_time().map_or(NEVER, |time| time.0);
        deadline.min(self.watch_at.load(Ordering::SeqCst))
    }

    /// Wakes the timer thread unless it wakes before `time` anyway.
    fn call_before(&self, time: u64) {
        if time < self.sleeping_until.load(Ordering::SeqCst) {
            self.call();
        }
    }

    fn call(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Ends the timer thread.
    pub(crate) fn stop(&self) {
        self.is_stopping.store(true, Ordering::SeqCst);
        self.call();
    }

    /// In a model nobody else ends the sleep of the timer thread when its time has come.
    #[cfg(all(test, feature = "model"))]
    pub(crate) fn end_sleep_at(&self, now: Instant) {
        let until = self.sleeping_until.load(Ordering::SeqCst);
        if until != 0 && until <= now.0 {
            self.call();
        }
    }

    /// How many tasks the timer thread has in view, those included whose deadline was cleared
    /// after they were armed.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.len()).sum()
    }

    /// How often the timer thread has returned from waiting.
    pub(crate) fn wakeups(&self) -> u64 {
        self.wakeups.load(Ordering::Relaxed)
    }

    fn shard_of(&self, task: &T) -> &TimerShard<T> {
        &self.shards[task.number() as usize & (self.shards.len() - 1)]
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_rounded_up_and_never_down() {
        let resolution = Resolution::TenMilliseconds;
        for (time, tick) in [(0, 0), (1, 1), (TICK_NS, 1), (TICK_NS + 1, 2), (u64::MAX, 0)] {
            let rounded = resolution.tick_not_before(Instant(time));
            assert!(resolution.time_of(rounded) >= time);
            assert!(tick == 0 || rounded == tick);
        }
        assert!(Resolution::Exact.tick_not_before(Instant(u64::MAX)) < NEVER);
    }
}
