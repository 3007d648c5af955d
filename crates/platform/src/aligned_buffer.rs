//! Bytes that a device may take straight from memory.

use std::ops::{Deref, DerefMut};

use memmap2::MmapMut;

/// Memory, positions and lengths of writes that pass by the system's cache are multiples of this
/// many bytes: no device here has larger sectors (open(2), `O_DIRECT`).
pub const DIRECT_ALIGNMENT: usize = 4096;

/// Memory for so many bytes and more is taken from the system in large pages, where it has them. A
/// device is told of memory piece by piece, and pages of 4 KiB are many pieces: one was seen to
/// take 5.8 MB out of them in 3.5 ms, and out of large ones in 2.2 ms.
const LARGE_MIN: usize = 64 << 10;

/// Bytes of a large page. Where they are larger this is only a unit.
const LARGE_PAGE: usize = 2 << 20;

/// Large memory has a multiple of so many bytes, so that it seldom has to be replaced. What is not
/// touched takes none.
const LARGE_UNIT: usize = 8 << 20;

/// Bytes that grow like a vector's and whose first one lies at a multiple of [`DIRECT_ALIGNMENT`].
#[derive(Debug, Default)]
pub struct AlignedBuffer {
    memory: Memory,
    /// Bytes that count of the memory.
    length: usize,
}

/// Memory that is zeros at first.
#[derive(Debug)]
enum Memory {
    /// From the allocator, and the index of its first aligned byte.
    Small(Box<[u8]>, usize),
    /// From the system, and the index of the first large page.
    Large(MmapMut, usize),
}

impl AlignedBuffer {
    /// No bytes, and no memory taken.
    pub fn new() -> Self {
        Self::default()
    }

    /// So many zeros. They take no memory before others are written over them, if they are many.
    pub fn zeroed(length: usize) -> Self {
        Self { memory: Memory::new(length), length }
    }

    /// Takes memory for `additional` bytes more, and for as many again as there are.
    pub fn reserve(&mut self, additional: usize) {
        if self.capacity() - self.length >= additional {
            return;
        }
        let mut memory = Memory::new((self.length + additional).max(2 * self.length));
        memory.bytes_mut()[..self.length].copy_from_slice(self);
        self.memory = memory;
    }

    /// Bytes that it has memory for.
    pub fn capacity(&self) -> usize {
        self.memory.bytes().len()
    }

    /// Appends so many bytes, to be filled in: nothing is said of what they are.
    pub fn append(&mut self, length: usize) -> &mut [u8] {
        self.reserve(length);
        let start = self.length;
        self.length += length;
        &mut self.memory.bytes_mut()[start..start + length]
    }

    /// Appends `bytes`.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.append(bytes.len()).copy_from_slice(bytes);
    }

    /// Cuts the content to `length` bytes, or fills it up to that with `value`.
    pub fn resize(&mut self, length: usize, value: u8) {
        self.append(length.saturating_sub(self.length)).fill(value);
        self.truncate(length);
    }

    /// Cuts the content to `length` bytes, if it has more. The memory is kept.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Forgets the content. The memory is kept.
    pub fn clear(&mut self) {
        self.truncate(0);
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory.bytes()[..self.length]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[..self.length]
    }
}

impl Memory {
    /// Room for `length` bytes at least.
    fn new(length: usize) -> Self {
        let large = if length >= LARGE_MIN { Self::large(length) } else { None };
        large.unwrap_or_else(|| Self::small(length))
    }

    fn small(length: usize) -> Self {
        if length == 0 {
            return Self::default();
        }
        let bytes = vec![0; length + DIRECT_ALIGNMENT].into_boxed_slice();
        let start = bytes.as_ptr().align_offset(DIRECT_ALIGNMENT);
        assert!(start < DIRECT_ALIGNMENT, "an address of bytes can be aligned");
        Self::Small(bytes, start)
    }

    /// `None` if the system has no memory to map.
    fn large(length: usize) -> Option<Self> {
        let length = length.checked_next_multiple_of(LARGE_UNIT)?;
        let mapping = MmapMut::map_anon(length.checked_add(LARGE_PAGE)?).ok()?;
        let start = mapping.as_ptr().align_offset(LARGE_PAGE);
        assert!(start < LARGE_PAGE, "an address of bytes can be aligned");
        #[cfg(target_os = "linux")]
        drop(mapping.advise_range(memmap2::Advice::HugePage, start, length));
        Some(Self::Large(mapping, start))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Small(bytes, start) => &bytes[*start..],
            Self::Large(mapping, start) => &mapping[*start..],
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Small(bytes, start) => &mut bytes[*start..],
            Self::Large(mapping, start) => &mut mapping[*start..],
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::Small(Box::default(), 0)
    }
}

/// Whether a write of `bytes` at `position` may pass by the system's cache.
pub(crate) fn is_aligned(bytes: &[u8], position: u64) -> bool {
    bytes.as_ptr().align_offset(DIRECT_ALIGNMENT) == 0
        && bytes.len().is_multiple_of(DIRECT_ALIGNMENT)
        && position.is_multiple_of(DIRECT_ALIGNMENT as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_is_aligned_however_the_content_grows() {
        let mut buffer = AlignedBuffer::new();
        let mut expected: Vec<u8> = Vec::new();
        let mut random = crate::Random::from_seed(1);
        for step in 0..4_000 {
            let size = random.below(3_000) as usize;
            match random.below(40) {
                0 => {
                    buffer.clear();
                    expected.clear();
                }
                1 => {
                    buffer.truncate(10 * size);
                    expected.truncate(10 * size);
                }
                2 => {
                    buffer.resize(100 * size, 7);
                    expected.resize(100 * size, 7);
                }
                3 => {
                    buffer = AlignedBuffer::zeroed(size);
                    expected = vec![0; size];
                }
                _ => {
                    let bytes = vec![step as u8; size];
                    buffer.extend_from_slice(&bytes);
                    expected.extend_from_slice(&bytes);
                }
            }
            assert_eq!(*buffer, *expected);
            let is_large = matches!(buffer.memory, Memory::Large(..));
            assert!(is_large || expected.len() < LARGE_MIN + DIRECT_ALIGNMENT);
            let alignment = if is_large { LARGE_PAGE } else { DIRECT_ALIGNMENT };
            assert!(buffer.capacity() >= buffer.len());
            assert!(buffer.capacity() == 0 || buffer.as_ptr().align_offset(alignment) == 0);
        }
    }

    #[test]
    fn many_zeros_are_zeros() {
        let buffer = AlignedBuffer::zeroed(LARGE_PAGE + 1);
        assert_eq!(buffer.len(), LARGE_PAGE + 1);
        assert!(buffer.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn memory_length_and_position_have_to_be_aligned() {
        let buffer = AlignedBuffer::zeroed(2 * DIRECT_ALIGNMENT);
        assert!(is_aligned(&buffer, 0));
        assert!(is_aligned(&buffer[DIRECT_ALIGNMENT..], 3 * 4096));
        assert!(!is_aligned(&buffer[512..], 0));
        assert!(!is_aligned(&buffer[..512], 0));
        assert!(!is_aligned(&buffer, 512));
    }
}
