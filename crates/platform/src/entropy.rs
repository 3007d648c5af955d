//! Where names, salts and secrets come from.

use std::sync::{Arc, Mutex, PoisonError};

use crate::random::Random;

/// A source of bytes that nobody can foresee, or, in a simulation, of those that a seed gives. A
/// handle: clones draw from the same source.
#[derive(Clone, Debug, Default)]
pub struct Entropy(Source);

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    Real,
    Simulated(Arc<Mutex<Random>>),
}

impl Entropy {
    /// The operating system's.
    pub fn real() -> Self {
        Self(Source::Real)
    }

    /// The same seed gives the same bytes. For tests and simulations alone: these are no secrets.
    pub fn simulated(seed: u64) -> Self {
        Self(Source::Simulated(Arc::new(Mutex::new(Random::from_seed(seed)))))
    }

    /// Fills `bytes`. Panics when the system has none: a node without them can neither name itself
    /// nor keep a password.
    pub fn fill(&self, bytes: &mut [u8]) {
        match &self.0 {
            Source::Real => getrandom::fill(bytes).expect("the system gives random bytes"),
            Source::Simulated(random) => {
                random.lock().unwrap_or_else(PoisonError::into_inner).fill(bytes);
            }
        }
    }

    /// 64 bits.
    pub fn next_u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_be_bytes(bytes)
    }

    /// A generator for what need not be secret.
    pub fn random(&self) -> Random {
        Random::from_seed(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_the_system_does_not() {
        let draws = |entropy: Entropy| [entropy.next_u64(), entropy.clone().next_u64()];
        assert_eq!(draws(Entropy::simulated(1)), draws(Entropy::simulated(1)));
        assert_ne!(draws(Entropy::simulated(1)), draws(Entropy::simulated(2)));
        assert_ne!(draws(Entropy::real()), draws(Entropy::real()));
        let [first, second] = draws(Entropy::simulated(1));
        assert_ne!(first, second, "clones go on where the other one is");
    }
}
