//! Reading big-endian fields one after the other. Every read past the end is `None`.

/// The bytes that are still to be read.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Reads `bytes` from the start.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*field)
    }

    /// The next `size` bytes.
    pub fn bytes(&mut self, size: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(field)
    }

    /// One byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Eight bytes with a sign.
    pub fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// Everything that was not read yet.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// `value` when everything was read: a section that is too long is as wrong as a short one.
    pub fn finish<T>(self, value: T) -> Option<T> {
        self.is_empty().then_some(value)
    }
}
