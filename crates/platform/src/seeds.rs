//! Seeds for random tests.

use std::ops::RangeInclusive;

/// `SEED=17` runs seed 17 only, `SEEDS=100000` runs that many, otherwise `few` run.
pub fn seeds(few: u64) -> RangeInclusive<u64> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    match (number("SEED"), number("SEEDS")) {
        (Some(one), _) => one..=one,
        (None, Some(count)) => 1..=count,
        (None, None) => 1..=few,
    }
}
