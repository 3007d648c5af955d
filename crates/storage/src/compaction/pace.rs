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

    /// Changes the limit for what is written from now on.
    pub fn set_bytes_per_second(&self, bytes_per_second: u64) {
        self.0.bytes_per_second.store(bytes_per_second, Ordering::Relaxed);
    }

    /// Takes the device for `bytes` that were written. How long it is taken from `now` on, by them
    /// and by what others have written.
    pub(super) fn take(&self, bytes: u64, now: Instant) -> Duration {
        let bytes_per_second = self.bytes_per_second();
        if bytes_per_second == 0 {
            return Duration::ZERO;
        }
        let seconds = bytes as f64 / bytes_per_second as f64;
        let cost = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let after = |taken_until| Instant(taken_until).max(now).after(cost).0;
        let (taken, order) = (&self.0.taken_until, Ordering::Relaxed);
        let before = taken.fetch_update(order, order, |taken_until| Some(after(taken_until)));
        Instant(after(before.unwrap_or_default())).since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_share_a_device_wait_for_each_other() {
        let millis = |count: u64| Instant(count * 1_000_000);
        let pace = CompactionPace::new(1000);
        let other = pace.clone();
        assert_eq!(pace.take(100, millis(0)), Duration::from_millis(100));
        assert_eq!(other.take(100, millis(0)), Duration::from_millis(200));
        assert_eq!(pace.take(0, millis(50)), Duration::from_millis(150));
        // Time that nobody used is nobody's.
        assert_eq!(pace.take(100, millis(10_000)), Duration::from_millis(100));
        other.set_bytes_per_second(0);
        assert_eq!(pace.take(u64::MAX, millis(10_000)), Duration::ZERO);
        // The end of time.
        other.set_bytes_per_second(1);
        assert!(pace.take(u64::MAX, millis(10_000)) > Duration::from_hours(1));
    }
}
