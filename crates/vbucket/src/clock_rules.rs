//! What a bucket makes of the clocks of others. Source: docs/specification/engine.md, section 6.3.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use document::Cas;
use platform::WallTime;

/// What becomes of a version that a client brings from elsewhere when its CAS lies further in the
/// future than any clock should (`hlc_invalid_strategy`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FutureCas {
    /// It is taken like any other.
    #[default]
    Ignore,
    /// It is refused.
    Refuse,
    /// It gets a CAS of this clock.
    Replace,
}

const IGNORE: u8 = 0;
const REFUSE: u8 = 1;
const REPLACE: u8 = 2;

/// The rules. A handle: one bucket, one set of them, which may change at any time.
#[derive(Clone, Debug, Default)]
pub struct ClockRules(Arc<Values>);

#[derive(Debug)]
struct Values {
    drift_ahead_max_us: AtomicU64,
    drift_behind_max_us: AtomicU64,
    future_max_us: AtomicU64,
    future_cas: AtomicU8,
}

impl Default for Values {
    fn default() -> Self {
        Self {
            drift_ahead_max_us: AtomicU64::new(5_000_000),
            drift_behind_max_us: AtomicU64::new(5_000_000),
            future_max_us: AtomicU64::new(3_900_000_000),
            future_cas: AtomicU8::new(IGNORE),
        }
    }
}

impl ClockRules {
    /// Microseconds from which on a version counts as too far ahead
    /// (`hlc_drift_ahead_threshold_us`).
    pub fn drift_ahead_max_us(&self) -> u64 {
        self.0.drift_ahead_max_us.load(Ordering::Relaxed)
    }

    /// Sets that.
    pub fn set_drift_ahead_max_us(&self, us: u64) {
        self.0.drift_ahead_max_us.store(us, Ordering::Relaxed);
    }

    /// Microseconds from which on a version counts as too far behind
    /// (`hlc_drift_behind_threshold_us`).
    pub fn drift_behind_max_us(&self) -> u64 {
        self.0.drift_behind_max_us.load(Ordering::Relaxed)
    }

    /// Sets that.
    pub fn set_drift_behind_max_us(&self, us: u64) {
        self.0.drift_behind_max_us.store(us, Ordering::Relaxed);
    }

    /// Microseconds that a CAS may be ahead of the wall clock (`hlc_max_future_threshold_us`).
    pub fn future_max_us(&self) -> u64 {
        self.0.future_max_us.load(Ordering::Relaxed)
    }

    /// Sets that.
    pub fn set_future_max_us(&self, us: u64) {
        self.0.future_max_us.store(us, Ordering::Relaxed);
    }

    /// What becomes of a version that is further ahead.
    pub fn future_cas(&self) -> FutureCas {
        match self.0.future_cas.load(Ordering::Relaxed) {
            REFUSE => FutureCas::Refuse,
            REPLACE => FutureCas::Replace,
            _ => FutureCas::Ignore,
        }
    }

    /// Sets that.
    pub fn set_future_cas(&self, future_cas: FutureCas) {
        let number = match future_cas {
            FutureCas::Ignore => IGNORE,
            FutureCas::Refuse => REFUSE,
            FutureCas::Replace => REPLACE,
        };
        self.0.future_cas.store(number, Ordering::Relaxed);
    }

    /// What becomes of a version with this CAS: what lies not too far ahead is taken.
    pub(crate) fn judge(&self, cas: Cas, wall: WallTime) -> FutureCas {
        let latest = wall.0.saturating_add(self.future_max_us().saturating_mul(1000));
        if cas.0 < latest { FutureCas::Ignore } else { self.future_cas() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_too_far_in_the_future_is_treated_as_the_rules_say() {
        let rules = ClockRules::default();
        let wall = WallTime(1_700_000_000_000_000_000);
        let latest = Cas(wall.0 + 3_900_000_000_000);
        for told in [FutureCas::Ignore, FutureCas::Refuse, FutureCas::Replace] {
            rules.set_future_cas(told);
            assert_eq!(rules.judge(Cas(latest.0 - 1), wall), FutureCas::Ignore);
            assert_eq!(rules.judge(latest, wall), told);
        }
        rules.set_future_max_us(u64::MAX);
        assert_eq!(rules.judge(Cas(u64::MAX - 1), wall), FutureCas::Ignore);
    }
}
