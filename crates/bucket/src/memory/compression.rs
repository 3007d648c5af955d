//! How a bucket keeps its values: compressed or not.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use document::compression::{deflate, inflate};
use document::{Datatype, Item};

use crate::config::CompressionMode;

/// The mode, which changes while the bucket is in use, and what is worth it.
#[derive(Debug)]
pub(crate) struct Compression {
    mode: AtomicU8,
    /// A compressed value is kept if the inflated one is at least so many times its size: the bits
    /// of that number.
    ratio_min_bits: AtomicU64,
}

impl Compression {
    pub(super) fn new(mode: CompressionMode, ratio_min: f64) -> Self {
        let ratio_min_bits = AtomicU64::new(ratio_min.to_bits());
        Self { mode: AtomicU8::new(mode as u8), ratio_min_bits }
    }

    pub(crate) fn mode(&self) -> CompressionMode {
        match self.mode.load(Ordering::Relaxed) {
            mode if mode == CompressionMode::Off as u8 => CompressionMode::Off,
            mode if mode == CompressionMode::Passive as u8 => CompressionMode::Passive,
            _ => CompressionMode::Active,
        }
    }

    pub(super) fn set_mode(&self, mode: CompressionMode) {
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    pub(crate) fn ratio_min(&self) -> f64 {
        f64::from_bits(self.ratio_min_bits.load(Ordering::Relaxed))
    }

    pub(super) fn set_ratio_min(&self, ratio_min: f64) {
        self.ratio_min_bits.store(ratio_min.to_bits(), Ordering::Relaxed);
    }

    /// Whether values of clients and of the server's own making may be kept compressed.
    pub(crate) fn keeps_compressed(&self) -> bool {
        self.mode() != CompressionMode::Off
    }

    /// Whether a value saves enough to be kept compressed.
    pub(crate) fn is_worth_it(&self, inflated_size: usize, compressed_size: usize) -> bool {
        #[expect(clippy::cast_precision_loss, reason = "a value is far below 2^52 bytes")]
        let (inflated, compressed) = (inflated_size as f64, compressed_size as f64);
        compressed_size < inflated_size && inflated >= compressed * self.ratio_min()
    }

    /// A value compressed, if that is worth it.
    pub(crate) fn compressed(&self, value: &[u8]) -> Option<Vec<u8>> {
        let compressed = deflate(value);
        self.is_worth_it(value.len(), compressed.len()).then_some(compressed)
    }

    /// The item, which was read from a file, as this mode keeps it.
    pub(crate) fn as_kept(&self, item: Item) -> Item {
        match self.mode() {
            CompressionMode::Off => with_inflated_value(&item).unwrap_or(item),
            CompressionMode::Passive => item,
            CompressionMode::Active => self.with_compressed_value(&item).unwrap_or(item),
        }
    }

    /// The same version with its value compressed; `None` when it is already, when there is none,
    /// and when it is not worth it.
    pub(crate) fn with_compressed_value(&self, item: &Item) -> Option<Item> {
        if !is_compressible(item) {
            return None;
        }
        let compressed = self.compressed(item.value())?;
        Some(item.with_value(item.datatype().with(Datatype::SNAPPY), &compressed))
    }
}

/// Whether there is a value that is not compressed. That of a tombstone is a few xattrs.
pub(crate) fn is_compressible(item: &Item) -> bool {
    let is_plain = !item.datatype().contains(Datatype::SNAPPY);
    is_plain && !item.is_deleted() && !item.is_ejected() && !item.value().is_empty()
}

/// The same version with its value inflated; `None` when it is, or when it cannot be: a damaged
/// file's value stays as it is.
fn with_inflated_value(item: &Item) -> Option<Item> {
    let is_compressed = item.datatype().contains(Datatype::SNAPPY) && !item.is_ejected();
    let value = if is_compressed { inflate(item.value())? } else { return None };
    Some(item.with_value(item.datatype().without(Datatype::SNAPPY), &value))
}

/// The whole value of `item`, inflated. Only a damaged file holds a value that cannot be; it reads
/// as empty.
pub fn inflated(item: &Item) -> Cow<'_, [u8]> {
    if item.datatype().contains(Datatype::SNAPPY) {
        Cow::Owned(inflate(item.value()).unwrap_or_default())
    } else {
        Cow::Borrowed(item.value())
    }
}
