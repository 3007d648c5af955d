//! What the connections of a loop have in common: what they want of the kernel, and memory.

use std::io;

use io_uring::opcode::AsyncCancel;
use io_uring::squeue::Entry;

use super::buffer_ring::BufferRing;
use super::operation::Operation;

/// Bytes that are sent from memory of the loop's own; more goes from where it lies by a call.
pub(super) const SEND_BYTES_MAX: usize = 16 << 10;
/// Buffers kept for the next sends, and bytes of those: many connections that send now and then
/// leave no more behind.
const SPARE_BUFFERS_MAX: usize = 256;
const SPARE_BYTES_MAX: usize = 256 << 10;

/// What connections work with.
#[derive(Debug)]
pub(super) struct Work {
    /// Asked for at the next wait, in this order.
    pub(super) queued: Vec<Entry>,
    /// Slots whose first try to send is among these.
    pub(super) tried: Vec<u32>,
    pub(super) buffers: BufferRing,
    /// Empty ones, each with room for what it was used for.
    spare: Vec<Vec<u8>>,
    spare_bytes: usize,
    /// There are no more waits: nothing more is asked for.
    pub(super) is_over: bool,
}

/// What somebody who waits for a connection is to hear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum News {
    Nothing,
    /// What was written is on its way, or how it stands with that has changed.
    Room,
    Readable,
    /// Reading meets the end, or an error.
    Ending,
}

impl Work {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            queued: Vec::new(),
            tried: Vec::new(),
            buffers: BufferRing::new()?,
            spare: Vec::new(),
            spare_bytes: 0,
            is_over: false,
        })
    }

    /// Asks for `entry`, whose completion will name `operation`.
    pub(super) fn ask(&mut self, entry: Entry, operation: Operation) {
        assert!(!self.is_over, "nobody is asked for what nobody waits for");
        self.queued.push(entry.user_data(operation.bits()));
    }

    /// Asks for the end of `operation`, which completes as before or as cancelled.
    pub(super) fn cancel(&mut self, operation: Operation) {
        self.ask(AsyncCancel::new(operation.bits()).build(), Operation::Cancel);
    }

    /// An empty buffer with room for `size` bytes.
    pub(super) fn take_buffer(&mut self, size: usize) -> Vec<u8> {
        assert!(size <= SEND_BYTES_MAX, "a send has a bound: {size}");
        let mut buffer = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= buffer.capacity();
        buffer.reserve_exact(size);
        buffer
    }

    /// Keeps a buffer for others.
    pub(super) fn put_buffer(&mut self, mut buffer: Vec<u8>) {
        let bytes = self.spare_bytes + buffer.capacity();
        if self.spare.len() < SPARE_BUFFERS_MAX && bytes <= SPARE_BYTES_MAX {
            self.spare_bytes = bytes;
            buffer.clear();
            self.spare.push(buffer);
        }
    }
}
