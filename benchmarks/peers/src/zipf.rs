//! Popularity as caches know it: the document of rank n is asked for 1/n^0.99 times as often as the
//! first.

use platform::Random;

/// Of the rank, in the denominator.
pub const EXPONENT: f64 = 0.99;

/// Documents whose popularity falls with their rank; ranks are spread over all numbers.
pub struct Zipf {
    /// By rank: the probability of it and all before.
    cumulated: Vec<f64>,
    by_rank: Vec<usize>,
}

impl Zipf {
    /// So many documents.
    pub fn new(documents: usize) -> Self {
        let mut sum = 0.0;
        let mut cumulated: Vec<f64> = (1..=documents)
            .map(|rank| {
                sum += (rank as f64).powf(-EXPONENT);
                sum
            })
            .collect();
        cumulated.iter_mut().for_each(|part| *part /= sum);
        let mut by_rank: Vec<usize> = (0..documents).collect();
        let mut random = Random::from_seed(2);
        for end in (2..=documents).rev() {
            by_rank.swap(end - 1, random.below(end as u64) as usize);
        }
        Self { cumulated, by_rank }
    }

    /// How many there are.
    pub fn documents(&self) -> usize {
        self.by_rank.len()
    }

    /// One of them.
    pub fn draw(&self, random: &mut Random) -> usize {
        let point = random.below(1 << 53) as f64 / (1_u64 << 53) as f64;
        let rank = self.cumulated.partition_point(|&part| part < point);
        self.by_rank[rank.min(self.by_rank.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_a_hundred_is_drawn_once_in_five_times() {
        let zipf = Zipf::new(100);
        let mut random = Random::from_seed(1);
        let mut drawn = vec![0; zipf.documents()];
        (0..10_000).for_each(|_| drawn[zipf.draw(&mut random)] += 1);
        drawn.sort_unstable();
        assert!((1_700..2_200).contains(&drawn[99]), "{drawn:?}");
        assert!(drawn[0] > 0 && drawn[98] < drawn[99] * 2 / 3, "{drawn:?}");
    }
}
