//! Popularity as it is in practice: the document of rank k is asked for in proportion to 1/k^s.
//!
//! Drawn by rejection from the integral of the distribution, without a table (Hoermann and
//! Derflinger, "Rejection-inversion to generate variates from monotone discrete distributions",
//! ACM TOMACS 6, 1996): a draw costs the same whatever the number of documents is.

use platform::Random;

/// Ranks from 0 to below a count, small ones more often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zipf {
    count: u64,
    exponent: f64,
    /// The integral up to half a rank beyond the first and the last.
    low: f64,
    high: f64,
    /// Within so much of a rank no draw is rejected.
    accepted: f64,
}

impl Zipf {
    /// `count` and `exponent` are above 0.
    pub(super) fn new(count: u64, exponent: f64) -> Self {
        assert!(count > 0, "one of no documents cannot be drawn");
        let mut zipf = Self { count, exponent, low: 0.0, high: 0.0, accepted: 0.0 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(count as f64 + 0.5);
        zipf.accepted = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// A rank.
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let part = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            let area = self.high + part * (self.low - self.high);
            let place = self.inverse(area);
            let rank = place.round().clamp(1.0, self.count as f64);
            let is_inside = rank - place <= self.accepted
                || area >= self.integral(rank + 0.5) - self.density(rank);
            if is_inside {
                return rank as u64 - 1;
            }
        }
    }

    fn density(&self, place: f64) -> f64 {
        (-self.exponent * place.ln()).exp()
    }

    /// The integral of the density; at an exponent of 1 it is the logarithm.
    fn integral(&self, place: f64) -> f64 {
        let logarithm = place.ln();
        let power = (1.0 - self.exponent) * logarithm;
        logarithm * if power.abs() > 1e-8 { power.exp_m1() / power } else { 1.0 + power / 2.0 }
    }

    fn inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.exponent)).max(-1.0);
        let logarithm =
            area * if power.abs() > 1e-8 { power.ln_1p() / power } else { 1.0 - power / 2.0 };
        logarithm.exp()
    }
}

#[cfg(test)]
mod tests {
    use platform::seeds::seeds;

    use super::*;

    #[test]
    fn ranks_are_as_frequent_as_their_share() {
        for seed in seeds(3) {
            let mut random = Random::from_seed(seed);
            for exponent in [0.5, 0.99, 1.0, 1.5] {
                let (count, draws) = (50, 400_000);
                let zipf = Zipf::new(count, exponent);
                let mut drawn = vec![0_u32; count as usize];
                (0..draws).for_each(|_| drawn[zipf.draw(&mut random) as usize] += 1);
                let weight = |rank: usize| ((rank + 1) as f64).powf(-exponent);
                let sum: f64 = (0..drawn.len()).map(weight).sum();
                for (rank, &times) in drawn.iter().enumerate() {
                    let expected = f64::from(draws) * weight(rank) / sum;
                    let distance = (f64::from(times) - expected).abs();
                    assert!(distance < 6.0 * expected.sqrt(), "seed {seed}, {exponent}, {rank}");
                }
            }
        }
    }

    #[test]
    fn one_document_is_always_the_first() {
        let zipf = Zipf::new(1, 0.99);
        let mut random = Random::from_seed(1);
        assert!((0..100).all(|_| zipf.draw(&mut random) == 0));
    }
}
