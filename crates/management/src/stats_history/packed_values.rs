//! Values of one figure at samples one after the other, in about as many bytes as they have changed
//! by: of each value but the first in a chunk the difference to the one before is kept.

use std::collections::VecDeque;

/// Values in a chunk, at most: so many leave at a time.
pub(super) const CHUNK_VALUES_MAX: u64 = 120;
/// Values that are no whole numbers are kept to a thousandth.
const THOUSANDTHS: f64 = 1000.0;
/// The bits of a byte that are of the number; the highest says that there are more.
const BITS: u32 = 7;

/// The values of a figure.
#[derive(Debug)]
pub(super) struct PackedValues {
    /// What values are multiplied with before they are kept as whole numbers.
    scale: f64,
    /// The oldest one first. Between two of them samples may be missing.
    chunks: VecDeque<Chunk>,
}

/// Values of samples without a gap.
#[derive(Debug)]
struct Chunk {
    /// The number of the sample that it begins with.
    first: u64,
    count: u64,
    last: i64,
    /// Differences, each with its sign in the lowest bit, the lowest bits first.
    bytes: Vec<u8>,
}

impl PackedValues {
    /// None yet. They are whole numbers, or not.
    pub(super) fn new(is_whole: bool) -> Self {
        Self { scale: if is_whole { 1.0 } else { THOUSANDTHS }, chunks: VecDeque::new() }
    }

    /// The value at a sample; its number is higher than all before.
    pub(super) fn push(&mut self, sample: u64, value: f64) {
        // A conversion that does not fit ends at the edge, and no number is 0.
        let value = (value * self.scale).round() as i64;
        match self.chunks.back_mut() {
            Some(chunk) if chunk.takes(sample) => chunk.push(value),
            last => {
                assert!(last.is_none_or(|last| last.end() <= sample), "samples have an order");
                let mut chunk = Chunk { first: sample, count: 0, last: 0, bytes: Vec::new() };
                chunk.push(value);
                self.chunks.push_back(chunk);
            }
        }
    }

    /// Drops the chunks of which no value is at `sample` or behind it.
    pub(super) fn drop_before(&mut self, sample: u64) {
        while self.chunks.front().is_some_and(|chunk| chunk.end() <= sample) {
            self.chunks.pop_front();
        }
        if self.chunks.is_empty() {
            self.chunks = VecDeque::new();
        }
    }

