//! A durable write that has not ended, and all of them in their order.

use std::collections::VecDeque;

use document::{DurabilityLevel, Item, Operation, Seqno};
use platform::Instant;

use crate::waiter::Waiter;

/// Writes that a list without any keeps room for.
const SPARE_WRITES_MAX: usize = 32;

/// A client that waits for the end of its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientWait {
    pub(crate) waiter: Waiter,
    /// When it began.
    pub(crate) began: Instant,
    /// When it becomes ambiguous.
    pub(crate) deadline: Instant,
}

/// A prepare, and who waits for its end.
#[derive(Debug)]
pub(crate) struct TrackedWrite {
    /// The prepare.
    pub(crate) item: Item,
    /// Its seqno and level, where they are found without a look at the item.
    pub(crate) seqno: Seqno,
    pub(crate) level: DurabilityLevel,
    /// Whoever waits for it here: nobody when it came from another node or from the file, or when
    /// the client was told that its end is not known. Such a write is never aborted by this node.
    pub(crate) client: Option<ClientWait>,
    /// Whether another node may have committed it, so that reads of its document wait for its end.
    pub(crate) may_be_visible: bool,
    /// Set in a replica for what has ended, and has yet to be passed by what is held here.
    pub(crate) is_completed: bool,
}

impl TrackedWrite {
    /// Tracks `item`.
    ///
    /// # Panics
    /// If it is no prepare.
    pub(crate) fn new(item: Item, client: Option<ClientWait>) -> Self {
        let Operation::Prepare(level) = item.operation() else {
            panic!("what is tracked is a prepare")
        };
        Self {
            seqno: item.seqno(),
            level,
            item,
            client,
            may_be_visible: client.is_none(),
            is_completed: false,
        }
    }
}

/// Writes in the order of their seqnos, and up to where they are held and ended.
#[derive(Debug, Default)]
pub(crate) struct TrackedWrites {
    writes: VecDeque<TrackedWrite>,
    /// All prepares up to here are held here as their levels demand.
    pub(crate) high_prepared: Seqno,
    /// The highest prepare that has ended.
    pub(crate) high_completed: Seqno,
}

impl TrackedWrites {
    /// None yet, after prepares that were held and ended up to here.
    pub(crate) fn continuing(high_prepared: Seqno, high_completed: Seqno) -> Self {
        Self { writes: VecDeque::new(), high_prepared, high_completed }
    }

    /// Tracks one more.
    pub(crate) fn push(&mut self, write: TrackedWrite) {
        assert!(self.last_seqno() < write.seqno, "prepares are tracked in order");
        self.writes.push_back(write);
    }

    pub(crate) fn len(&self) -> usize {
        self.writes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&TrackedWrite> {
        self.writes.get(index)
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut TrackedWrite> {
        self.writes.get_mut(index)
    }

    pub(crate) fn front(&self) -> Option<&TrackedWrite> {
        self.writes.front()
    }

    pub(crate) fn pop_front(&mut self) -> Option<TrackedWrite> {
        let write = self.writes.pop_front();
        if self.writes.is_empty() && self.writes.capacity() > SPARE_WRITES_MAX {
            self.writes = VecDeque::new();
        }
        write
    }

    /// The seqno of the last one, or 0.
    pub(crate) fn last_seqno(&self) -> Seqno {
        self.writes.back().map_or(Seqno(0), |write| write.seqno)
    }

    /// How many have a seqno up to `seqno`.
    pub(crate) fn count_through(&self, seqno: Seqno) -> usize {
        self.writes.partition_point(|write| write.seqno <= seqno)
    }

    /// Those above `seqno`.
    pub(crate) fn behind(&self, seqno: Seqno) -> impl Iterator<Item = &TrackedWrite> {
        self.writes.range(self.count_through(seqno)..)
    }

    /// The one at `seqno`.
    pub(crate) fn find_mut(&mut self, seqno: Seqno) -> Option<&mut TrackedWrite> {
        let index = self.writes.partition_point(|write| write.seqno < seqno);
        self.writes.get_mut(index).filter(|write| write.seqno == seqno)
    }

    /// The one at `seqno`.
    pub(crate) fn find(&self, seqno: Seqno) -> Option<&TrackedWrite> {
        let index = self.writes.partition_point(|write| write.seqno < seqno);
        self.writes.get(index).filter(|write| write.seqno == seqno)
    }

    /// Other nodes decide from now on: nobody here waits any more. Returns who has.
    pub(crate) fn disown(&mut self) -> Vec<Waiter> {
        let mut waiters = Vec::new();
        for write in &mut self.writes {
            write.may_be_visible = true;
            waiters.extend(write.client.take().map(|client| client.waiter));
        }
        waiters
    }

    /// Takes out those that `is_taken` says so of. Whoever counts them counts anew.
    pub(crate) fn take_out(
        &mut self,
        is_taken: impl FnMut(&TrackedWrite) -> bool,
    ) -> Vec<TrackedWrite> {
        let all = std::mem::take(&mut self.writes);
        let (taken, left): (Vec<_>, Vec<_>) = all.into_iter().partition(is_taken);
        self.writes = left.into();
        taken
    }

    /// How many of the first `count` are such that `is_it`.
    pub(crate) fn count_among(
        &self,
        count: usize,
        is_it: impl FnMut(&&TrackedWrite) -> bool,
    ) -> usize {
        self.writes.iter().take(count).filter(is_it).count()
    }

    /// Bytes that the list takes, prepares left out.
    pub(crate) fn bytes(&self) -> usize {
        self.writes.capacity() * size_of::<TrackedWrite>()
    }
}
