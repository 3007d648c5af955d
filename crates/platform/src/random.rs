//! Randomness: one generator for everything, seeded by the system or by a test.

/// A small fast generator (SplitMix64: Steele, Lea, Flood, OOPSLA 2014). Not for secrets; those
/// come from [`Entropy`](crate::Entropy).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed gives the same numbers.
    pub fn from_seed(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below zero");
        // Multiply-shift: a bias below 2^-32 for the bounds used here, and no division.
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let word = self.next_u64().to_be_bytes();
            chunk.copy_from_slice(&word[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_their_bound_and_repeat_with_the_seed() {
        for seed in crate::seeds::seeds(5) {
            let mut first = Random::from_seed(seed);
            let mut second = first.clone();
            for bound in 1..2_000 {
                let number = first.below(bound);
                assert!(number < bound, "seed {seed}");
                assert_eq!(number, second.below(bound), "seed {seed}");
            }
        }
    }
}
