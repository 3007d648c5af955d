//! Bytes that a device may take straight from memory.

use std::ops::{Deref, DerefMut};

/// Memory, positions and lengths of writes that pass by the system's cache are multiples of this
/// many bytes: no device here has larger sectors (open(2), `O_DIRECT`).
pub const DIRECT_ALIGNMENT: usize = 4096;

/// Bytes that grow like a vector's and whose first one lies at a multiple of [`DIRECT_ALIGNMENT`].
#[derive(Debug, Default)]
pub struct AlignedBuffer {
    /// Bytes in front of the first one, which nobody sees, and then the content.
    bytes: Vec<u8>,
    /// How many are in front.
    start: usize,
}

impl AlignedBuffer {
    /// No bytes, and no memory taken.
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), start: 0 }
    }

    /// So many zeros.
    pub fn zeroed(length: usize) -> Self {
        let mut buffer = Self::new();
        buffer.resize(length, 0);
        buffer
    }

    /// Takes memory for `additional` bytes more, and for as many again as there are.
    pub fn reserve(&mut self, additional: usize) {
        if self.bytes.capacity() - self.bytes.len() >= additional && self.bytes.capacity() > 0 {
            return;
        }
        let length = self.len();
        let wanted = (length + additional).max(2 * length);
        let mut bytes: Vec<u8> = Vec::with_capacity(wanted + DIRECT_ALIGNMENT);
        let start = bytes.as_ptr().align_offset(DIRECT_ALIGNMENT);
        assert!(start < DIRECT_ALIGNMENT, "an address of bytes can be aligned");
        bytes.resize(start, 0);
        bytes.extend_from_slice(self);
        *self = Self { bytes, start };
    }

    /// Appends `bytes`.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Cuts the content to `length` bytes, or fills it up to that with `value`.
    pub fn resize(&mut self, length: usize, value: u8) {
        self.reserve(length.saturating_sub(self.len()));
        self.bytes.resize(self.start + length, value);
    }

    /// Cuts the content to `length` bytes, if it has more. The memory is kept.
    pub fn truncate(&mut self, length: usize) {
        self.bytes.truncate(self.start + length);
    }

    /// Forgets the content. The memory is kept.
    pub fn clear(&mut self) {
        self.truncate(0);
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..]
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
        for step in 0..2_000 {
            let size = random.below(3_000) as usize;
            match random.below(20) {
                0 => {
                    buffer.clear();
                    expected.clear();
                }
                1 => {
                    buffer.truncate(size);
                    expected.truncate(size);
                }
                2 => {
                    buffer.resize(size, 7);
                    expected.resize(size, 7);
                }
                _ => {
                    let bytes = vec![step as u8; size];
                    buffer.extend_from_slice(&bytes);
                    expected.extend_from_slice(&bytes);
                }
            }
            assert_eq!(*buffer, *expected);
            let is_empty_and_new = buffer.bytes.capacity() == 0;
            assert!(is_empty_and_new || buffer.as_ptr().align_offset(DIRECT_ALIGNMENT) == 0);
        }
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
