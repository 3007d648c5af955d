//! The sizes that blocks of slabs have.
//!
//! Multiples of 8 bytes up to 256, from there 16 sizes for each doubling up to 2048: a block is at
//! most 7 bytes larger than what was asked for, or a sixteenth. The allocator of the process has
//! four sizes for each doubling. Above are the sizes of which a slab holds 31, 30 and so on, to the
//! last byte but a few: of multiples of some step too little would fit to leave nothing behind.

use super::spans::SPAN_SIZE;

/// Bytes of a slab before its first block.
pub(super) const HEADER_SIZE: usize = 64;
/// Bytes of a slab for blocks.
pub(super) const BLOCKS_SIZE: usize = SPAN_SIZE - HEADER_SIZE;

/// Larger blocks are the allocator's.
pub(super) const SIZE_MAX: usize = size_of_share(SHARES_MIN);

/// Up to here sizes are multiples of [`STEP`].
const EVEN_MAX: usize = 256;
const STEP: usize = 8;
const EVEN_COUNT: usize = EVEN_MAX / STEP;
/// Sizes for each doubling above, up to [`DOUBLED_MAX`].
const PER_DOUBLING: usize = 16;
const DOUBLED_MAX: usize = 2048;
const DOUBLINGS: usize = (DOUBLED_MAX / EVEN_MAX).ilog2() as usize;
/// Sizes that are not shares of a slab.
const STEPPED_COUNT: usize = EVEN_COUNT + DOUBLINGS * PER_DOUBLING;
/// Blocks of a slab of the smallest and of the largest size that is a share of it.
const SHARES_MAX: usize = BLOCKS_SIZE / (DOUBLED_MAX + STEP);
const SHARES_MIN: usize = 8;

/// How many sizes there are.
pub(super) const CLASS_COUNT: usize = STEPPED_COUNT + SHARES_MAX - SHARES_MIN + 1;

/// The size of which a slab holds so many blocks.
const fn size_of_share(count: usize) -> usize {
    BLOCKS_SIZE / count / STEP * STEP
}

/// One of the sizes, as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SizeClass(u8);

impl SizeClass {
    /// The smallest size that is enough; `None` if none is.
    #[inline]
    pub(super) fn of(size: usize) -> Option<Self> {
        if size > DOUBLED_MAX {
            return Self::share_of(size);
        }
        let last = size.max(1) - 1;
        if last < EVEN_MAX {
            return Some(Self((last / STEP) as u8));
        }
        let shift = last.ilog2() - PER_DOUBLING.ilog2();
        let doubling = (shift - (EVEN_MAX / PER_DOUBLING).ilog2()) as usize;
        let index = EVEN_COUNT + doubling * PER_DOUBLING + (last >> shift) - PER_DOUBLING;
        Some(Self(index as u8))
    }

    /// The same where sizes are shares of a slab.
    fn share_of(size: usize) -> Option<Self> {
        if size > SIZE_MAX {
            return None;
        }
        let count = BLOCKS_SIZE / size.next_multiple_of(STEP);
        Some(Self((STEPPED_COUNT + SHARES_MAX - count) as u8))
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..CLASS_COUNT as u8).map(Self)
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Bytes of a block.
    pub(super) fn size(self) -> usize {
        let index = self.index();
        if let Some(above) = index.checked_sub(STEPPED_COUNT) {
            return size_of_share(SHARES_MAX - above);
        }
        let Some(above) = index.checked_sub(EVEN_COUNT) else { return (index + 1) * STEP };
        let step = (EVEN_MAX / PER_DOUBLING) << (above / PER_DOUBLING);
        (PER_DOUBLING + above % PER_DOUBLING + 1) * step
    }
}

const _: () = assert!(CLASS_COUNT <= u8::MAX as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_block_that_is_enough() {
        let sizes: Vec<usize> = SizeClass::all().map(SizeClass::size).collect();
        assert!(sizes.is_sorted_by(|one, next| one < next) && sizes.last() == Some(&SIZE_MAX));
        assert!(sizes.iter().all(|size| size % STEP == 0));
        for size in 1..=SIZE_MAX {
            let smallest = sizes.iter().copied().find(|&block| block >= size).unwrap();
            assert_eq!(SizeClass::of(size).unwrap().size(), smallest, "{size}");
            let excess_max = if size <= DOUBLED_MAX { size / PER_DOUBLING } else { size / 7 };
            assert!(smallest - size < STEP.max(excess_max), "{size}");
            let count = BLOCKS_SIZE / smallest;
            let is_share = BLOCKS_SIZE - count * smallest < STEP * count;
            assert!(size <= DOUBLED_MAX || is_share, "a slab of {smallest} is filled");
        }
        assert_eq!(SizeClass::of(SIZE_MAX + 1), None);
    }
}
