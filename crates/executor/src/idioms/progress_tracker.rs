//! When a loop over many items should look at the clock, and when it should pause.

use std::num::NonZeroU64;

use platform::{Clock, Instant};

/// Items before the first look at the clock: enough to tell how long one takes.
const FIRST_LOOK_ITEMS: u64 = 100;
/// A loop that would get fewer items done before its deadline pauses.
const WORTHWHILE_ITEMS_MIN: u64 = 10;

/// Lets a loop keep a deadline while it reads the clock a few times instead of once an item. The
/// loop overruns when items take longer than those before, by the items up to the next look.
#[derive(Debug)]
pub struct ProgressTracker {
    clock: Clock,
    deadline: Instant,
    /// When the clock was read last.
    looked: Instant,
    /// Items between the last look and the next one.
    stride: NonZeroU64,
    /// Items left until the next look.
    left: u64,
}

impl ProgressTracker {
    /// A loop begins that is to end by `deadline` of `clock`.
    pub fn new(clock: Clock, deadline: Instant) -> Self {
        let looked = clock.now();
        let stride = NonZeroU64::new(FIRST_LOOK_ITEMS).expect("some items come before a look");
        Self { clock, deadline, looked, stride, left: FIRST_LOOK_ITEMS }
    }

    /// Counts an item that is done. False when the loop should pause.
    #[must_use = "the loop overruns its deadline otherwise"]
    pub fn item_done(&mut self) -> bool {
        self.left -= 1;
        self.left > 0 || self.look()
    }

    /// Estimates from the items since the last look how many fit until the deadline, and goes on
    /// for half of them: half an error, and only a few looks more.
    fn look(&mut self) -> bool {
        let now = self.clock.now();
        let took_ns = u128::from(now.0 - self.looked.0).max(1);
        let rest_ns = u128::from(self.deadline.0.saturating_sub(now.0));
        let fitting = rest_ns * u128::from(self.stride.get()) / took_ns;
        let fitting = u64::try_from(fitting).unwrap_or(u64::MAX);
        self.looked = now;
        self.stride = NonZeroU64::new(fitting / 2).unwrap_or(NonZeroU64::MIN);
        self.left = self.stride.get();
        fitting >= WORTHWHILE_ITEMS_MIN
    }
}

#[cfg(test)]
mod tests;
