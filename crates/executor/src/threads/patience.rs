//! How long a thread looks for work before it sleeps.
//!
//! Waking a thread costs what depends on the machine: a few microseconds on bare metal, 20 to 50
//! where an idle virtual CPU is halted and an interrupt must go through the hypervisor. A thread
//! that gives up earlier than its partner takes to wake up meets it asleep every time ("both
//! park"); one that looks for twice as long as a wake-up takes is never much worse than the better
//! choice.

use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(feature = "model"))]
use std::time::Duration;

#[cfg(not(feature = "model"))]
use platform::threads::own_cpu_time_ns;
#[cfg(not(feature = "model"))]
use platform::{Clock, Instant};

use crate::sync::thread;

/// How long waking a thread takes until it has been measured, nanoseconds.
const WAKE_COST_DEFAULT_NS: u64 = 25_000;
/// A measurement below it has met a thread that had not gone to sleep, or not left its CPU.
#[cfg(not(feature = "model"))]
const WAKE_COST_MIN_NS: u64 = 10_000;
#[cfg(not(feature = "model"))]
const WAKE_COST_MAX_NS: u64 = 35_000;
/// Looks that a search takes, however long they last: when other threads want the CPU, most of the
/// time between two looks is theirs, and counts for nothing.
const LOOKS_MIN: u32 = 48;
/// CPU time of a search after which it ends in any case, nanoseconds. Up to three glances are not
/// counted: with them that is less than 100 us where a glance takes less than 10.
#[cfg(not(feature = "model"))]
const BURNT_MAX_NS: u64 = 70_000;
/// Looks without letting other threads run, about ten nanoseconds each: a partner on another CPU
/// answers within that time, and is met without a system call.
#[cfg(not(feature = "model"))]
const PAUSES: u32 = 128;
/// Looks between two looks at the clock.
#[cfg(not(feature = "model"))]
const LOOKS_PER_CLOCK: u32 = 4;

static WAKE_COST_NS: AtomicU64 = AtomicU64::new(WAKE_COST_DEFAULT_NS);

/// How long waking a thread takes on this machine, nanoseconds.
pub(crate) fn wake_cost_ns() -> u64 {
    WAKE_COST_NS.load(Ordering::Relaxed)
}

/// How long a search lasts when nobody else wants the CPU, nanoseconds: at most 70 us.
#[cfg(not(feature = "model"))]
pub(crate) fn search_ns() -> u64 {
    2 * wake_cost_ns()
}

/// Any: whether a thread searches or sleeps at once is part of what a model explores.
#[cfg(feature = "model")]
pub(crate) fn search_ns() -> u64 {
    use shuttle::rand::Rng as _;
    if shuttle::rand::thread_rng().gen_bool(0.7) { u64::MAX } else { 0 }
}

/// One search.
#[derive(Debug)]
pub(crate) struct Patience {
    is_over: bool,
    looks_left: u32,
    /// The time, and the thread's CPU time, are counted from the first look at the clock on, which
    /// comes soon.
    #[cfg(not(feature = "model"))]
    since: Option<(Instant, u64)>,
}

impl Patience {
    pub(crate) fn new() -> Self {
        Self {
            is_over: false,
            // A model has no time, and explores each look.
            looks_left: if cfg!(feature = "model") { 2 } else { LOOKS_MIN },
            #[cfg(not(feature = "model"))]
            since: None,
        }
    }

    /// Whether the time is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Looks at `is_found`, letting other threads run in between, until it is so or the time is
    /// over.
    pub(crate) fn look(&mut self, is_found: impl Fn() -> bool) {
        while !self.is_over && !glance(&is_found) {
            self.note_time();
        }
    }

    #[cfg(not(feature = "model"))]
    fn note_time(&mut self) {
        self.looks_left = self.looks_left.saturating_sub(LOOKS_PER_CLOCK);
        let now = Clock::real().now();
        let (since, cpu_since_ns) = *self.since.get_or_insert_with(|| (now, own_cpu_time_ns()));
        let has_lasted = |limit_ns| now.since(since) >= Duration::from_nanos(limit_ns);
        // CPU time is asked for only where it may be too much.
        let is_burnt =
            || has_lasted(BURNT_MAX_NS) && own_cpu_time_ns() - cpu_since_ns >= BURNT_MAX_NS;
        self.is_over = has_lasted(search_ns()) && (self.looks_left == 0 || is_burnt());
    }

    #[cfg(feature = "model")]
    fn note_time(&mut self) {
        self.looks_left -= 1;
        self.is_over = self.looks_left == 0;
    }
}

/// Looks at `is_found` a few times, which takes a microsecond or two. Whether it is so.
#[cfg(not(feature = "model"))]
pub(crate) fn glance(is_found: impl Fn() -> bool) -> bool {
    for _ in 0..PAUSES {
        if is_found() {
            return true;
        }
        std::hint::spin_loop();
    }
    (0..LOOKS_PER_CLOCK).any(|_| {
        thread::yield_now();
        is_found()
    })
}

/// Looks at `is_found` and lets others run.
#[cfg(feature = "model")]
pub(crate) fn glance(is_found: impl Fn() -> bool) -> bool {
    let is_found = is_found();
    if !is_found {
        thread::yield_now();
    }
    is_found
}

/// Measures, once a process, how long waking a thread takes: the upper quartile of some round trips
/// of two threads that park, halved. Takes about a millisecond.
#[cfg(not(feature = "model"))]
pub(crate) fn measure_wake_cost() {
    use std::sync::atomic::AtomicU32;
    use std::sync::{Arc, Once};

    const ROUND_TRIPS: u32 = 15;
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let clock = Clock::real();
        let here = thread::current();
        let turn = Arc::new(AtomicU32::new(0));
        let wait_for = |turn: &AtomicU32, number| {
            while turn.load(Ordering::Acquire) < number {
                thread::park();
            }
        };
        let shared = turn.clone();
        let echo = platform::threads::spawn("WakeCost", move || {
            for round in 0..ROUND_TRIPS {
                wait_for(&shared, 2 * round + 1);
                shared.store(2 * round + 2, Ordering::Release);
                here.unpark();
            }
        });
        let Ok(echo) = echo else { return };
        let mut times: Vec<u64> = (0..ROUND_TRIPS)
            .map(|round| {
                let began = clock.now();
                turn.store(2 * round + 1, Ordering::Release);
                echo.thread().unpark();
                wait_for(&turn, 2 * round + 2);
                clock.now().0 - began.0
            })
            .collect();
        times.sort_unstable();
        // Most trips are that long; an interrupted one is not the rule.
        let trip_ns = times[times.len() * 3 / 4];
        let cost_ns = (trip_ns / 2).clamp(WAKE_COST_MIN_NS, WAKE_COST_MAX_NS);
        WAKE_COST_NS.store(cost_ns, Ordering::Relaxed);
        assert!(echo.join().is_ok(), "the echo does not panic");
    });
}

/// A model has no machine to measure.
#[cfg(feature = "model")]
pub(crate) fn measure_wake_cost() {}
