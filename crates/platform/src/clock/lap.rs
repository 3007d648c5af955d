//! Time behind a reading of the clock, by the counter of the CPU.
//!
//! The exact clock costs 17 to 27 ns, the counter that it reads 8. Whoever tells after each of
//! many short steps how long it took reads the clock once, and the counter after each step.
//!
//! The counter is taken where the kernel itself keeps time by it: there it goes at the same rate
//! all the time, and is the same on all CPUs. Elsewhere the clock is read each time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Clock, Instant, Source, monotonic_ns};

/// The rate is measured over at least this long.
const MEASURED_NS_MIN: u64 = 20_000_000;
/// Clock and counter are read together if the counter goes on by less than this meanwhile: then the
/// thread has not been held up in between. At 5 GHz 400 ns, of [`MEASURED_NS_MIN`] 20 millionths.
const READ_TICKS_MAX: u64 = 2_000;

/// A reading of the clock, from which time is told that passes behind it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lap {
    start: Instant,
    ticks: u64,
}

impl Lap {
    /// When the clock was read.
    pub fn start(&self) -> Instant {
        self.start
    }
}

impl Clock {
    /// Reads the clock, and begins to tell the time from there.
    pub fn lap(&self) -> Lap {
        let before = ticks();
        let start = self.now();
        // A thread that was held up in between has the clock read each time.
        let together =
            |after: &u64| before.is_some_and(|before| after.wrapping_sub(before) <= READ_TICKS_MAX);
        let ticks = ticks().filter(together).unwrap_or_default();
        if matches!(self.0, Source::Real) && RATE.load(Ordering::Relaxed) == UNKNOWN {
            measure_rate();
        }
        Lap { start, ticks }
    }

    /// Monotonic time, by up to a microsecond earlier than [`Clock::now`] tells it, which reading
    /// clock and counter one after the other takes, and by some 100 ns earlier or later for each
    /// 5 ms since the lap began, by which the rate is measured wrongly.
    #[inline]
    pub fn now_in(&self, lap: &Lap) -> Instant {
        let rate = RATE.load(Ordering::Relaxed);
        match (&self.0, ticks()) {
            // One that nobody has begun tells nothing.
            (Source::Real, Some(ticks)) if rate > UNUSABLE && lap.ticks > 0 => {
                Instant(lap.start.0 + nanoseconds(ticks.saturating_sub(lap.ticks), rate))
            }
            _ => self.now(),
        }
    }
}

/// Nobody has measured the rate yet.
const UNKNOWN: u64 = 0;
/// The counter is not what the kernel keeps time by. No counter is as fast as this means.
const UNUSABLE: u64 = 1;
/// Nanoseconds a tick, in parts of 2^32.
static RATE: AtomicU64 = AtomicU64::new(UNKNOWN);

fn nanoseconds(ticks: u64, rate: u64) -> u64 {
    u64::try_from((u128::from(ticks) * u128::from(rate)) >> 32).unwrap_or(u64::MAX)
}

/// Measures the rate if it has been long enough since the first call.
#[cold]
fn measure_rate() {
    static FIRST: OnceLock<(u64, u64)> = OnceLock::new();
    if !keeps_time() {
        RATE.store(UNUSABLE, Ordering::Relaxed);
        return;
    }
    let Some((now, ticks)) = read_together() else { return };
    let (first, first_ticks) = *FIRST.get_or_init(|| (now, ticks));
    let (passed, passed_ticks) = (now.saturating_sub(first), ticks.saturating_sub(first_ticks));
    if passed >= MEASURED_NS_MIN && passed_ticks > 0 {
        let rate = (u128::from(passed) << 32) / u128::from(passed_ticks);
        RATE.store(u64::try_from(rate).unwrap_or(UNUSABLE), Ordering::Relaxed);
    }
}

/// Clock and counter of one moment; `None` if the thread was held up in between.
fn read_together() -> Option<(u64, u64)> {
    let before = ticks()?;
    let now = monotonic_ns();
    let passed = ticks()?.checked_sub(before)?;
    (passed <= READ_TICKS_MAX).then_some((now, before + passed / 2))
}

/// Whether the kernel keeps time by the counter.
fn keeps_time() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    *ANSWER.get_or_init(|| {
        let source = std::fs::read_to_string(SOURCE);
        ticks().is_some() && source.is_ok_and(|source| source.trim_end() == "tsc")
    })
}

/// The counter.
#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> Option<u64> {
    // SAFETY: every processor of this architecture has the instruction, and Linux lets programs
    // use it; it reads a register and nothing else.
    Some(unsafe { std::arch::x86_64::_rdtsc() })
}

/// The counter.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn ticks() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WallTime;

    #[test]
    fn the_time_in_a_lap_is_that_of_the_clock() {
        let clock = Clock::real();
        // By the clock until the rate is known, and by the counter then.
        let end = monotonic_ns() + 3 * MEASURED_NS_MIN;
        while monotonic_ns() < end {
            let lap = clock.lap();
            let (before, told, after) = (clock.now(), clock.now_in(&lap), clock.now());
            let slack = 2_000 + (after.0 - lap.start().0) / 1_000;
            assert!(lap.start() <= told, "{lap:?}: {told:?}");
            assert!(before.0 <= told.0 + slack && told.0 <= after.0 + slack, "{lap:?}: {told:?}");
        }
        assert!(!keeps_time() || RATE.load(Ordering::Relaxed) > UNUSABLE);
    }

    #[test]
    fn simulated_time_stands_in_a_lap_until_it_is_moved_on() {
        let clock = Clock::simulated(WallTime(0));
        let lap = clock.lap();
        assert_eq!((lap.start(), clock.now_in(&lap)), (Instant(0), Instant(0)));
        clock.advance(std::time::Duration::from_nanos(5));
        assert_eq!(clock.now_in(&lap), Instant(5));
    }

    #[test]
    fn ticks_are_nanoseconds_by_their_rate() {
        let two_a_nanosecond = 1 << 31;
        for (ticks, nanoseconds_of_it) in [(0, 0), (7, 3), (8_000_000_000, 4_000_000_000)] {
            assert_eq!(nanoseconds(ticks, two_a_nanosecond), nanoseconds_of_it, "{ticks}");
        }
    }
}
