//! How many bytes a bucket's documents take, counted where they come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// A bucket's memory in bytes. A handle: clones count together.
#[derive(Clone, Debug, Default)]
pub struct MemoryAccount(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    /// Items in hash tables, and the tables.
    documents: AtomicI64,
    /// Items in checkpoints that no hash table holds any more, and the checkpoints' slots.
    checkpoints: AtomicI64,
}

impl MemoryAccount {
    /// Bytes of documents in hash tables and of what else they hold.
    pub fn documents_bytes(&self) -> u64 {
        read(&self.0.documents)
    }

    /// Bytes that checkpoints hold beyond what the hash tables hold anyway.
    pub fn checkpoints_bytes(&self) -> u64 {
        read(&self.0.checkpoints)
    }

    /// All bytes.
    pub fn used_bytes(&self) -> u64 {
        self.documents_bytes() + self.checkpoints_bytes()
    }

    pub(crate) fn add_documents(&self, bytes: i64) {
        self.0.documents.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_checkpoints(&self, bytes: i64) {
        self.0.checkpoints.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Counters of several threads may be read between an addition and its subtraction.
fn read(counter: &AtomicI64) -> u64 {
    u64::try_from(counter.load(Ordering::Relaxed)).unwrap_or(0)
}
