//! Chunks in blocks: bytes with a length and a checksum, cut by the type byte of each block.
//!
//! ```text
//! block:        type u8 (0 data, 1 a header begins here) | 4095 bytes of chunks
//! data chunk:   u32 0x80000000 | length, u32 checksum, bytes
//! header chunk: u32 length + 4,          u32 checksum, bytes
//! ```
//!
//! A chunk that crosses a block boundary has the next block's type byte, 0, in its middle. A chunk
//! whose position is a boundary begins behind the type byte.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use std::path::Path;

use platform::{File, FileError};

use crate::couchstore::bytes::{Fields, index, length};
use crate::couchstore::checksum::Checksum;
use crate::couchstore::read_ahead::ReadAhead;
use crate::error::StorageError;

/// Bytes of a block, its type byte included.
pub(crate) const BLOCK_SIZE: u64 = 4096;

/// The type byte of a block of data.
pub(crate) const DATA_BLOCK: u8 = 0;

/// The type byte of a block that begins with a header.
pub(crate) const HEADER_BLOCK: u8 = 1;

/// Length and checksum in front of a chunk's bytes.
pub(crate) const CHUNK_HEAD_SIZE: usize = 8;

/// Set in the length of data chunks, clear in header chunks.
const DATA_CHUNK: u32 = 0x8000_0000;

/// Bytes of a header chunk, at most.
const HEADER_CHUNK_SIZE_MAX: usize = 1024;

/// Where chunks are read from: a file up to a position.
#[derive(Clone, Copy)]
pub(crate) struct ChunkSource<'a> {
    pub(crate) file: &'a dyn File,
    pub(crate) path: &'a Path,
    pub(crate) checksum: Checksum,
    /// No chunk may reach beyond: the position of the header.
    pub(crate) end: u64,
}

impl<'a> ChunkSource<'a> {
    /// Reads the data chunk at `position`. `size_hint` is its expected size with its head; the
    /// right hint makes it one read. `buffer` lends its memory to the result.
    pub(crate) fn read<'b>(
        &self,
        position: u64,
        size_hint: usize,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], StorageError> {
        self.read_by(|target, from| self.file.read_at(target, from), position, size_hint, buffer)
    }

    /// The same for one of many chunks that are read one behind the other.
    pub(super) fn read_in_order<'b>(
        &self,
        ahead: &mut ReadAhead,
        position: u64,
        size_hint: usize,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], StorageError> {
        let read_at = |target: &mut [u8], from| ahead.read_at(self.file, self.end, target, from);
        self.read_by(read_at, position, size_hint, buffer)
    }

    /// The payload of `size` bytes from `position` on, whatever it is; fewer bytes where a whole
    /// chunk could not be, either.
    pub(super) fn read_raw(&self, position: u64, size: usize) -> Result<Vec<u8>, StorageError> {
        let mut payload = Vec::new();
        self.read_payload(
            |target, from| self.file.read_at(target, from),
            position,
            size,
            &mut payload,
        )?;
        Ok(payload)
    }

    fn read_by<'b>(
        &self,
        mut read_at: impl FnMut(&mut [u8], u64) -> Result<usize, FileError>,
        position: u64,
        size_hint: usize,
        buffer: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], StorageError> {
        let hint = size_hint.max(CHUNK_HEAD_SIZE);
        self.read_payload(&mut read_at, position, hint, buffer)?;
        let Some((length, expected)) = chunk_head(buffer) else {
            return Err(self.corrupt(position, "a chunk that begins beyond its blocks"));
        };
        if length & DATA_CHUNK == 0 {
            return Err(self.corrupt(position, "not a data chunk"));
        }
        let size = index(u64::from(length & !DATA_CHUNK)).saturating_add(CHUNK_HEAD_SIZE);
        if size > hint {
            self.read_payload(&mut read_at, position, size, buffer)?;
        }
        let Some(body) = buffer.get(CHUNK_HEAD_SIZE..size) else {
            return Err(self.corrupt(position, "a chunk that ends beyond its blocks"));
        };
        if self.checksum.of(body) != expected {
            return Err(self.corrupt(position, "the checksum of a chunk"));
        }
        Ok(body)
    }

    /// Fills `buffer` with `size` payload bytes from `position` on, fewer at the end of the source
    /// or in front of a block that is not of type data.
    fn read_payload(
        &self,
        mut read_at: impl FnMut(&mut [u8], u64) -> Result<usize, FileError>,
        position: u64,
        size: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<(), StorageError> {
        // A damaged size must not have more memory taken than there are bytes in front of the
        // header.
        let available = self.end.saturating_sub(position);
        let raw_size = raw_size(position, size as u64).min(available);
        buffer.clear();
        buffer.resize(index(raw_size), 0);
        let count = read_at(buffer, position)?;
        buffer.truncate(count);
        remove_type_bytes(position, buffer);
        buffer.truncate(size);
        Ok(())
    }

    pub(crate) fn corrupt(&self, position: u64, what: &'static str) -> StorageError {
        StorageError::corrupt(self.path, position, what)
    }
}

