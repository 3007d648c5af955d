//! Time: a monotonic clock for durations, a wall clock for expiry and CAS.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

mod coarse;
mod lap;

pub use coarse::CEILING_ERROR_MAX;
pub use lap::Lap;

/// A point of monotonic time, in nanoseconds since an arbitrary origin of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(pub u64);

impl Instant {
    /// Time from `earlier` to `self`; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// `self` moved on by `duration`, at most to the end of time.
    pub fn after(self, duration: Duration) -> Self {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// A point of wall-clock time, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WallTime(pub u64);

impl WallTime {
    /// Whole seconds since the Unix epoch, as expiry times count them.
    pub fn seconds(self) -> u32 {
        u32::try_from(self.0 / 1_000_000_000).unwrap_or(u32::MAX)
    }
}

/// Where time comes from. A handle: clones tell the same time.
#[derive(Clone, Debug, Default)]
pub struct Clock(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    Real,
    Simulated(Arc<SimulatedTime>),
}

#[derive(Debug)]
struct SimulatedTime {
    /// Nanoseconds since the simulation began.
    elapsed: AtomicU64,
    /// Wall time at which the simulation began, nanoseconds since the epoch.
    wall_start: u64,
}

impl Clock {
    /// The clock of the machine.
    pub fn real() -> Self {
        Self(Source::Real)
    }

    /// A clock that stands still until [`Clock::advance`] moves it. `wall_start` is its first wall
    /// time.
    pub fn simulated(wall_start: WallTime) -> Self {
        let time = SimulatedTime { elapsed: AtomicU64::new(0), wall_start: wall_start.0 };
        Self(Source::Simulated(Arc::new(time)))
    }

    /// Monotonic time.
    pub fn now(&self) -> Instant {
        match &self.0 {
            Source::Real => Instant(monotonic_ns()),
            Source::Simulated(time) => Instant(time.elapsed.load(Ordering::Acquire)),
        }
    }

    /// Monotonic time, rounded up: not earlier than [`Clock::now`] and at most
    /// [`CEILING_ERROR_MAX`] later, for whoever asks too often to pay for the exact time. A
    /// deadline that is reckoned from it is never too early.
    #[inline]
    pub fn ceiling(&self) -> Instant {
        match &self.0 {
            Source::Real => Instant(coarse::ceiling()),
            Source::Simulated(_) => self.now(),
        }
    }

    /// Wall-clock time.
    pub fn wall_time(&self) -> WallTime {
        match &self.0 {
            Source::Real => WallTime(read(rustix::time::ClockId::Realtime)),
            Source::Simulated(time) => {
                WallTime(time.wall_start + time.elapsed.load(Ordering::Acquire))
            }
        }
    }

    /// Moves a simulated clock on by `duration`. Panics on the real clock: nobody may set that.
    pub fn advance(&self, duration: Duration) {
        match &self.0 {
            Source::Real => panic!("only a simulated clock can be advanced"),
            Source::Simulated(time) => {
                let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
                time.elapsed.fetch_add(nanos, Ordering::AcqRel);
            }
        }
    }
}

fn monotonic_ns() -> u64 {
    read(rustix::time::ClockId::Monotonic)
}

fn read(clock: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    seconds * 1_000_000_000 + nanos
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_simulated_clock_moves_only_when_told() {
        let clock = Clock::simulated(WallTime(5_000_000_000));
        assert_eq!(clock.now(), Instant(0));
        clock.advance(Duration::from_secs(2));
        assert_eq!(clock.now(), Instant(2_000_000_000));
        assert_eq!(clock.wall_time().seconds(), 7);
    }

    #[test]
    fn the_real_clock_never_goes_back() {
        let clock = Clock::real();
        let first = clock.now();
        assert!(clock.now() >= first);
        assert!(clock.wall_time().seconds() > 1_700_000_000);
    }
}
