//! Bytes that have arrived, cut into frames without copying.

use std::io::{self, Read};

use protocol::{Frame, FrameError, Parsed};

/// Bytes of a buffer at first: thousands of connections may bring little each.
const SIZE_MIN: usize = 1 << 10;
/// Bytes that a buffer grows to when reads fill it, though no frame needs them.
const SIZE_FILLED_MAX: usize = 16 << 10;
/// Bytes of a frame that are accepted: the largest document with its metadata.
const FRAME_SIZE_MAX: usize = 32 << 20;

/// A buffer that is filled at its end and read from its start. It grows with what reads bring, and
/// to its largest frame.
#[derive(Debug, Default)]
pub struct ReceiveBuffer {
    /// Invariant: `start <= end <= bytes.len()`.
    bytes: Vec<u8>,
    /// The first byte that no frame has taken.
    start: usize,
    /// The end of what has arrived.
    end: usize,
    /// The last read used up the room.
    was_filled: bool,
}

/// What one read brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    /// Bytes that were read; 0 at the end of the stream.
    pub bytes: usize,
    /// The room was used up: there may be more to read at once.
    pub is_full: bool,
}

impl ReceiveBuffer {
    /// An empty buffer without memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads once.
    pub fn fill_from(&mut self, source: &mut impl Read) -> io::Result<Filled> {
        self.make_room();
        let room = self.bytes.get_mut(self.end..).unwrap_or_default();
        let bytes = source.read(room)?;
        let is_full = bytes == room.len();
        self.end += bytes;
        self.was_filled = is_full;
        Ok(Filled { bytes, is_full })
    }

    /// The next frame, once it is complete.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let arrived = self.bytes.get(self.start..self.end).unwrap_or_default();
        match Frame::parse(arrived, FRAME_SIZE_MAX) {
            Parsed::Complete { frame, consumed } => {
                self.start += consumed;
                Ok(Some(frame))
            }
            Parsed::Incomplete { .. } => Ok(None),
            Parsed::Malformed(error) => Err(error),
        }
    }

    /// Bytes that have arrived and that no frame has taken.
    pub fn unread_size(&self) -> usize {
        self.end - self.start
    }

    fn make_room(&mut self) {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let may_grow = self.was_filled && self.bytes.len() < SIZE_FILLED_MAX;
        if may_grow || self.end == self.bytes.len() {
            self.bytes.resize((self.bytes.len() * 2).max(SIZE_MIN), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::Opcode;
    use protocol::client::Request;

    use super::*;

    #[test]
    fn frames_of_every_size_come_out_whole_however_they_arrive() {
        for step in [1, 7, 24, 5_000, 100_000] {
            let sizes = [0, 1, 100, 40_000, 3, 70_000, 0];
            let mut wire = Vec::new();
            for size in sizes {
                let value = vec![b'v'; size];
                Request { value: &value, ..Request::new(Opcode::Set) }.encode(&mut wire);
            }
            let mut buffer = ReceiveBuffer::new();
            let mut seen = Vec::new();
            for mut chunk in wire.chunks(step) {
                while !chunk.is_empty() {
                    buffer.fill_from(&mut chunk).unwrap();
                    while let Some(frame) = buffer.next_frame().unwrap() {
                        assert!(frame.value.iter().all(|byte| *byte == b'v'));
                        seen.push(frame.value.len());
                    }
                }
            }
            assert_eq!(seen, sizes, "chunks of {step}");
            assert_eq!(buffer.unread_size(), 0);
        }
    }

    #[test]
    fn a_buffer_is_as_large_as_what_arrives_at_once() {
        // Bytes that arrive at once, and the room that is there for the read after that.
        for (arriving, room) in [(24, SIZE_MIN), (SIZE_MIN, 2 * SIZE_MIN), (1 << 20, 16 << 10)] {
            let mut wire = Vec::new();
            while wire.len() < arriving {
                Request::new(Opcode::Noop).encode(&mut wire);
            }
            let mut wire = wire.as_slice();
            let mut buffer = ReceiveBuffer::new();
            while !wire.is_empty() {
                buffer.fill_from(&mut wire).unwrap();
                while buffer.next_frame().unwrap().is_some() {}
            }
            buffer.make_room();
            assert_eq!(buffer.bytes.len(), room, "{arriving}");
        }
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        let mut buffer = ReceiveBuffer::new();
        let filled = buffer.fill_from(&mut &b"HTTP/1.1 400"[..]).unwrap();
        assert_eq!(filled, Filled { bytes: 12, is_full: false });
        assert_eq!(buffer.next_frame(), Err(FrameError::UnknownMagic(b'H')));
    }
}
