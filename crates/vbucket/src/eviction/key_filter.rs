//! Which keys may be on disk without being in memory: never a false "no", few false "yes".
//!
//! A split block Bloom filter (the one of Parquet files): a key has one bit in each of the eight
//! words of one 32-byte block. Asking is one cache miss, where a plain Bloom filter of this
//! accuracy takes seven; it pays with about one bit a key. Cuckoo and quotient filters could forget
//! keys, which nobody needs: a key on disk stays there as a tombstone. Xor and fuse filters are
//! smaller, but take all keys at once.
//!
//! Keys are not kept, so a filter cannot be laid out anew when it is full. It gets another layer,
//! twice as large and twice as accurate: the sum of all errors stays below the limit. A filter that
//! is made for the right number of keys, as after a start, has one layer.

/// Eight words of 32 bits.
type Block = [u32; 8];

/// Odd multipliers that choose the bit of each word (Parquet format, `BloomFilter.md`).
const SALTS: Block = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

const BLOCK_BITS: u32 = 256;
const _: () = assert!(size_of::<Block>() * 8 == BLOCK_BITS as usize);

/// Keys of the first layer, at least.
const LAYER_KEYS_MIN: usize = 256;
/// However coarse or fine the filter is wanted, a key takes so many bits.
const BITS_PER_KEY_MIN: u32 = 4;
const BITS_PER_KEY_MAX: u32 = 64;
/// More keys than any block gets: at 4 bits a key there are 64 on average.
const KEYS_PER_BLOCK_MAX: i32 = 200;

/// How large and how accurate a filter is to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilterOptions {
    /// Keys that the first layer is made for at most (`bfilter_key_count`): a start that finds more
    /// in the file makes it larger.
    pub key_count: usize,
    /// The probability of a false "yes" (`bfilter_fp_prob`).
    pub false_positives: f64,
}

impl Default for FilterOptions {
    fn default() -> Self {
        Self { key_count: 10_000, false_positives: 0.01 }
    }
}

/// A set of hashes of keys, and of some others.
#[derive(Debug)]
pub struct KeyFilter {
    options: FilterOptions,
    /// The oldest first; none before the first key.
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    blocks: Box<[Block]>,
    key_count: usize,
    key_count_max: usize,
}

impl KeyFilter {
    /// An empty filter, which takes no memory yet.
    pub fn new(options: FilterOptions) -> Self {
        Self { options, layers: Vec::new() }
    }

    /// Whether the key with this hash may have been added.
    pub fn may_contain(&self, hash: u64) -> bool {
        // The newest layer is the largest.
        self.layers.iter().rev().any(|layer| layer.contains(hash))
    }

    /// Makes the first layer large enough for `key_count` keys, unless there is one.
    pub fn reserve(&mut self, key_count: usize) {
        if self.layers.is_empty() {
            self.add_layer(key_count.max(LAYER_KEYS_MIN));
        }
    }

    /// Adds the key with this hash; `key_count` estimates how many there will be. Returns whether
    /// that changed anything.
    pub fn insert(&mut self, hash: u64, key_count: usize) -> bool {
        if self.may_contain(hash) {
            return false;
        }
        match self.layers.last() {
            None => self.reserve(key_count.min(self.options.key_count)),
            Some(last) if last.is_full() => self.add_layer(last.key_count_max.saturating_mul(2)),
            Some(_) => {}
        }
        if let Some(layer) = self.layers.last_mut() {
            layer.insert(hash);
        }
        true
    }

    /// Keys that were added, those left out that the filter took for one it had.
    pub fn key_count(&self) -> usize {
        self.layers.iter().map(|layer| layer.key_count).sum()
    }

    /// Bytes of all layers.
    pub fn bytes(&self) -> usize {
        self.layers.iter().map(|layer| size_of_val(&*layer.blocks)).sum()
    }

    fn add_layer(&mut self, key_count_max: usize) {
        // 1/2 + 1/4 + ... stays below 1.
        let number = i32::try_from(self.layers.len() + 1).unwrap_or(i32::MAX);
        let false_positives = self.options.false_positives * 0.5_f64.powi(number);
        let bits = key_count_max as f64 * bits_per_key(false_positives);
        let block_count = (bits / f64::from(BLOCK_BITS)).ceil();
        let blocks = vec![Block::default(); (block_count as usize).max(1)].into_boxed_slice();
        self.layers.push(Layer { blocks, key_count: 0, key_count_max });
    }
}

impl Layer {
    fn is_full(&self) -> bool {
        self.key_count >= self.key_count_max
    }