/// Reads the body of the header chunk behind the type byte of the block at `position`. `Ok(None)`
/// when the bytes there are no such chunk; the checksum is the caller's to compare.
pub(crate) fn read_header_chunk(
    file: &dyn File,
    position: u64,
) -> Result<Option<(Vec<u8>, u32)>, StorageError> {
    let mut buffer = vec![0; HEADER_CHUNK_SIZE_MAX.saturating_add(CHUNK_HEAD_SIZE)];
    let count = file.read_at(&mut buffer, position.saturating_add(1))?;
    buffer.truncate(count);
    let Some((stored_length, checksum)) = chunk_head(&buffer) else { return Ok(None) };
    let stored_length = index(u64::from(stored_length));
    if stored_length > HEADER_CHUNK_SIZE_MAX {
        return Ok(None);
    }
    // The stored length counts the checksum.
    let body = stored_length.checked_add(4).and_then(|end| buffer.get(CHUNK_HEAD_SIZE..end));
    Ok(body.map(|body| (body.to_vec(), checksum)))
}

/// Appends a header chunk to `target`.
pub(crate) fn put_header_chunk(target: &mut Vec<u8>, body: &[u8], checksum: Checksum) {
    let stored_length = u32::try_from(body.len().saturating_add(4)).unwrap_or(u32::MAX);
    assert!(index(u64::from(stored_length)) <= HEADER_CHUNK_SIZE_MAX, "a header is small");
    target.extend_from_slice(&stored_length.to_be_bytes());
    target.extend_from_slice(&checksum.of(body).to_be_bytes());
    target.extend_from_slice(body);
}

/// The head of a data chunk.
pub(crate) fn data_chunk_head(body: &[u8], checksum: Checksum) -> [u8; CHUNK_HEAD_SIZE] {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    assert!(length < DATA_CHUNK, "a chunk holds less than 2 GiB");
    let head = u64::from(length | DATA_CHUNK) << 32 | u64::from(checksum.of(body));
    head.to_be_bytes()
}

/// The first block boundary at or behind `position`.
pub(crate) fn next_block(position: u64) -> u64 {
    position.div_ceil(BLOCK_SIZE).saturating_mul(BLOCK_SIZE)
}

fn chunk_head(buffer: &[u8]) -> Option<(u32, u32)> {
    let mut fields = Fields::new(buffer);
    Some((fields.u32()?, fields.u32()?))
}

/// Bytes in the file that `size` payload bytes from `position` on take, type bytes included.
pub(crate) fn raw_size(position: u64, size: u64) -> u64 {
    let payload = BLOCK_SIZE.saturating_sub(1);
    let in_block = position.checked_rem(BLOCK_SIZE).unwrap_or(0);
    // Payload bytes of this block that lie in front of `position`.
    let before = in_block.saturating_sub(1);
    let crossed = before.saturating_add(size).saturating_sub(1).checked_div(payload).unwrap_or(0);
    let at_boundary = u64::from(in_block == 0);
    size.saturating_add(crossed).saturating_add(at_boundary)
}

/// Takes the type bytes out of raw bytes that begin at `position`, and cuts them in front of a
/// block that is not of type data.
fn remove_type_bytes(position: u64, raw: &mut Vec<u8>) {
    let mut position = position;
    let (mut from, mut to) = (0_usize, 0_usize);
    while from < raw.len() {
        let in_block = position.checked_rem(BLOCK_SIZE).unwrap_or(0);
        if in_block == 0 {
            if raw.get(from) != Some(&DATA_BLOCK) {
                break;
            }
            from = from.saturating_add(1);
            position = position.saturating_add(1);
            continue;
        }
        let left = index(BLOCK_SIZE.saturating_sub(in_block));
        let end = from.saturating_add(left).min(raw.len());
        if from != to {
            raw.copy_within(from..end, to);
        }
        let count = end.saturating_sub(from);
        to = to.saturating_add(count);
        position = position.saturating_add(count as u64);
        from = end;
    }
    raw.truncate(to);
}