    /// Drops the values at `sample` and behind it.
    pub(super) fn drop_from(&mut self, sample: u64) {
        while self.chunks.back().is_some_and(|chunk| chunk.first >= sample) {
            self.chunks.pop_back();
        }
        if let Some(chunk) = self.chunks.back_mut().filter(|chunk| chunk.end() > sample) {
            let mut kept = Chunk { first: chunk.first, count: 0, last: 0, bytes: Vec::new() };
            let values = chunk.values().take_while(|(at, _)| *at < sample);
            values.for_each(|(_, value)| kept.push(value));
            *chunk = kept;
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// The values at `sample` and behind it, with the numbers of their samples.
    pub(super) fn since(&self, sample: u64) -> impl Iterator<Item = (u64, f64)> {
        let chunks = self.chunks.iter().filter(move |chunk| chunk.end() > sample);
        let values = chunks.flat_map(Chunk::values).filter(move |(at, _)| *at >= sample);
        values.map(move |(at, value)| (at, to_float(value) / self.scale))
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let values: usize = self.chunks.iter().map(|chunk| chunk.bytes.capacity()).sum();
        values + self.chunks.capacity() * size_of::<Chunk>()
    }
}

impl Chunk {
    /// The number of the sample behind it.
    fn end(&self) -> u64 {
        self.first + self.count
    }

    /// Whether the value at a sample goes on here.
    fn takes(&self, sample: u64) -> bool {
        self.end() == sample && self.count < CHUNK_VALUES_MAX
    }

    fn push(&mut self, value: i64) {
        let step = value.wrapping_sub(self.last);
        let mut rest = (step.cast_unsigned() << 1) ^ (step >> 63).cast_unsigned();
        while rest >= 1 << BITS {
            // The lowest bits, as a byte takes them.
            self.bytes.push(rest.to_le_bytes()[0] | (1 << BITS));
            rest >>= BITS;
        }
        self.bytes.push(rest.to_le_bytes()[0]);
        (self.last, self.count) = (value, self.count + 1);
        if self.count == CHUNK_VALUES_MAX {
            self.bytes.shrink_to_fit();
        }
    }

    fn values(&self) -> impl Iterator<Item = (u64, i64)> {
        let mut bytes = self.bytes.iter();
        let mut value = 0_i64;
        let mut next = move || {
            let (mut zigzag, mut shift) = (0_u64, 0);
            loop {
                let byte = *bytes.next()?;
                zigzag |= u64::from(byte & ((1 << BITS) - 1)) << shift;
                if byte >> BITS == 0 {
                    break;
                }
                shift += BITS;
            }
            let sign = (zigzag & 1).cast_signed();
            value = value.wrapping_add((zigzag >> 1).cast_signed() ^ -sign);
            Some(value)
        };
        (self.first..self.end()).map_while(move |sample| Some((sample, next()?)))
    }
}

/// Figures are told with the precision of a double.
#[expect(clippy::cast_precision_loss, reason = "nobody reads the sixteenth digit of a figure")]
fn to_float(number: i64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(values: &PackedValues, from: u64) -> Vec<(u64, f64)> {
        values.since(from).collect()
    }

    #[test]
    fn what_is_kept_is_what_was_there_whatever_its_size_and_direction() {
        let edge = 9_007_199_254_740_992.0;
        let told = [0.0, 1.0, -1.0, 63.0, -64.0, 1e6, 12.0, edge, -edge, 0.0];
        let mut values = PackedValues::new(true);
        let numbers = 7..;
        let expected: Vec<(u64, f64)> = numbers.zip(told).collect();
        for (sample, value) in &expected {
            values.push(*sample, *value);
        }
        assert_eq!(all(&values, 0), expected);
        assert_eq!(all(&values, 15), expected[8..]);
    }

    #[test]
    fn fractions_are_kept_to_a_thousandth_and_what_is_no_number_as_none() {
        for (is_whole, kept) in [(false, 0.123), (true, 0.0)] {
            let mut values = PackedValues::new(is_whole);
            values.push(0, 0.1234);
            values.push(1, f64::NAN);
            assert_eq!(all(&values, 0), [(0, kept), (1, 0.0)], "{is_whole}");
        }
    }

    #[test]
    fn what_is_new_leaves_by_values_and_others_take_its_place() {
        for kept in [0, 1, 9, CHUNK_VALUES_MAX, CHUNK_VALUES_MAX + 9] {
            let mut values = PackedValues::new(true);
            let value_at =
                |sample: u64| (sample, if sample.is_multiple_of(2) { 300.0 } else { -7.0 });
            (0..2 * CHUNK_VALUES_MAX).for_each(|sample| values.push(sample, value_at(sample).1));
            values.drop_from(kept);
            let mut expected: Vec<(u64, f64)> = (0..kept).map(value_at).collect();
            assert_eq!(all(&values, 0), expected);
            assert_eq!(values.is_empty(), kept == 0);
            values.push(kept, 5.0);
            expected.push((kept, 5.0));
            assert_eq!(all(&values, 0), expected);
        }
    }

    #[test]
    fn gaps_stay_gaps_and_what_is_old_leaves_by_chunks() {
        let mut values = PackedValues::new(true);
        let samples = (0..CHUNK_VALUES_MAX + 10).chain(500..510);
        samples.clone().for_each(|sample| values.push(sample, 3.0));
        let found: Vec<u64> = values.since(0).map(|(sample, _)| sample).collect();
        assert_eq!(found, samples.collect::<Vec<u64>>());
        values.drop_before(CHUNK_VALUES_MAX - 1);
        assert_eq!(values.since(0).next(), Some((0, 3.0)), "a value of it is still wanted");
        values.drop_before(CHUNK_VALUES_MAX);
        assert_eq!(values.since(0).next(), Some((CHUNK_VALUES_MAX, 3.0)));
        values.drop_before(510);
        assert!(values.is_empty() && values.bytes() == 0);
    }

    #[test]
    fn a_counter_that_rises_evenly_takes_two_bytes_a_value() {
        let mut values = PackedValues::new(true);
        let count = 10 * CHUNK_VALUES_MAX;
        (0..count).for_each(|sample| values.push(sample, 1e9 + to_float(sample as i64) * 5000.0));
        let count = usize::try_from(count).unwrap();
        assert!(values.bytes() < 3 * count, "{} for {count}", values.bytes());
    }
}
