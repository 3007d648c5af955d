//! Filling a group's memory, and letting go of what is whole.

use std::sync::mpsc::Sender;

use crate::journal::layout::{BLOCK_SIZE, GROUP_HEADER_SIZE};

const BLOCK: usize = BLOCK_SIZE as usize;

/// Puts the bytes of a group one behind the other, and lets go of portions: whole blocks, which
/// somebody else may read while the next ones are filled.
pub(super) struct Encoder<'group> {
    /// What is not let go yet, whole blocks.
    rest: &'group mut [u8],
    /// Bytes of it that are filled.
    filled: usize,
    /// Bytes of the group in front of it.
    gone: usize,
    portions: Option<Portions<'group>>,
    /// CRC-32C of the payload in front of it.
    payload_crc: u32,
}

/// Where portions go as soon as they are whole, in their order.
pub(super) struct Portions<'group> {
    pub(super) sender: Sender<&'group [u8]>,
    /// Bytes of each but the last one, at least.
    pub(super) bytes_min: usize,
}

impl<'group> Encoder<'group> {
    /// Fills `group`, whole blocks, behind the room for its header.
    pub(super) fn new(group: &'group mut [u8], portions: Option<Portions<'group>>) -> Self {
        assert!(group.len().is_multiple_of(BLOCK), "a group consists of blocks");
        Self { rest: group, filled: GROUP_HEADER_SIZE, gone: 0, portions, payload_crc: 0 }
    }

    /// Bytes of the group so far.
    pub(super) fn position(&self) -> usize {
        self.gone + self.filled
    }

    /// Appends so many bytes, to be filled in: nothing is said of what they are.
    pub(super) fn append(&mut self, length: usize) -> &mut [u8] {
        let start = self.filled;
        self.filled += length;
        &mut self.rest[start..self.filled]
    }

    /// Appends `bytes`.
    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.append(bytes.len()).copy_from_slice(bytes);
    }

    /// Lets go of a portion, if there is one.
    pub(super) fn let_go(&mut self) {
        let Some(portions) = &self.portions else { return };
        if self.filled < portions.bytes_min {
            return;
        }
        let whole_bytes = self.filled / BLOCK * BLOCK;
        let (whole, rest) = std::mem::take(&mut self.rest).split_at_mut(whole_bytes);
        let header_size = if self.gone == 0 { GROUP_HEADER_SIZE } else { 0 };
        self.payload_crc = crc32c::crc32c_append(self.payload_crc, &whole[header_size..]);
        self.rest = rest;
        self.filled -= whole_bytes;
        self.gone += whole_bytes;
        portions.send(whole);
    }

    /// The end of the group: zeros up to the end of its last block. Gives the CRC-32C of the
    /// payload, if it came in portions.
    pub(super) fn finish(self) -> Option<u32> {
        let (content, padding) = self.rest.split_at_mut(self.filled);
        assert!(padding.len() < BLOCK, "a group is as large as was said");
        padding.fill(0);
        let portions = self.portions?;
        let header_size = if self.gone == 0 { GROUP_HEADER_SIZE } else { 0 };
        let payload_crc = crc32c::crc32c_append(self.payload_crc, &content[header_size..]);
        portions.send(self.rest);
        Some(payload_crc)
    }
}

impl<'group> Portions<'group> {
    fn send(&self, portion: &'group [u8]) {
        self.sender.send(portion).expect("who takes portions takes all");
    }
}
