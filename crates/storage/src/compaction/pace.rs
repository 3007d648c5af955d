//! How fast compactions write, all of a store together.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use platform::Instant;

/// Bytes a second that compactions write together, at most. A handle: clones share one device.
#[derive(Clone, Debug, Default)]
pub struct CompactionPace(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// 0 for no limit.
    bytes_per_second: AtomicU64,
    /// The moment up to which the device is taken, in nanoseconds of [`Instant`].
    taken_until: AtomicU64,
    /// How often the limit was changed.
    change_count: AtomicU64,
}

/// The device is taken by what somebody has written, with what others had before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    until: Instant,
    /// The limit that says so, as a number of changes: by another one it would be another moment.
    change_count: u64,
}

impl CompactionPace {
    /// `bytes_per_second` is 0 for no limit, which is what the default has.
    pub fn new(bytes_per_second: u64) -> Self {
        let pace = Self::default();
        pace.set_bytes_per_second(bytes_per_second);
        pace
    }

    /// Bytes a second, at most; 0 for no limit.
    pub fn bytes_per_second(&self) -> u64 {
        self.0.bytes_per_second.load(Ordering::Relaxed)
    }

    /// Changes the limit for what is written from now on. Nobody waits any more for the old one:
    /// by a low one the device may be taken for days.
    pub fn set_bytes_per_second(&self, bytes_per_second: u64) {
        if self.0.bytes_per_second.swap(bytes_per_second, Ordering::Relaxed) != bytes_per_second {
            self.0.taken_until.store(0, Ordering::Relaxed);
            self.0.change_count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the device for `bytes` that were written. How long it is taken from `now` on, by them
    /// and by what others have written, is what is [left](Self::left) of the turn.
    pub(super) fn take(&self, bytes: u64, now: Instant) -> Turn {
        let change_count = self.0.change_count.load(Ordering::Relaxed);
        let bytes_per_second = self.bytes_per_second();
        if bytes_per_second == 0 {
            return Turn { until: now, change_count };
        }
        let seconds = bytes as f64 / bytes_per_second as f64;
        let cost = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let after = |taken_until| Instant(taken_until).max(now).after(cost).0;
        let (taken, order) = (&self.0.taken_until, Ordering::Relaxed);
        let before = taken.fetch_update(order, order, |taken_until| Some(after(taken_until)));
        Turn { until: Instant(after(before.unwrap_or_default())), change_count }
    }

    /// How long the device is taken by a turn; not at all once there is another limit.
    pub(super) fn left(&self, turn: Turn, now: Instant) -> Duration {
        let is_in_force = self.0.change_count.load(Ordering::Relaxed) == turn.change_count;
        if is_in_force { turn.until.since(now) } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(count: u64) -> Instant {
        Instant(count * 1_000_000)
    }

    fn take(pace: &CompactionPace, bytes: u64, now: Instant) -> Duration {
        pace.left(pace.take(bytes, now), now)
    }

    #[test]
    fn those_who_share_a_device_wait_for_each_other() {
        let pace = CompactionPace::new(1000);
        let other = pace.clone();
        assert_eq!(take(&pace, 100, millis(0)), Duration::from_millis(100));
        assert_eq!(take(&other, 100, millis(0)), Duration::from_millis(200));
        assert_eq!(take(&pace, 0, millis(50)), Duration::from_millis(150));
        // Time that nobody used is nobody's.
        assert_eq!(take(&pace, 100, millis(10_000)), Duration::from_millis(100));
        other.set_bytes_per_second(0);
        assert_eq!(take(&pace, u64::MAX, millis(10_000)), Duration::ZERO);
        // The end of time.
        other.set_bytes_per_second(1);
        assert!(take(&pace, u64::MAX, millis(10_000)) > Duration::from_hours(1));
    }

    #[test]
    fn nobody_waits_for_a_limit_that_is_not_in_force_any_more() {
        for next in [0, 1 << 20] {
            let pace = CompactionPace::new(1);
            let turn = pace.take(1 << 18, millis(0));
            pace.set_bytes_per_second(1);
            assert!(pace.left(turn, millis(0)) > Duration::from_hours(72), "it is the same one");
            pace.set_bytes_per_second(next);
            assert_eq!(pace.left(turn, millis(0)), Duration::ZERO);
            assert!(take(&pace, 1 << 18, millis(0)) < Duration::from_secs(1));
        }
    }
}
