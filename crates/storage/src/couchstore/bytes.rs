//! Big-endian fields, 5 and 6 bytes wide among them.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

/// The largest number that six bytes hold.
pub(crate) const U48_MAX: u64 = (1 << 48) - 1;

/// The largest number that five bytes hold.
pub(crate) const U40_MAX: u64 = (1 << 40) - 1;

/// Reads fields from the front of a slice; `None` when the bytes are used up.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// An unsigned number of `SIZE` bytes, at most 8.
    pub(crate) fn number<const SIZE: usize>(&mut self) -> Option<u64> {
        const { assert!(SIZE <= 8) };
        let bytes: &[u8; SIZE] = self.take(SIZE)?.first_chunk()?;
        Some(bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(*self.take(2)?.first_chunk()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(*self.take(4)?.first_chunk()?))
    }

    /// What has not been read.
    pub(crate) fn rest(self) -> &'a [u8] {
        self.0
    }
}

/// A length in memory as a number of bytes.
pub(crate) fn length(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

/// A number from a file as an index. Saturated, it lies beyond any slice.
pub(crate) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

pub(crate) fn put_u48(target: &mut Vec<u8>, number: u64) {
    assert!(number <= U48_MAX, "the field has 48 bits");
    put_low_bytes::<6>(target, number);
}

pub(crate) fn put_u40(target: &mut Vec<u8>, number: u64) {
    assert!(number <= U40_MAX, "the field has 40 bits");
    put_low_bytes::<5>(target, number);
}

fn put_low_bytes<const COUNT: usize>(target: &mut Vec<u8>, number: u64) {
    let bytes = number.to_be_bytes();
    target.extend_from_slice(bytes.last_chunk::<COUNT>().expect("a u64 has 8 bytes"));
}

/// Appends the five bytes that hold a 12-bit and a 28-bit length: in front of each item of a node,
/// and inside the values of the by-seqno tree.
pub(crate) fn put_length_pair(target: &mut Vec<u8>, short: usize, long: usize) {
    assert!(short < 1 << 12, "the first length has 12 bits");
    assert!(long < 1 << 28, "the second length has 28 bits");
    put_u40(target, (short as u64) << 28 | long as u64);
}

/// Reads what [`put_length_pair`] wrote.
pub(crate) fn length_pair(fields: &mut Fields<'_>) -> Option<(usize, usize)> {
    let both = fields.number::<5>()?;
    Some((index(both >> 28), index(both & 0x0fff_ffff)))
}
