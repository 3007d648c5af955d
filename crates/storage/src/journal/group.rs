//! A group in the making.

use std::panic::resume_unwind;
use std::sync::mpsc;
use std::thread;

use platform::{AlignedBuffer, File, FileError, threads};

use crate::journal::encoder::{Encoder, Portions};
use crate::journal::layout::{BLOCK_SIZE, GROUP_HEADER_SIZE, GroupHeader, padded};
use crate::journal::record::Record;

/// The bytes of a group, which stay until it is durable: it may have to be written once more.
#[derive(Default)]
pub(super) struct Group {
    /// Of header and payload.
    bytes: usize,
    pub(super) record_count: usize,
    /// Bytes of each record that is to be encoded.
    record_sizes: Vec<usize>,
    /// Header and payload, and zeros up to the end of a block; nothing before it is encoded.
    buffer: AlignedBuffer,
    /// CRC-32C of the payload, if it was encoded in portions. Otherwise it is found with that of
    /// the header.
    payload_crc: Option<u32>,
}

/// Where a group is written to.
#[derive(Clone, Copy)]
pub(super) struct Destination<'a> {
    pub(super) file: &'a dyn File,
    /// Where the group begins.
    pub(super) position: u64,
    /// See [`JournalOptions::portion_bytes`](super::JournalOptions::portion_bytes).
    pub(super) portion_bytes: usize,
}

impl Group {
    /// Begins a group with as many of `records` as go into `bytes_max`, at least one, and says how
    /// many.
    pub(super) fn begin(&mut self, records: &[Record<'_>], bytes_max: usize) -> usize {
        self.clear();
        for record in records {
            let size = record.encoded_size();
            if !self.record_sizes.is_empty() && self.bytes + size > bytes_max {
                break;
            }
            self.bytes += size;
            self.record_sizes.push(size);
        }
        self.record_count = self.record_sizes.len();
        self.record_count
    }

    /// Takes over a group that was read, with its header and without what fills up its last block.
    pub(super) fn copy(&mut self, record_count: usize, group: &[u8]) {
        self.clear();
        self.record_count = record_count;
        self.bytes = group.len();
        self.buffer.extend_from_slice(group);
        self.buffer.resize(self.padded_size(), 0);
    }

    /// Bytes of memory that it takes for what is encoded.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.buffer.capacity() as u64
    }

    fn clear(&mut self) {
        self.bytes = GROUP_HEADER_SIZE;
        self.record_sizes.clear();
        self.buffer.clear();
        self.payload_crc = None;
    }

    fn padded_size(&self) -> usize {
        self.bytes.next_multiple_of(BLOCK_SIZE as usize)
    }

    /// Bytes on the disk.
    pub(super) fn padded_bytes(&self) -> u64 {
        padded(self.bytes as u64)
    }

    /// Encodes `records`, unless that is done, and writes the group. Gives the checksum in its
    /// header.
    ///
    /// # Errors
    /// What the system said. The group is encoded nevertheless.
    pub(super) fn write(
        &mut self,
        records: &[Record<'_>],
        header: GroupHeader,
        to: Destination<'_>,
    ) -> Result<u32, FileError> {
        let written_meanwhile = self.encode(records, to);
        let header = self.put(header);
        let bytes: &[u8] = match written_meanwhile {
            None => &self.buffer,
            Some(written) => {
                written?;
                // What is behind it does not count without it.
                &self.buffer[..BLOCK_SIZE as usize]
            }
        };
        to.file.write_at(bytes, to.position)?;
        Ok(header.crc)
    }

    /// Returns what became of writing all but the first block, if that was worth doing meanwhile.
    fn encode(
        &mut self,
        records: &[Record<'_>],
        to: Destination<'_>,
    ) -> Option<Result<(), FileError>> {
        // A copy, or the second attempt at a group: it is encoded already.
        if !self.buffer.is_empty() {
            return None;
        }
        self.buffer.append(self.padded_size());
        if self.bytes > 2 * to.portion_bytes
            && let Some(written) = self.encode_and_write(records, to)
        {
            return Some(written);
        }
        let encoder = Encoder::new(&mut self.buffer, None);
        self.payload_crc = encode(records, &self.record_sizes, encoder);
        None
    }

    /// Writes what follows the first block while another thread encodes: a device and a CPU have
    /// work at the same time. `None` if there is no other thread to be had.
    fn encode_and_write(
        &mut self,
        records: &[Record<'_>],
        to: Destination<'_>,
    ) -> Option<Result<(), FileError>> {
        let (sender, encoded) = mpsc::channel();
        let Self { record_sizes: sizes, buffer, payload_crc, .. } = self;
        let portions = Portions { sender, bytes_min: to.portion_bytes };
        let encode = move || encode(records, sizes, Encoder::new(buffer, Some(portions)));
        thread::scope(|scope| {
            let encoding = threads::spawn_scoped(scope, "journal-encode", encode).ok()?;
            let (mut next, mut written) = (0, Ok(()));
            for portion in encoded {
                let first_block = if next == 0 { BLOCK_SIZE } else { 0 };
                let bytes = &portion[first_block as usize..];
                // Behind a failure portions are still taken: the group is encoded whole, for
                // another attempt.
                if written.is_ok() && !bytes.is_empty() {
                    written = to.file.write_at(bytes, to.position + next + first_block);
                }
                next += portion.len() as u64;
            }
            *payload_crc = encoding.join().unwrap_or_else(|panic| resume_unwind(panic));
            Some(written)
        })
    }

    /// Puts the finished header into its room.
    fn put(&mut self, header: GroupHeader) -> GroupHeader {
        let header = header.finish(self.bytes, |crc| match self.payload_crc {
            Some(behind) => crc32c::crc32c_combine(crc, behind, self.bytes - GROUP_HEADER_SIZE),
            None => crc32c::crc32c_append(crc, &self.buffer[GROUP_HEADER_SIZE..self.bytes]),
        });
        self.buffer[..GROUP_HEADER_SIZE].copy_from_slice(&header.encode());
        header
    }
}

/// Encodes records of these sizes. Gives what [`Encoder::finish`] does.
fn encode(records: &[Record<'_>], sizes: &[usize], mut encoder: Encoder<'_>) -> Option<u32> {
    assert_eq!(records.len(), sizes.len(), "the group was begun with these records");
    for (record, size) in records.iter().zip(sizes) {
        record.encode(*size, &mut encoder);
    }
    encoder.finish()
}

#[cfg(test)]
mod tests;
