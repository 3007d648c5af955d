//! The buffers that the kernel receives into: a fixed number for each loop, lent out between a
//! completion and the next wait.

use std::io;
use std::mem;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;
use memmap2::{MmapMut, MmapRaw};

/// How many; a power of two. When all are lent out, receiving ends and connections are read one by
/// one.
const COUNT: u16 = 256;
/// Bytes of each: small requests, many of them where they are pipelined.
pub(super) const BUFFER_BYTES: usize = 4096;
/// The ring of their descriptions lies before them, on pages of its own.
const BUFFERS_AT: usize = 4096;
/// The one group of buffers of a ring.
pub(super) const GROUP: u16 = 0;

const _: () = assert!(COUNT.is_power_of_two());
const _: () = assert!(BUFFER_BYTES <= u16::MAX as usize);
const _: () = assert!(COUNT as usize * size_of::<BufRingEntry>() <= BUFFERS_AT);

/// The buffers of one loop.
#[derive(Debug)]
pub(super) struct BufferRing {
    /// Nothing but this file holds references into it, and those to what is lent out alone.
    memory: Arc<MmapRaw>,
    /// Buffers given to the kernel since the beginning, modulo 2^16.
    tail: u16,
    is_lent: Box<[bool]>,
    lent_count: usize,
}

/// A buffer that the kernel has filled, and those of its bytes that were not read. It is this
/// process' until it is given back.
#[derive(Debug)]
pub(super) struct Lent {
    id: u16,
    start: u16,
    end: u16,
}

impl Lent {
    /// Bytes that were not read.
    pub(super) fn size(&self) -> usize {
        usize::from(self.end - self.start)
    }

    /// `count` more were read.
    pub(super) fn advance(&mut self, count: usize) {
        assert!(count <= self.size(), "no more is read than there is");
        self.start += count as u16;
    }
}

impl BufferRing {
    /// Buffers that no ring knows yet.
    pub(super) fn new() -> io::Result<Self> {
        let memory = MmapMut::map_anon(BUFFERS_AT + usize::from(COUNT) * BUFFER_BYTES)?;
        let mut buffers = Self {
            memory: Arc::new(MmapRaw::from(memory)),
            tail: 0,
            is_lent: vec![true; usize::from(COUNT)].into_boxed_slice(),
            lent_count: usize::from(COUNT),
        };
        for id in 0..COUNT {
            buffers.give_back(Lent { id, start: 0, end: 0 });
        }
        Ok(buffers)
    }

    /// Has a ring receive into these.
    pub(super) fn register(&self, submitter: &Submitter<'_>) -> io::Result<()> {
        let address = self.memory.as_ptr().addr() as u64;
        // SAFETY: the ring of descriptions begins at a page and lies within the mapping, which is
        // given back only when nothing can be received any more (`Poll::drop`), or never.
        unsafe { submitter.register_buf_ring_with_flags(address, COUNT, GROUP, 0) }
    }

    /// Takes over what the kernel has received.
    pub(super) fn lend(&mut self, id: u16, size: usize) -> Lent {
        assert!(id < COUNT, "the kernel fills buffers that it was given: {id}");
        assert!(size <= BUFFER_BYTES, "the kernel keeps to a buffer's size: {size}");
        let was_lent = mem::replace(&mut self.is_lent[usize::from(id)], true);
        assert!(!was_lent, "a buffer is lent once: {id}");
        self.lent_count += 1;
        Lent { id, start: 0, end: size as u16 }
    }

    /// What was received and not read.
    pub(super) fn bytes(&self, lent: &Lent) -> &[u8] {
        let at = BUFFERS_AT + usize::from(lent.id) * BUFFER_BYTES + usize::from(lent.start);
        // SAFETY: the buffer lies in the mapping, as its number is below COUNT and its end at most
        // BUFFER_BYTES, which `lend` asserts.
        let first = unsafe { self.memory.as_ptr().add(at) };
        // SAFETY: the bytes are initialized (the mapping began as zeros), and nobody writes them
        // while `lent` is borrowed: the kernel has the buffer again only after `give_back`, which
        // consumes it.
        unsafe { slice::from_raw_parts(first, lent.size()) }
    }

    /// Lets the kernel fill the buffer again.
    pub(super) fn give_back(&mut self, lent: Lent) {
        let was_lent = mem::replace(&mut self.is_lent[usize::from(lent.id)], false);
        assert!(was_lent, "a buffer is given back once: {}", lent.id);
        self.lent_count -= 1;
        let memory = self.memory.as_mut_ptr();
        // SAFETY: the buffer lies in the mapping, as its number is below COUNT.
        let buffer = unsafe { memory.add(BUFFERS_AT + usize::from(lent.id) * BUFFER_BYTES) };
        let entries = memory.cast::<BufRingEntry>();
        // SAFETY: the index is below COUNT, and that many descriptions lie before the buffers.
        let entry = unsafe { entries.add(usize::from(self.tail % COUNT)) };
        // SAFETY: the mapping is aligned to a page and initialized. The kernel reads descriptions
        // below the tail alone; no more than COUNT buffers are out, so this one is not among them.
        let entry = unsafe { &mut *entry };
        entry.set_addr(buffer.addr() as u64);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(lent.id);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: `entries` begins the ring of descriptions.
        let tail = unsafe { BufRingEntry::tail(entries) };
        // SAFETY: the tail lies in the mapping, aligned, and is touched by atomic operations alone:
        // no description's address, size or number overlaps it.
        let tail = unsafe { &*tail.cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }

    /// Whether somebody has a buffer.
    pub(super) fn is_any_lent(&self) -> bool {
        self.lent_count > 0
    }

    /// Keeps the mapping for ever: the kernel may still write to it.
    pub(super) fn leak(&self) {
        mem::forget(Arc::clone(&self.memory));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_lent_and_given_back_in_turns() {
        let mut buffers = BufferRing::new().unwrap();
        assert!(!buffers.is_any_lent());
        for round in 0..3 * u32::from(COUNT) {
            let id = u16::try_from(round % u32::from(COUNT)).unwrap();
            let mut lent = buffers.lend(id, 10);
            assert!(buffers.is_any_lent());
            lent.advance(4);
            assert_eq!(buffers.bytes(&lent), [0; 6]);
            buffers.give_back(lent);
        }
        assert!(!buffers.is_any_lent());
    }
}
