//! One counter of one step on both sides, turn by turn.

use crate::report::{median, ratio};

/// What the turns counted for a request. Turn `n` of one side was next to turn `n` of the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Of the other commit.
    pub before: Vec<f64>,
    /// Of this one.
    pub now: Vec<f64>,
}

/// Which node a turn was of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The other commit's.
    Before,
    /// This one's.
    Now,
}

impl Comparison {
    /// Adds what a turn counted.
    pub fn push(&mut self, whose: Whose, value: f64) {
        match whose {
            Whose::Before => self.before.push(value),
            Whose::Now => self.now.push(value),
        }
    }

    /// The median of the turns of the other commit.
    pub fn before(&self) -> f64 {
        median(&self.before)
    }

    /// The median of the turns of this one.
    pub fn now(&self) -> f64 {
        median(&self.now)
    }

    /// The median of the ratios of neighbouring turns; above 1 it has become dearer.
    pub fn ratio(&self) -> f64 {
        ratio(&self.now, &self.before)
    }

    /// Where the ratio is with a confidence of at least 95 %, as far as there are turns enough:
    /// between two of the ordered ratios, whatever their distribution is.
    pub fn spread(&self) -> (f64, f64) {
        let mut ratios: Vec<f64> =
            self.now.iter().zip(&self.before).map(|(now, before)| now / before).collect();
        ratios.sort_by(f64::total_cmp);
        let outside = ratios_outside(ratios.len());
        match (ratios.get(outside), ratios.get(ratios.len().wrapping_sub(outside + 1))) {
            (Some(&low), Some(&high)) => (low, high),
            _ => (0.0, f64::INFINITY),
        }
    }

    /// Whether the ratio is above the limit, and its spread is above 1: had nothing changed, turns
    /// would not differ so.
    pub fn is_dearer(&self, limit: f64) -> bool {
        self.ratio() > limit && self.spread().0 > 1.0
    }
}

/// How many of `count` ordered values may be left out at each end so that the true median is
/// between the rest in 95 of 100 cases. It is not if so few values are on one side of it, which is
/// as likely as so few heads, or so few tails, of `count` coins.
fn ratios_outside(count: usize) -> usize {
    const DOUBT_MAX: f64 = 0.05;
    let mut outside = 0;
    // The probability of exactly so many heads, and of at most so many.
    let mut exactly = 0.5_f64.powf(count as f64);
    let mut at_most = exactly;
    while outside < count {
        exactly *= (count - outside) as f64 / (outside + 1) as f64;
        at_most += exactly;
        if 2.0 * at_most > DOUBT_MAX {
            break;
        }
        outside += 1;
    }
    outside
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_ratios(ratios: &[f64]) -> Comparison {
        let before: Vec<f64> = (1..=ratios.len()).map(|turn| turn as f64).collect();
        let now = before.iter().zip(ratios).map(|(before, ratio)| before * ratio).collect();
        Comparison { before, now }
    }

    #[test]
    fn so_many_ratios_are_left_out_as_tables_of_the_sign_test_say() {
        let counts = [1, 3, 5, 6, 8, 9, 11, 12, 15, 17, 20];
        assert_eq!(counts.map(ratios_outside), [0, 0, 0, 0, 0, 1, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_ratio_is_the_middle_one_and_a_single_turn_does_not_move_it() {
        let ratios = of_ratios(&[1.0, 1.02, 9.0, 0.98, 1.01]);
        assert!((ratios.ratio() - 1.01).abs() < 1e-9);
        assert!(!ratios.is_dearer(1.005), "one turn was cheaper");
    }

    #[test]
    fn dearer_is_what_is_above_the_limit_in_turns_that_agree() {
        let dearer = of_ratios(&[1.07, 1.09, 1.08, 1.06, 1.1, 1.08, 1.09, 1.07, 0.9]);
        assert!(dearer.is_dearer(1.05), "{:?}", dearer.spread());
        assert!(!dearer.is_dearer(1.1), "below that limit");
        let scattered = of_ratios(&[1.3, 0.8, 1.2, 1.07, 0.9, 1.25, 0.85, 1.4, 1.09]);
        assert!(scattered.ratio() > 1.05 && !scattered.is_dearer(1.05));
        let cheaper = of_ratios(&[0.5; 9]);
        assert!(!cheaper.is_dearer(1.05));
    }

    #[test]
    fn what_was_not_counted_is_not_dearer() {
        assert!(!Comparison::default().is_dearer(1.05));
        let nothing = Comparison { before: vec![0.0; 9], now: vec![0.0; 9] };
        assert!(!nothing.is_dearer(1.05));
    }
}
