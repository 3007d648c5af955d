//! The sizes that blocks of slabs have.
//!
//! Multiples of 8 bytes up to 256, from there 16 sizes for each doubling: a block is at most 7
//! bytes larger than what was asked for, or a sixteenth. The allocator of the process has four
//! sizes for each doubling.

/// Larger blocks are the allocator's.
pub(super) const SIZE_MAX: usize = 2048;

/// Up to here sizes are multiples of [`STEP`].
const EVEN_MAX: usize = 256;
const STEP: usize = 8;
const EVEN_COUNT: usize = EVEN_MAX / STEP;
/// Sizes for each doubling above.
const PER_DOUBLING: usize = 16;
const DOUBLINGS: usize = (SIZE_MAX / EVEN_MAX).ilog2() as usize;

/// How many sizes there are.
pub(super) const CLASS_COUNT: usize = EVEN_COUNT + DOUBLINGS * PER_DOUBLING;

/// One of the sizes, as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SizeClass(u8);

impl SizeClass {
    /// The smallest size that is enough; `None` if none is.
    #[inline]
    pub(super) fn of(size: usize) -> Option<Self> {
        if size > SIZE_MAX {
            return None;
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

    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..CLASS_COUNT as u8).map(Self)
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Bytes of a block.
    pub(super) fn size(self) -> usize {
        let index = self.index();
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
            assert!(smallest - size < STEP.max(size / PER_DOUBLING), "{size}");
        }
        assert_eq!(SizeClass::of(SIZE_MAX + 1), None);
    }
}