    fn contains(&self, hash: u64) -> bool {
        let block = &self.blocks[self.block_of(hash)];
        mask_of(hash).iter().zip(block).all(|(bit, word)| bit & word != 0)
    }

    fn insert(&mut self, hash: u64) {
        let block = &mut self.blocks[block_index(hash, self.blocks.len())];
        for (word, bit) in block.iter_mut().zip(mask_of(hash)) {
            *word |= bit;
        }
        self.key_count += 1;
    }

    fn block_of(&self, hash: u64) -> usize {
        block_index(hash, self.blocks.len())
    }
}

/// The upper half of the hash chooses the block.
fn block_index(hash: u64, block_count: usize) -> usize {
    (((hash >> 32) * block_count as u64) >> 32) as usize
}

/// The lower half chooses the bits.
fn mask_of(hash: u64) -> Block {
    SALTS.map(|salt| 1 << ((hash as u32).wrapping_mul(salt) >> 27))
}

/// Bits that a key takes at this probability of a false "yes".
fn bits_per_key(limit: f64) -> f64 {
    let candidates =
        (BITS_PER_KEY_MIN * 4..BITS_PER_KEY_MAX * 4).map(|quarters| f64::from(quarters) / 4.0);
    let mut accurate = candidates.filter(|&bits| false_positives(bits) <= limit);
    accurate.next().unwrap_or(f64::from(BITS_PER_KEY_MAX))
}

/// The probability of a false "yes" at so many bits a key: blocks hold Poisson distributed numbers
/// of keys, and each key sets one of 32 bits in each of eight words.
fn false_positives(bits_per_key: f64) -> f64 {
    let mean = f64::from(BLOCK_BITS) / bits_per_key;
    let mut probability = (-mean).exp();
    let mut sum = 0.0;
    for keys in 1..KEYS_PER_BLOCK_MAX {
        probability *= mean / f64::from(keys);
        sum += probability * (1.0 - (1.0_f64 - 1.0 / 32.0).powi(keys)).powi(8);
    }
    sum
}

#[cfg(test)]
mod tests {
    use platform::Random;
    use platform::seeds::seeds;

    use super::*;

    /// The part of `asked` random keys that the filter wrongly knows.
    fn wrongly_known(filter: &KeyFilter, random: &mut Random, asked: u32) -> f64 {
        let yes = (0..asked).filter(|_| filter.may_contain(random.next_u64())).count();
        yes as f64 / f64::from(asked)
    }

    #[test]
    fn what_was_added_is_there_however_far_the_filter_grows() {
        for seed in seeds(3) {
            for count in [0, 1, 255, 256, 257, 10_000, 100_000] {
                let mut filter = KeyFilter::new(FilterOptions::default());
                let mut random = Random::from_seed(seed);
                let hashes: Vec<u64> = (0..count).map(|_| random.next_u64()).collect();
                for &hash in &hashes {
                    filter.insert(hash, 0);
                }
                assert!(hashes.iter().all(|&hash| filter.may_contain(hash)), "seed {seed}");
                let wrong = wrongly_known(&filter, &mut random, 20_000);
                assert!(wrong <= 0.0115, "seed {seed}, {count} keys: {wrong}");
            }
        }
    }

    #[test]
    fn a_filter_of_the_right_size_keeps_its_promise_in_twenty_bits_a_key() {
        for seed in seeds(3) {
            let (mut random, key_count) = (Random::from_seed(seed), 100_000);
            for promise in [0.1, 0.01, 0.001] {
                let options = FilterOptions { key_count, false_positives: promise };
                let mut filter = KeyFilter::new(options);
                for _ in 0..key_count {
                    filter.insert(random.next_u64(), key_count);
                }
                let wrong = wrongly_known(&filter, &mut random, 200_000);
                assert!(wrong <= promise * 1.15, "seed {seed}: {wrong}, promised {promise}");
                assert!(filter.bytes() * 8 <= key_count * 20, "{}", filter.bytes());
            }
        }
    }

    #[test]
    fn an_empty_filter_takes_no_memory_and_knows_nothing() {
        let filter = KeyFilter::new(FilterOptions::default());
        assert_eq!((filter.bytes(), filter.key_count()), (0, 0));
        assert!(!filter.may_contain(0));
    }

    #[test]
    fn a_key_is_counted_once() {
        let mut filter = KeyFilter::new(FilterOptions::default());
        assert!(filter.insert(17, 1));
        assert!(!filter.insert(17, 1));
        assert_eq!(filter.key_count(), 1);
    }
}
