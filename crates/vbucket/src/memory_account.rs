//! How many bytes a bucket takes, counted where they come and go.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use crate::checkpoint::CheckpointLimits;
use platform::accounts::{Account, AccountId, STRIPE_COUNT};

/// A bucket's memory in bytes. A handle: clones count together.
#[derive(Clone, Debug)]
pub struct MemoryAccount(Arc<Counters>);

#[derive(Debug)]
struct Counters {
    /// Every item that is alive, whoever holds it.
    items: Account,
    /// Slots of hash tables.
    tables: AtomicI64,
    /// Segments of logs, their items left out.
    log: AtomicI64,
    /// What checkpoints hold, items in full although hash tables hold most of them too.
    checkpoints: AtomicI64,
    /// Of `checkpoints`, what has left its log and waits to be destroyed.
    pending_destruction: AtomicI64,
    /// No counters but limits that all vBuckets look at: of one open checkpoint.
    with_streams_bytes: AtomicUsize,
    alone_bytes: AtomicUsize,
}

/// A change of some of the counters, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemoryUse {
    pub(crate) tables_bytes: usize,
    pub(crate) log_bytes: usize,
    pub(crate) checkpoints_bytes: usize,
}

impl Default for MemoryAccount {
    fn default() -> Self {
        Self(Arc::new(Counters {
            items: Account::open(),
            tables: AtomicI64::new(0),
            log: AtomicI64::new(0),
            checkpoints: AtomicI64::new(0),
            pending_destruction: AtomicI64::new(0),
            with_streams_bytes: AtomicUsize::new(usize::MAX),
            alone_bytes: AtomicUsize::new(usize::MAX),
        }))
    }
}

impl MemoryAccount {
    /// What the bucket's items are charged with.
    pub fn id(&self) -> AccountId {
        self.0.items.id()
    }

    /// Bytes of all items that are alive, whoever holds them: tables, logs, flushers, sockets.
    pub fn items_bytes(&self) -> u64 {
        self.0.items.bytes()
    }

    /// Bytes of the slots of hash tables.
    pub fn tables_bytes(&self) -> u64 {
        read(&self.0.tables)
    }

    /// Bytes of the structure of logs: what they take beside the items in them.
    pub fn log_bytes(&self) -> u64 {
        read(&self.0.log)
    }

    /// All bytes.
    pub fn used_bytes(&self) -> u64 {
        self.items_bytes() + self.tables_bytes() + self.log_bytes()
    }

    /// About as many as [`MemoryAccount::used_bytes`], for what every write asks.
    pub fn estimated_used_bytes(&self) -> u64 {
        self.0.items.estimated_bytes() + self.tables_bytes() + self.log_bytes()
    }

    /// Sets how far off an estimate may be, about.
    pub fn set_estimate_drift_max(&self, bytes: u64) {
        let stripes = u64::try_from(STRIPE_COUNT).expect("stripes are few");
        self.0.items.set_drift_max(bytes / stripes);
    }

    /// Tells the allocator how many bytes the bucket may take.
    pub fn set_quota_bytes(&self, bytes: u64) {
        self.0.items.set_quota_bytes(bytes);
    }

    /// Tells the allocator what the bucket takes beside its items.
    pub fn publish_structure(&self) {
        self.0.items.set_structure_bytes(self.tables_bytes() + self.log_bytes());
    }

    /// Bytes of checkpoints as their quota counts them: items in full although hash tables hold
    /// most of them too, structure, and what waits to be destroyed.
    pub fn checkpoints_bytes(&self) -> u64 {
        read(&self.0.checkpoints)
    }

    /// Bytes of checkpoints that have left their log and wait to be destroyed.
    pub fn pending_destruction_bytes(&self) -> u64 {
        read(&self.0.pending_destruction)
    }

    /// When an open checkpoint is closed.
    pub fn checkpoint_limits(&self) -> CheckpointLimits {
        CheckpointLimits {
            with_streams_bytes: self.0.with_streams_bytes.load(Ordering::Relaxed),
            alone_bytes: self.0.alone_bytes.load(Ordering::Relaxed),
        }
    }

    /// Sets when an open checkpoint is closed.
    pub fn set_checkpoint_limits(&self, limits: CheckpointLimits) {
        self.0.with_streams_bytes.store(limits.with_streams_bytes, Ordering::Relaxed);
        self.0.alone_bytes.store(limits.alone_bytes, Ordering::Relaxed);
    }

    /// A vBucket's use has changed.
    pub(crate) fn settle(&self, before: MemoryUse, after: MemoryUse) {
        add(&self.0.tables, before.tables_bytes, after.tables_bytes);
        add(&self.0.log, before.log_bytes, after.log_bytes);
        add(&self.0.checkpoints, before.checkpoints_bytes, after.checkpoints_bytes);
    }

    /// A part of a log waits to be destroyed: its bytes stay counted until it is.
    pub(crate) fn begin_destruction(&self, part: MemoryUse) {
        self.settle(MemoryUse::default(), part);
        add(&self.0.pending_destruction, 0, part.checkpoints_bytes);
    }

    /// It is destroyed.
    pub(crate) fn end_destruction(&self, part: MemoryUse) {
        self.settle(part, MemoryUse::default());
        add(&self.0.pending_destruction, part.checkpoints_bytes, 0);
    }
}

fn add(counter: &AtomicI64, before: usize, after: usize) {
    if before != after {
        let signed = |bytes: usize| i64::try_from(bytes).expect("memory is counted in 63 bits");
        counter.fetch_add(signed(after) - signed(before), Ordering::Relaxed);
    }
}

/// Counters of several threads may be read between an addition and its subtraction.
fn read(counter: &AtomicI64) -> u64 {
    u64::try_from(counter.load(Ordering::Relaxed)).unwrap_or(0)
}
