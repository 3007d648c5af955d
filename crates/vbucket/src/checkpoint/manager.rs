//! The checkpoints of one vBucket and the persistence cursor that moves through them.

use std::collections::VecDeque;
use std::sync::Arc;

use document::{Item, Seqno};

use super::ClosedCheckpoint;
use super::open_checkpoint::OpenCheckpoint;

/// Slots of an open checkpoint. A full one is closed, so that what a flush takes at once, and frees
/// at once, stays bounded whatever comes in meanwhile.
const OPEN_SLOTS_MAX: usize = 10_000;

/// All checkpoints, oldest first. Invariants: their seqnos are contiguous; the persistence cursor
/// stands at the first closed checkpoint, since flushed ones leave at once.
#[derive(Debug)]
pub struct CheckpointManager {
    closed: VecDeque<Arc<ClosedCheckpoint>>,
    open: OpenCheckpoint,
    /// [`ClosedCheckpoint::own_bytes`] of all closed checkpoints.
    closed_own_bytes: usize,
    /// Items in all closed checkpoints.
    closed_item_count: usize,
    /// The highest seqno queued; of an empty history, the one it continues from.
    high_seqno: Seqno,
}

impl CheckpointManager {
    /// An empty log that continues after `high_seqno`.
    pub fn continuing(high_seqno: Seqno) -> Self {
        Self {
            closed: VecDeque::new(),
            open: OpenCheckpoint::beginning_at(high_seqno.next()),
            closed_own_bytes: 0,
            closed_item_count: 0,
            high_seqno,
        }
    }

    /// Queues the next mutation. `replaced` is the version that it supersedes, which the hash
    /// table has just let go. When that is in the open checkpoint it leaves it: its seqno will
    /// never be seen again.
    ///
    /// Returns the superseded item as the checkpoint held it, to be dropped elsewhere.
    pub fn queue(&mut self, item: Item, replaced: Option<&Item>) -> Option<Item> {
        assert!(item.seqno() == self.high_seqno.next(), "seqnos rise one by one");
        let superseded = replaced.and_then(|replaced| self.supersede(replaced));
        self.high_seqno = item.seqno();
        self.open.push(item);
        if self.open.slot_count() >= OPEN_SLOTS_MAX {
            self.close_open();
        }
        superseded
    }

    /// The highest seqno queued.
    pub fn high_seqno(&self) -> Seqno {
        self.high_seqno
    }

    /// Whether anything waits for the persistence cursor.
    pub fn is_flushed(&self) -> bool {
        self.closed.is_empty() && self.open.is_empty()
    }

    /// Closes the open checkpoint and shares the oldest closed ones, whole, until they hold
    /// `bytes_max` or more; at least one when there is any. They stay here until
    /// [`CheckpointManager::remove_flushed`].
    pub fn unflushed(&mut self, bytes_max: usize) -> Vec<Arc<ClosedCheckpoint>> {
        self.close_open();
        let mut taken = Vec::new();
        let mut taken_bytes = 0;
        for checkpoint in &self.closed {
            if taken_bytes >= bytes_max {
                break;
            }
            taken_bytes += checkpoint.items_bytes();
            taken.push(Arc::clone(checkpoint));
        }
        taken
    }

    /// Detaches the checkpoints up to `seqno`, which have been flushed.
    pub fn remove_flushed(&mut self, seqno: Seqno) -> Vec<Arc<ClosedCheckpoint>> {
        let mut removed = Vec::new();
        while let Some(oldest) = self.closed.front() {
            if oldest.last_seqno() > seqno {
                break;
            }
            self.closed_own_bytes -= oldest.own_bytes();
            self.closed_item_count -= oldest.item_count();
            removed.extend(self.closed.pop_front());
        }
        removed
    }

    /// Bytes that only the checkpoints hold: slots, and items that the hash table has let go.
    pub fn own_bytes(&self) -> usize {
        self.closed_own_bytes + self.open.slots_bytes()
    }

    /// Bytes of the slots.
    pub fn slots_bytes(&self) -> usize {
        let closed: usize = self.closed.iter().map(|closed| closed.slots_bytes()).sum();
        closed + self.open.slots_bytes()
    }

    /// How many checkpoints there are, the open one included.
    pub fn checkpoint_count(&self) -> usize {
        self.closed.len() + 1
    }

    /// How many items wait for the persistence cursor.
    pub fn item_count(&self) -> usize {
        self.closed_item_count + self.open.item_count
    }

    fn supersede(&mut self, replaced: &Item) -> Option<Item> {
        if replaced.seqno() >= self.open.first_seqno {
            return self.open.take(replaced.seqno());
        }
        // Few checkpoints are ever closed and unflushed: the newest is the likely one.
        if self.closed.iter().rev().any(|closed| closed.supersede(replaced)) {
            self.closed_own_bytes += replaced.allocation_size();
        }
        None
    }

    fn close_open(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let fresh = OpenCheckpoint::beginning_at(self.high_seqno.next());
        let closed = std::mem::replace(&mut self.open, fresh).close();
        self.closed_own_bytes += closed.own_bytes();
        self.closed_item_count += closed.item_count();
        self.closed.push_back(Arc::new(closed));
    }
}