/// Appends chunks to a file through one buffer. Never reads.
pub(crate) struct ChunkWriter<'a> {
    file: &'a dyn File,
    checksum: Checksum,
    /// Where the buffer's first byte goes.
    buffer_position: u64,
    buffer: &'a mut Vec<u8>,
    bytes_written: u64,
}

/// The buffer is written out when it holds this many bytes.
const WRITE_BUFFER_SIZE: usize = 256 * 1024;

impl<'a> ChunkWriter<'a> {
    /// Appends at `position` with the memory of `buffer`.
    pub(crate) fn new(
        file: &'a dyn File,
        checksum: Checksum,
        position: u64,
        buffer: &'a mut Vec<u8>,
    ) -> Self {
        buffer.clear();
        Self { file, checksum, buffer_position: position, buffer, bytes_written: 0 }
    }

    /// Where the next byte goes.
    pub(crate) fn position(&self) -> u64 {
        self.buffer_position.saturating_add(length(self.buffer))
    }

    /// Bytes handed to the system so far, type bytes and padding included.
    pub(crate) fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Appends a data chunk; gives its position and its size with its head.
    pub(crate) fn append(&mut self, body: &[u8]) -> Result<(u64, u64), StorageError> {
        let position = self.position();
        assert!(position > 0, "position 0 means that there is no chunk");
        let head = data_chunk_head(body, self.checksum);
        self.append_payload(&head)?;
        self.append_payload(body)?;
        Ok((position, length(body).saturating_add(length(&head))))
    }

    /// Appends what is left of a damaged chunk, its head included, so that it is refused as one
    /// whose checksum does not hold, whatever was damaged; gives its position.
    pub(super) fn append_damaged(&mut self, chunk: &[u8]) -> Result<u64, StorageError> {
        let position = self.position();
        assert!(position > 0, "position 0 means that there is no chunk");
        let (_, stored) = chunk_head(chunk).unwrap_or_default();
        let body = chunk.get(CHUNK_HEAD_SIZE..).unwrap_or_default();
        let [length @ .., _, _, _, _] = data_chunk_head(body, self.checksum);
        let is_refused = stored != self.checksum.of(body);
        let checksum = if is_refused { stored } else { !stored };
        self.append_payload(&length)?;
        self.append_payload(&checksum.to_be_bytes())?;
        self.append_payload(body)?;
        Ok(position)
    }

    /// Appends a header at the next block boundary, its type byte first; gives its position.
    pub(crate) fn append_header(&mut self, kind: u8, body: &[u8]) -> Result<u64, StorageError> {
        let position = next_block(self.position());
        let padding = position.saturating_sub(self.position());
        let padded = self.buffer.len().saturating_add(index(padding));
        self.buffer.resize(padded, 0);
        self.buffer.push(kind);
        put_header_chunk(self.buffer, body, self.checksum);
        Ok(position)
    }

    /// Writes out what is buffered.
    pub(crate) fn flush(&mut self) -> Result<(), StorageError> {
        if !self.buffer.is_empty() {
            self.file.write_at(self.buffer, self.buffer_position)?;
            self.bytes_written = self.bytes_written.saturating_add(length(self.buffer));
            self.buffer_position = self.position();
            self.buffer.clear();
        }
        Ok(())
    }

    fn append_payload(&mut self, mut payload: &[u8]) -> Result<(), StorageError> {
        while !payload.is_empty() {
            let in_block = self.position().checked_rem(BLOCK_SIZE).unwrap_or(0);
            if in_block == 0 {
                self.buffer.push(DATA_BLOCK);
                continue;
            }
            let left = index(BLOCK_SIZE.saturating_sub(in_block)).min(payload.len());
            let (now, later) = payload.split_at(left);
            self.buffer.extend_from_slice(now);
            payload = later;
            if self.buffer.len() >= WRITE_BUFFER_SIZE {
                self.flush()?;
            }
        }
        Ok(())
    }
}
