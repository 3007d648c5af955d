//! An upper bound of the monotonic time, from the kernel's coarse clock.
//!
//! The coarse clock is the exact one as of the last timer tick: it lags, never leads, and costs a
//! fraction of it (4 ns against 17 to 27 ns where the exact one reads a counter of the CPU). It
//! advances in whole ticks, so with ticks on time it lags by less than two. Ticks are late when a
//! hypervisor takes the CPU away that keeps the time. A thread therefore compares the two clocks
//! whenever the coarse one has moved since it last asked, and at least once in
//! [`CHEAP_READS_MAX`] calls; a thread that asks seldom always gets the exact time.
//!
//! What remains: a thread that asks more than once in [`HOT_INTERVAL_NS`] and is then held up, in
//! the middle of a burst, while the kernel's tick is held up as well, for longer than the error
//! allowed. Its next answer is too early by what exceeds that.

use std::cell::Cell;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::ClockId;

use super::{monotonic_ns, read};

/// [`super::Clock::ceiling`] is at most this much later than the time: two ticks of a kernel that
/// ticks 250 times a second.
pub const CEILING_ERROR_MAX: Duration = Duration::from_millis(8);

const ERROR_MAX_NS: u64 = 8_000_000;
const _: () = assert!(CEILING_ERROR_MAX.as_nanos() == ERROR_MAX_NS as u128);

/// A coarse clock with a longer tick is of no use.
const TICK_MAX_NS: u64 = ERROR_MAX_NS / 2;
/// The coarse clock is trusted while it lags by less than this; the rest is for the time until the
/// next comparison.
const TRUSTED_LAG_MAX_NS: u64 = ERROR_MAX_NS - 500_000;
/// Calls between two comparisons of a thread that asks all the time.
const CHEAP_READS_MAX: u32 = 32;
/// A thread whose calls are further apart than this is told the exact time.
const HOT_INTERVAL_NS: u64 = 10_000;

/// What a thread knows from its last comparison.
#[derive(Clone, Copy)]
struct Compared {
    coarse: u64,
    exact: u64,
    /// Calls that may go without another comparison while the coarse clock stands.
    cheap_reads_left: u32,
    /// How many were allowed.
    cheap_reads: u32,
}

thread_local! {
    static COMPARED: Cell<Compared> =
        const { Cell::new(Compared { coarse: 0, exact: 0, cheap_reads_left: 0, cheap_reads: 0 }) };
}

/// Nanoseconds of monotonic time, rounded up.
#[inline]
pub(super) fn ceiling() -> u64 {
    let coarse = read(ClockId::MonotonicCoarse);
    COMPARED.with(|cell| {
        let compared = cell.get();
        if coarse == compared.coarse && compared.cheap_reads_left > 0 {
            cell.set(Compared { cheap_reads_left: compared.cheap_reads_left - 1, ..compared });
            return coarse + ERROR_MAX_NS;
        }
        compare(cell, coarse)
    })
}

/// Reads the exact time and decides how long the coarse clock will do.
#[cold]
fn compare(cell: &Cell<Compared>, coarse: u64) -> u64 {
    let before = cell.get();
    let exact = monotonic_ns();
    let calls = u64::from(before.cheap_reads - before.cheap_reads_left) + 1;
    let is_hot = exact.saturating_sub(before.exact) < calls * HOT_INTERVAL_NS;
    let is_fresh = exact.saturating_sub(coarse) < TRUSTED_LAG_MAX_NS;
    let cheap_reads = if is_hot && is_fresh && ticks_often() { CHEAP_READS_MAX } else { 0 };
    cell.set(Compared { coarse, exact, cheap_reads_left: cheap_reads, cheap_reads });
    exact
}

/// Whether the kernel ticks often enough.
fn ticks_often() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let tick = rustix::time::clock_getres(ClockId::MonotonicCoarse);
        tick.tv_sec == 0 && u64::try_from(tick.tv_nsec).is_ok_and(|tick| tick <= TICK_MAX_NS)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ceiling_is_never_early_and_late_by_a_bounded_time() {
        for _ in 0..300_000 {
            let before = monotonic_ns();
            let ceiling = ceiling();
            let after = monotonic_ns();
            assert!(ceiling >= before);
            assert!(ceiling <= after + ERROR_MAX_NS);
        }
    }

    #[test]
    fn whoever_asks_seldom_gets_the_exact_time() {
        for _ in 0..20 {
            let wait = monotonic_ns() + 50_000;
            while monotonic_ns() < wait {}
            let before = monotonic_ns();
            let ceiling = ceiling();
            assert!((before..=monotonic_ns()).contains(&ceiling));
        }
    }
}
