//! How fast counters rise.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use platform::Instant;

use crate::metrics;

/// Two samples of a rate are at least this far apart.
const RATE_INTERVAL: Duration = Duration::from_secs(1);

/// How fast a counter rises.
#[derive(Default)]
pub(crate) struct Rate(Mutex<RateSample>);

#[derive(Default)]
struct RateSample {
    taken: Instant,
    count: u64,
    per_second: f64,
}

impl Rate {
    /// The rate between this sample and an earlier one.
    pub(crate) fn sample(&self, counted: u64, now: Instant) -> f64 {
        let mut sample = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = now.since(sample.taken);
        if elapsed >= RATE_INTERVAL {
            let step = counted.saturating_sub(sample.count);
            let is_first = sample.taken == Instant::default();
            let per_second =
                if is_first { 0.0 } else { metrics::float(step) / elapsed.as_secs_f64() };
            *sample = RateSample { taken: now, count: counted, per_second };
        }
        sample.per_second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_happened_between_two_samples() {
        let rate = Rate::default();
        let second = |seconds: u64| Instant(seconds * 1_000_000_000);
        assert_eq!(rate.sample(100, second(5)), 0.0, "nothing to compare with yet");
        assert_eq!(rate.sample(150, second(5)), 0.0);
        assert_eq!(rate.sample(300, second(7)), 100.0);
        assert_eq!(rate.sample(999, second(7)), 100.0, "too soon for another");
    }
}
