//! What is directly in an object or an array.

use std::ops::Range;

use crate::failure::Failure;
use crate::scan::{expect, skip_space, string_end, value_end};

/// The entries of a container, in their order. Each value must be passed before the next entry.
pub(crate) struct Entries<'d> {
    text: &'d [u8],
    is_object: bool,
    /// Containers around the values.
    depth: usize,
    /// Behind the opening bracket or the last value that was passed.
    at: usize,
    count: usize,
}

/// The beginning of an entry.
#[derive(Clone, Debug)]
pub(crate) struct EntryHead {
    /// Where the key or, in an array, the value begins.
    pub(crate) start: usize,
    /// The key without its quotes; empty in an array.
    pub(crate) key: Range<usize>,
    /// Where the value begins.
    pub(crate) value_at: usize,
    /// How many entries are before it.
    pub(crate) index: usize,
    /// Behind the value before it, or behind the opening bracket.
    pub(crate) previous_end: usize,
}

impl<'d> Entries<'d> {
    /// Of the container that begins at `at` and has `depth` containers around it. `None` if there
    /// is none.
    pub(crate) fn of(text: &'d [u8], at: usize, depth: usize) -> Option<Self> {
        let is_object = match text.get(at)? {
            b'{' => true,
            b'[' => false,
            _ => return None,
        };
        Some(Self { text, is_object, depth: depth + 1, at: at + 1, count: 0 })
    }

    /// Whether the entries have keys.
    pub(crate) fn is_object(&self) -> bool {
        self.is_object
    }

    /// How many values were passed.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Behind the last value that was passed, or behind the opening bracket.
    pub(crate) fn end(&self) -> usize {
        self.at
    }

    /// The next entry, up to its value: the same one until its value is passed.
    pub(crate) fn next(&self) -> Result<Option<EntryHead>, Failure> {
        let mut start = skip_space(self.text, self.at);
        let close = if self.is_object { b'}' } else { b']' };
        if self.text.get(start) == Some(&close) {
            return Ok(None);
        }
        if self.count > 0 {
            start = skip_space(self.text, expect(self.text, start, b',')?);
        }
        let (key, value_at) = if self.is_object { self.key(start)? } else { (0..0, start) };
        let (index, previous_end) = (self.count, self.at);
        Ok(Some(EntryHead { start, key, value_at, index, previous_end }))
    }

    /// Passes the value of an entry, and tells where it ends.
    pub(crate) fn pass(&mut self, head: &EntryHead) -> Result<usize, Failure> {
        self.at = value_end(self.text, head.value_at, self.depth)?;
        self.count += 1;
        Ok(self.at)
    }

    /// Passes all that is left.
    pub(crate) fn pass_all(&mut self) -> Result<(), Failure> {
        while let Some(head) = self.next()? {
            self.pass(&head)?;
        }
        Ok(())
    }

    fn key(&self, start: usize) -> Result<(Range<usize>, usize), Failure> {
        let end = string_end(self.text, start)?;
        let colon = skip_space(self.text, end);
        let value_at = skip_space(self.text, expect(self.text, colon, b':')?);
        Ok((start + 1..end - 1, value_at))
    }
}
