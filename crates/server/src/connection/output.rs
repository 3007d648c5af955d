//! Responses on their way out: small ones in one buffer, large values from where they lie.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

use document::Item;

/// Values of this many bytes and more are sent from the item's own memory.
pub(crate) const LARGE_VALUE_BYTES_MIN: usize = 4096;
/// Slices of one vectored write; Linux takes 1024 at most.
const SLICES_MAX: usize = 256;
/// A buffer that has grown beyond this is given back after use.
const BUFFER_BYTES_KEPT_MAX: usize = 256 << 10;

/// A run of bytes that is sent without being copied.
#[derive(Debug)]
pub(crate) enum Chunk {
    /// Bytes made for this response.
    Bytes(Vec<u8>),
    /// The value of an item, which lives as long as it is being sent.
    Value(Item),
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Value(item) => item.value(),
        }
    }
}

/// What one turn of a connection answers. Owned by the worker and used for all its connections.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// Everything but the large values.
    pub(crate) buffer: Vec<u8>,
    /// Large values, each with its place in the buffer.
    large: Vec<(usize, Chunk)>,
    large_bytes: usize,
}

/// What a connection could not send yet. Of most that is nothing, and then it takes no memory.
#[derive(Debug, Default)]
pub(crate) struct Unsent(Option<Box<Waiting>>);

/// What waits for a reader: one chunk at least.
#[derive(Debug, Default)]
struct Waiting {
    chunks: VecDeque<Chunk>,
    /// Bytes of the first chunk that are sent already.
    sent_of_first: usize,
    bytes: usize,
}

impl Output {
    /// Sends `chunk` after what is in the buffer now.
    pub(crate) fn push_large(&mut self, chunk: Chunk) {
        let last_at = self.large.last().map_or(0, |(at, _)| *at);
        assert!(last_at <= self.buffer.len(), "large values lie in the order of their answers");
        self.large_bytes += chunk.bytes().len();
        self.large.push((self.buffer.len(), chunk));
    }

    /// Bytes of everything.
    pub(crate) fn bytes(&self) -> usize {
        self.buffer.len() + self.large_bytes
    }

    /// Writes what `unsent` holds and then everything here; what the socket does not take now goes
    /// to `unsent`. Empties the output.
    pub(crate) fn send(&mut self, socket: &mut impl Write, unsent: &mut Unsent) -> io::Result<()> {
        if unsent.is_empty() && self.large.is_empty() {
            self.send_buffer(socket, unsent)?;
        } else {
            // Most readers take everything at once: what waits has its own place only when they
            // do not.
            let mut waiting = unsent.0.take().map_or_else(Waiting::default, |waiting| *waiting);
            self.move_to(&mut waiting);
            let sent = waiting.send(socket);
            // Also after an error: how much was sent is reckoned from what is left.
            unsent.0 = (!waiting.chunks.is_empty()).then(|| Box::new(waiting));
            sent?;
        }
        self.clear();
        Ok(())
    }

    fn send_buffer(&self, socket: &mut impl Write, unsent: &mut Unsent) -> io::Result<()> {
        let mut sent = 0;
        while sent < self.buffer.len() {
            match socket.write(&self.buffer[sent..]) {
                // It neither takes anything nor says that it would block: no end would come.
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    sent += count;
                    assert!(sent <= self.buffer.len(), "a socket takes no more than it is given");
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    unsent.push(Chunk::Bytes(self.buffer[sent..].to_vec()));
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn move_to(&mut self, waiting: &mut Waiting) {
        let bytes_after = waiting.bytes + self.bytes();
        let mut start = 0;
        for (at, chunk) in self.large.drain(..) {
            if at > start {
                waiting.push(Chunk::Bytes(self.buffer[start..at].to_vec()));
            }
            start = at;
            waiting.push(chunk);
        }
        if start < self.buffer.len() {
            waiting.push(Chunk::Bytes(self.buffer[start..].to_vec()));
        }
        assert_eq!(waiting.bytes, bytes_after, "every byte that is answered waits to be sent");
    }

    /// Forgets everything: its connection is gone.
    pub(crate) fn discard(&mut self) {
        self.clear();
    }

    fn clear(&mut self) {
        self.large.clear();
        self.large_bytes = 0;
        self.buffer.clear();
        if self.buffer.capacity() > BUFFER_BYTES_KEPT_MAX {
            self.buffer = Vec::new();
        }
    }
}

impl Unsent {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |waiting| waiting.bytes)
    }

    fn push(&mut self, chunk: Chunk) {
        self.0.get_or_insert_default().push(chunk);
    }
}

impl Waiting {
    fn push(&mut self, chunk: Chunk) {
        self.bytes += chunk.bytes().len();
        self.chunks.push_back(chunk);
    }

    /// Writes as much as the socket takes now.
    fn send(&mut self, socket: &mut impl Write) -> io::Result<()> {
        while !self.chunks.is_empty() {
            match socket.write_vectored(&self.slices()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.advance(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        assert_eq!(self.bytes, 0, "where no chunk waits, no byte does");
        assert_eq!(self.sent_of_first, 0, "of no chunk nothing is sent");
        Ok(())
    }

    fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut chunks = self.chunks.iter().take(SLICES_MAX).map(Chunk::bytes);
        let first = chunks.next().map(|bytes| &bytes[self.sent_of_first..]);
        first.into_iter().chain(chunks).map(IoSlice::new).collect()
    }

    fn advance(&mut self, mut count: usize) {
        assert!(count <= self.bytes, "a socket takes no more than it is given");
        self.bytes -= count;
        while let Some(first) = self.chunks.front() {
            let left = first.bytes().len() - self.sent_of_first;
            if count < left {
                self.sent_of_first += count;
                return;
            }
            count -= left;
            self.sent_of_first = 0;
            self.chunks.pop_front();
        }
        assert!(count == 0, "no more is sent than there was");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::Random;
    use platform::seeds::seeds;

    /// A socket that takes a random number of bytes, then would block.
    struct Reluctant {
        taken: Vec<u8>,
        random: Random,
        room: usize,
    }

    impl Write for Reluctant {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(self.room);
            self.taken.extend_from_slice(&bytes[..count]);
            self.room -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn bytes_arrive_in_order_however_slowly_they_are_taken() {
        for seed in seeds(30) {
            let mut random = Random::from_seed(seed);
            let mut socket =
                Reluctant { taken: Vec::new(), random: random.clone(), room: usize::MAX };
            let (mut output, mut unsent) = (Output::default(), Unsent::default());
            let mut expected = Vec::new();
            for _ in 0..50 {
                for _ in 0..random.below(4) {
                    let mut bytes = vec![0; usize::try_from(random.below(300)).unwrap() + 1];
                    random.fill(&mut bytes);
                    expected.extend_from_slice(&bytes);
                    match random.below(2) {
                        0 => output.buffer.extend_from_slice(&bytes),
                        _ => output.push_large(Chunk::Bytes(bytes)),
                    }
                }
                socket.room = usize::try_from(socket.random.below(400)).unwrap();
                output.send(&mut socket, &mut unsent).unwrap();
                assert_eq!(output.bytes(), 0, "seed {seed}");
                assert_eq!(socket.taken.len() + unsent.bytes(), expected.len(), "seed {seed}");
            }
            socket.room = usize::MAX;
            output.send(&mut socket, &mut unsent).unwrap();
            assert!(unsent.is_empty(), "seed {seed}");
            assert_eq!(socket.taken, expected, "seed {seed}");
        }
    }
}
