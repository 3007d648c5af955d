//! The checkpoint that mutations enter.

use document::{Item, Seqno};

use super::ClosedCheckpoint;

/// Bytes of one slot.
pub(super) const SLOT_SIZE: usize = size_of::<Option<Item>>();
const _: () = assert!(SLOT_SIZE == 8);

/// Slots in seqno order: slot `n` belongs to seqno `first_seqno + n`.
#[derive(Debug)]
pub(super) struct OpenCheckpoint {
    pub(super) first_seqno: Seqno,
    slots: Vec<Option<Item>>,
    /// Slots that hold an item.
    pub(super) item_count: usize,
}

impl OpenCheckpoint {
    pub(super) fn beginning_at(first_seqno: Seqno) -> Self {
        Self { first_seqno, slots: Vec::new(), item_count: 0 }
    }

    pub(super) fn push(&mut self, item: Item) {
        let slot = u64::try_from(self.slots.len()).expect("slots are counted in 64 bits");
        assert!(
            item.seqno().0 == self.first_seqno.0 + slot,
            "seqnos are queued one by one, in order"
        );
        self.item_count += 1;
        self.slots.push(Some(item));
    }

    /// Empties the slot of `seqno`, when that is in this checkpoint.
    pub(super) fn take(&mut self, seqno: Seqno) -> Option<Item> {
        let slot = usize::try_from(seqno.0.checked_sub(self.first_seqno.0)?).ok()?;
        let item = self.slots.get_mut(slot)?.take()?;
        self.item_count -= 1;
        Some(item)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn slots_bytes(&self) -> usize {
        self.slots.len() * SLOT_SIZE
    }

    pub(super) fn close(self) -> ClosedCheckpoint {
        ClosedCheckpoint::new(self.first_seqno, self.slots, self.item_count)
    }
}
