//! A checkpoint that no longer changes.

use std::sync::atomic::{AtomicUsize, Ordering};

use document::{Item, Seqno};

use super::open_checkpoint::SLOT_SIZE;

/// A run of history, frozen: readers share it without copying.
#[derive(Debug)]
pub struct ClosedCheckpoint {
    first_seqno: Seqno,
    last_seqno: Seqno,
    slots: Vec<Option<Item>>,
    item_count: usize,
    /// Bytes of items here that the hash table no longer holds. Written under the vBucket's lock.
    superseded_bytes: AtomicUsize,
}

impl ClosedCheckpoint {
    pub(super) fn new(first_seqno: Seqno, slots: Vec<Option<Item>>, item_count: usize) -> Self {
        assert!(!slots.is_empty(), "an empty checkpoint is never closed");
        let count = u64::try_from(slots.len()).expect("slots are counted in 64 bits");
        Self {
            first_seqno,
            last_seqno: Seqno(first_seqno.0 + count - 1),
            slots,
            item_count,
            superseded_bytes: AtomicUsize::new(0),
        }
    }

    /// The items, seqnos rising.
    pub fn items(&self) -> impl DoubleEndedIterator<Item = &Item> {
        self.slots.iter().flatten()
    }

    /// The seqno of the last mutation, whether or not its item is still here.
    pub fn last_seqno(&self) -> Seqno {
        self.last_seqno
    }

    /// How many items there are.
    pub fn item_count(&self) -> usize {
        self.item_count
    }

    /// Bytes of all items, whoever else holds them: what a flush of this checkpoint carries.
    pub fn items_bytes(&self) -> usize {
        self.items().map(Item::allocation_size).sum()
    }

    /// Bytes of the slots.
    pub(super) fn slots_bytes(&self) -> usize {
        self.slots.len() * SLOT_SIZE
    }

    /// Bytes that go when this checkpoint goes: its slots, and the items that nobody else holds.
    pub fn own_bytes(&self) -> usize {
        self.slots.len() * SLOT_SIZE + self.superseded_bytes.load(Ordering::Relaxed)
    }

    /// Notes that the hash table has let `item` go, if that is in here.
    pub(super) fn supersede(&self, item: &Item) -> bool {
        let is_here = self.first_seqno <= item.seqno() && item.seqno() <= self.last_seqno;
        if is_here {
            self.superseded_bytes.fetch_add(item.allocation_size(), Ordering::Relaxed);
        }
        is_here
    }
}
