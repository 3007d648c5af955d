//! So many operations a second, evenly.

use std::time::Duration;

use platform::Instant;

/// Time that may be made up for after a pause.
const BURST: Duration = Duration::from_millis(10);

/// Lets operations pass at a rate. One for each worker, with its share of the whole rate.
#[derive(Clone, Debug)]
pub(super) struct RateLimiter {
    nanos_per_operation: f64,
    /// When the next operation may start.
    free_at: Instant,
}

impl RateLimiter {
    pub(super) fn new(operations_per_second: f64, now: Instant) -> Self {
        Self { nanos_per_operation: 1e9 / operations_per_second, free_at: now }
    }

    /// When operations may start again.
    pub(super) fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Lets `count` operations start now, or says when to ask again.
    pub(super) fn take(&mut self, count: u64, now: Instant) -> Result<(), Instant> {
        if now < self.free_at {
            return Err(self.free_at);
        }
        let burst_start = Instant(now.0.saturating_sub(BURST.as_nanos() as u64));
        let cost = (self.nanos_per_operation * count as f64) as u64;
        self.free_at = self.free_at.max(burst_start).after(Duration::from_nanos(cost));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use platform::{Clock, WallTime};

    use super::*;

    /// Asks again when told to; returns the operations of some simulated seconds.
    fn operations_in(seconds: u64, limiter: &mut RateLimiter, clock: &Clock, batch: u64) -> u64 {
        let end = clock.now().after(Duration::from_secs(seconds));
        let mut passed = 0;
        while clock.now() < end {
            match limiter.take(batch, clock.now()) {
                Ok(()) => passed += batch,
                Err(due) => clock.advance(due.since(clock.now())),
            }
        }
        passed
    }

    #[test]
    fn the_rate_is_kept_whatever_the_batch() {
        for (rate, batch) in [(1_000, 1), (1_000, 10), (50_000, 100), (3, 1), (10, 100)] {
            let clock = Clock::simulated(WallTime(0));
            let mut limiter = RateLimiter::new(rate as f64, clock.now());
            let total = operations_in(20, &mut limiter, &clock, batch);
            let expected = rate * 20;
            let slack = batch + rate / 50;
            assert!(total.abs_diff(expected) <= slack, "{total} instead of {expected}");
        }
    }

    #[test]
    fn a_pause_is_not_made_up_for() {
        let clock = Clock::simulated(WallTime(0));
        let mut limiter = RateLimiter::new(1_000.0, clock.now());
        clock.advance(Duration::from_secs(3_600));
        let passed = operations_in(1, &mut limiter, &clock, 1);
        assert!((1_000..=1_011).contains(&passed), "{passed}");
    }
}
