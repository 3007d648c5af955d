//! Memory that one commit or one read borrows and gives back, so that idle files hold none.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use crate::couchstore::chunk::ChunkSource;
use crate::couchstore::node::Pointer;
use crate::error::StorageError;

/// Snappy's densest element makes 64 bytes of 3; what claims more is damaged.
const EXPANSION_MAX: usize = 32;

/// Bytes read at once for a node of unknown size. Typical leaves are below.
const NODE_READ_SIZE: u64 = 2048;

/// Buffers and codecs. Takes no buffer until it is used.
pub(crate) struct Scratch {
    /// The stored form of what is being read or written.
    stored: Vec<u8>,
    encoder: snap::raw::Encoder,
    decoder: snap::raw::Decoder,
    /// Buffers for nodes; a walk borrows one a level.
    spare: Vec<Vec<u8>>,
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self {
            stored: Vec::new(),
            encoder: snap::raw::Encoder::new(),
            decoder: snap::raw::Decoder::new(),
            spare: Vec::new(),
        }
    }

    /// An empty buffer.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a buffer back.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.push(buffer);
    }

    /// Reads a node: its type, and behind it its items.
    pub(crate) fn read_node(
        &mut self,
        source: &ChunkSource<'_>,
        pointer: &Pointer,
    ) -> Result<Vec<u8>, StorageError> {
        let hint = usize::try_from(pointer.subtree_size.min(NODE_READ_SIZE)).unwrap_or(0);
        let stored = source.read(pointer.position, hint, &mut self.stored)?;
        let mut node = self.spare.pop().unwrap_or_default();
        decompress(&mut self.decoder, stored, &mut node)
            .map_err(|what| source.corrupt(pointer.position, what))?;
        Ok(node)
    }

    /// Compresses `input` into [`Scratch::stored`].
    pub(crate) fn compress(&mut self, input: &[u8]) -> &[u8] {
        let size_max = snap::raw::max_compress_len(input.len());
        if self.stored.len() < size_max {
            self.stored.resize(size_max, 0);
        }
        let size = self
            .encoder
            .compress(input, &mut self.stored)
            .expect("the output has room for the worst case and the input is below 4 GiB");
        self.stored.get(..size).expect("the encoder stays within its output")
    }
}

/// How many bytes a compressed block holds, if that is possible at all.
pub(crate) fn decompressed_size(stored: &[u8]) -> Result<usize, &'static str> {
    match snap::raw::decompress_len(stored) {
        Ok(size) if size <= stored.len().saturating_mul(EXPANSION_MAX) => Ok(size),
        _ => Err("a compressed block of impossible size"),
    }
}

/// Fills `target` with what a compressed block holds.
pub(crate) fn decompress(
    decoder: &mut snap::raw::Decoder,
    stored: &[u8],
    target: &mut Vec<u8>,
) -> Result<(), &'static str> {
    let size = decompressed_size(stored)?;
    target.clear();
    target.resize(size, 0);
    match decoder.decompress(stored, target) {
        Ok(written) if written == size => Ok(()),
        _ => Err("a compressed block does not decompress"),
    }
}
