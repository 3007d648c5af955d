//! Loops whose items take what a test says, on a simulated clock.

use std::time::Duration;

use platform::seeds::seeds;
use platform::{Random, WallTime};

use super::*;

const SLICE: Duration = Duration::from_millis(25);

/// What a loop did before it paused.
struct Outcome {
    items: u64,
    looks: u64,
    took: Duration,
}

/// Runs a loop whose items take what `cost_ns` says of their index.
fn run(slice: Duration, mut cost_ns: impl FnMut(u64) -> u64) -> Outcome {
    let clock = Clock::simulated(WallTime(0));
    let mut tracker = ProgressTracker::new(clock.clone(), clock.now().after(slice));
    let (mut items, mut looks) = (0, 0);
    loop {
        clock.advance(Duration::from_nanos(cost_ns(items)));
        items += 1;
        let goes_on = tracker.item_done();
        looks += u64::from(tracker.left == tracker.stride.get());
        if !goes_on {
            return Outcome { items, looks, took: clock.now().since(Instant(0)) };
        }
    }
}

#[test]
fn a_loop_over_even_items_ends_less_than_ten_items_before_its_deadline() {
    for seed in seeds(200) {
        // From 20 ns to what lets the first 100 items fit.
        let cost = 20 + Random::from_seed(seed).below(249_980);
        let outcome = run(SLICE, |_| cost);
        assert!(outcome.took <= SLICE, "seed {seed}");
        let rest = SLICE - outcome.took;
        assert!(rest < Duration::from_nanos(10 * cost), "seed {seed}: {rest:?} unused");
        // At the look before, ten items fitted or more, and half of them were done.
        let is_too_late = outcome.items > 100 && rest < Duration::from_nanos(4 * cost);
        assert!(!is_too_late, "seed {seed}: a pause for {rest:?} is not worth so many looks");
    }
}

#[test]
fn the_clock_is_read_about_once_for_each_halving_of_the_time() {
    let outcome = run(SLICE, |_| 100);
    assert!(outcome.items > 249_900, "{} items", outcome.items);
    assert!(outcome.looks <= 20, "{} looks", outcome.looks);
}

#[test]
fn the_first_look_comes_after_a_hundred_items_however_late_that_is() {
    for (slice, cost) in [(SLICE, 1_000_000), (Duration::ZERO, 10), (SLICE, 250_000)] {
        let outcome = run(slice, |_| cost);
        assert_eq!((outcome.items, outcome.looks), (100, 1));
    }
}

#[test]
fn items_that_become_cheaper_or_dearer_are_noticed_at_the_next_look() {
    let cheaper = run(SLICE, |item| if item < 100 { 10_000 } else { 1_000 });
    assert!(cheaper.took <= SLICE && cheaper.items > 23_000, "{} items", cheaper.items);
    // Half of what fits is done before the next look: at ten times the cost five times the rest.
    let dearer = run(SLICE, |item| if item < 100 { 10_000 } else { 100_000 });
    assert!(dearer.took <= SLICE * 6, "{:?}", dearer.took);
    assert_eq!(dearer.looks, 2);
}

#[test]
fn items_that_take_no_time_overflow_nothing() {
    let clock = Clock::simulated(WallTime(0));
    let mut tracker = ProgressTracker::new(clock, Instant(u64::MAX));
    assert!((0..100_000).all(|_| tracker.item_done()));
}
