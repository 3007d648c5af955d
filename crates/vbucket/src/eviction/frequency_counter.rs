//! How often a document is read, in eight bits: a counter that rises the less likely the higher it
//! stands (docs/specification/engine.md, section 2.4).
//!
//! At the standard factor a counter is full after about 65 000 reads. A full counter asks for the
//! decayer, which halves all of them: so the counters stay comparable, and old fame fades.

/// Where counters begin, unless the strategy says more.
pub const INITIAL: u8 = 4;

/// The counter that asks for the decayer.
pub const SATURATED: u8 = u8::MAX;

/// What the decayer leaves of a counter, in percent (`item_freq_decayer_percent`).
pub const DECAY_PERCENT: u8 = 50;

/// `freq_counter_increment_factor`.
const INCREMENT_FACTOR: f64 = 0.012;

/// By counter: below which 32 random bits, taken as a number, it rises.
static RISES_BELOW: [u32; 256] = rises_below();

/// The counter after a read. `random_bits` are the caller's: evenly distributed.
pub fn after_read(counter: u8, random_bits: u32) -> u8 {
    // Never less than needed for 0: there the probability is 1.
    let rises = counter == 0 || random_bits < RISES_BELOW[usize::from(counter)];
    if rises { counter.saturating_add(1) } else { counter }
}

/// The counter after the decayer.
pub fn after_decay(counter: u8, percent: u8) -> u8 {
    let left = u16::from(counter) * u16::from(percent.min(100)) / 100;
    u8::try_from(left).unwrap_or(u8::MAX)
}

/// The counter that new documents begin with, given that of the document at the 25th percentile of
/// those that could leave memory. Above it, so that what has just come is not the first to go.
pub fn initial_above(percentile: u8) -> u8 {
    percentile.saturating_add(1).max(INITIAL)
}

const fn rises_below() -> [u32; 256] {
    let mut table = [0; 256];
    let mut counter = 0;
    while counter < table.len() {
        let height = counter as f64;
        let probability = 1.0 / (height * height * INCREMENT_FACTOR + 1.0);
        table[counter] = (probability * u32::MAX as f64) as u32;
        counter += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use platform::Random;
    use platform::seeds::seeds;

    use super::*;

    fn reads_until_full(random: &mut Random) -> u64 {
        let (mut counter, mut reads) = (0, 0);
        while counter < SATURATED {
            counter = after_read(counter, (random.next_u64() >> 32) as u32);
            reads += 1;
        }
        reads
    }

    #[test]
    fn the_first_read_always_counts_and_a_full_counter_stays_full() {
        for bits in [0, 1, u32::MAX / 2, u32::MAX] {
            assert_eq!(after_read(0, bits), 1);
            assert_eq!(after_read(SATURATED, bits), SATURATED);
        }
    }

    #[test]
    fn a_counter_is_full_after_about_65_000_reads() {
        for seed in seeds(5) {
            let mut random = Random::from_seed(seed);
            let rounds = 20;
            let sum: u64 = (0..rounds).map(|_| reads_until_full(&mut random)).sum();
            let mean = sum / rounds;
            assert!((50_000..85_000).contains(&mean), "seed {seed}: {mean}");
        }
    }

    #[test]
    fn odds_fall_with_the_counter_and_never_vanish() {
        assert!(RISES_BELOW.is_sorted_by(|one, next| one > next));
        assert!(RISES_BELOW[255] > u32::MAX / 1000);
    }

    #[test]
    fn the_decayer_halves() {
        let halved = |counter| after_decay(counter, DECAY_PERCENT);
        assert_eq!([0, 1, 2, 5, 254, 255].map(halved), [0, 0, 1, 2, 127, 127]);
        assert_eq!(after_decay(200, 100), 200);
        assert_eq!(after_decay(200, 0), 0);
    }

    #[test]
    fn new_documents_begin_above_the_lowest_quarter() {
        assert_eq!([0, 3, 4, 100, 255].map(initial_above), [4, 4, 5, 101, 255]);
    }
}
