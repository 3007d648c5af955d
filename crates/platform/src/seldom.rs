//! Log lines of which there may be any number: one in a while is written.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Instant;

/// Lets one of many through in a while, and counts the others. Threads may share it.
#[derive(Debug)]
pub struct Seldom {
    interval: Duration,
    /// Nanoseconds of the monotonic clock.
    next_at: AtomicU64,
    left_out: AtomicU64,
}

impl Seldom {
    /// Lets one through in each `interval`.
    pub const fn every(interval: Duration) -> Self {
        Self { interval, next_at: AtomicU64::new(0), left_out: AtomicU64::new(0) }
    }

    /// Whether this one is let through: then how many were not since the last that was.
    pub fn passes(&self, now: Instant) -> Option<u64> {
        let next_at = self.next_at.load(Ordering::Relaxed);
        let after = now.after(self.interval).0;
        let is_due = now.0 >= next_at;
        let exchange =
            // Of threads that come at once only one gets through. Relaxed: the numbers order
            // nothing else.
            || self.next_at.compare_exchange(next_at, after, Ordering::Relaxed, Ordering::Relaxed);
        if is_due && exchange().is_ok() {
            return Some(self.left_out.swap(0, Ordering::Relaxed));
        }
        self.left_out.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_many_passes_and_says_how_many_did_not() {
        let seldom = Seldom::every(Duration::from_secs(10));
        let second = |seconds: u64| Instant(seconds * 1_000_000_000);
        assert_eq!(seldom.passes(second(5)), Some(0));
        for _ in 0..3 {
            assert_eq!(seldom.passes(second(14)), None);
        }
        assert_eq!(seldom.passes(second(15)), Some(3));
        assert_eq!(seldom.passes(second(30)), Some(0));
    }
}
