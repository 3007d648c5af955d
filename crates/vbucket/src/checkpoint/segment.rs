//! A link of the log: a run of items that grows no more.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use document::{Item, Seqno};
use platform::no_free;

use super::extent::Extent;
use super::info::CheckpointInfo;
use super::run::Run;

/// A place in the log. The last one of a log, the tail's, has no content yet and no next.
///
/// Everything is written under the vBucket's lock; readers hold no more than the segment. Each
/// segment owns the next: whoever holds one keeps all that follow.
#[derive(Debug)]
pub(super) struct Segment {
    /// Rises along the log.
    pub(super) ordinal: u64,
    /// No item here or later has a lower seqno.
    pub(super) first_seqno: Seqno,
    content: OnceLock<Content>,
    next: OnceLock<Arc<Self>>,
}

// A durable writer who waits for each of its writes makes a segment of each.
const _: () = assert!(Segment::size() <= 168);

/// What was frozen.
#[derive(Debug)]
pub(super) struct Content {
    pub(super) checkpoint: Arc<CheckpointInfo>,
    /// Nor a higher one.
    pub(super) last_seqno: Seqno,
    /// How much log lay before it when it was frozen.
    pub(super) position: Extent,
    /// Read by readers, written under the vBucket's lock while no reader is at it.
    run: RwLock<Run>,
    /// Set when something in its checkpoint was superseded after it had been frozen.
    changes: OnceLock<Box<Changes>>,
}

/// What happened to a segment since it was frozen.
#[derive(Debug, Default)]
struct Changes {
    /// Items that a reader who began earlier still sees, and the seqno that superseded each.
    superseded: Mutex<Vec<(Seqno, Seqno)>>,
    /// What has been superseded here, and, once its checkpoint is closed, in the segments of the
    /// checkpoint before it.
    removed: AtomicExtent,
    removed_before: AtomicExtent,
}

/// Written under the vBucket's lock.
#[derive(Debug, Default)]
struct AtomicExtent {
    items: AtomicUsize,
    item_bytes: AtomicUsize,
}

/// What superseding an item in a frozen segment did.
pub(super) enum Superseded {
    /// It has left the log.
    Taken(Item),
    /// Readers who began earlier still see it.
    Hidden,
    /// It was not there.
    Absent,
}

impl Segment {
    /// The place of a tail.
    pub(super) fn new(ordinal: u64, first_seqno: Seqno) -> Arc<Self> {
        Arc::new(Self { ordinal, first_seqno, content: OnceLock::new(), next: OnceLock::new() })
    }

    /// Bytes of a segment, its slots left out.
    pub(super) const fn size() -> usize {
        // In front of what an `Arc` shares there are its two counts.
        size_of::<Self>() + 2 * size_of::<usize>()
    }

    /// Gives the place its content, and the log its next tail.
    pub(super) fn freeze(&self, content: Content, next: Arc<Self>) {
        assert!(self.content.set(content).is_ok(), "a segment is frozen once");
        assert!(self.next.set(next).is_ok(), "a segment has one successor");
    }

    pub(super) fn content(&self) -> Option<&Content> {
        self.content.get()
    }

    /// The checkpoint that a frozen segment belongs to; none if it is the tail's.
    pub(super) fn checkpoint_id(&self) -> Option<u64> {
        self.content().map(|content| content.checkpoint.id())
    }

    pub(super) fn next(&self) -> Option<&Arc<Self>> {
        self.next.get()
    }
}

impl Drop for Segment {
    /// Drops the segments that only this one held one by one: a chain can be longer than a stack
    /// is deep.
    fn drop(&mut self) {
        if self.content.get().is_some() {
            no_free::check_bulk();
        }
        let mut next = self.next.take();
        while let Some(mut segment) = next.and_then(Arc::into_inner) {
            next = segment.next.take();
        }
    }
}

impl Content {
    pub(super) fn new(
        checkpoint: Arc<CheckpointInfo>,
        last_seqno: Seqno,
        position: Extent,
        run: Run,
    ) -> Self {
        Self { checkpoint, last_seqno, position, run: RwLock::new(run), changes: OnceLock::new() }
    }

    /// The items, for a reader. Only a reader that is at it keeps an item from being superseded,
    /// and never waits for that.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Run> {
        self.run.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Supersedes the item at `seqno` by the one at `by`. It stays where a reader has begun
    /// (`is_read`), who must still see it.
    pub(super) fn supersede(&self, seqno: Seqno, by: Seqno, is_read: bool) -> Superseded {
        // Tried only: readers take as long as they like, and requests wait for the vBucket's lock
        // meanwhile.
        let run = if is_read { None } else { self.run.try_write().ok() };
        let superseded = match run {
            Some(mut run) => run.take(seqno).map_or(Superseded::Absent, Superseded::Taken),
            // Only who holds the vBucket's lock writes, so this one is had at once.
            None if self.read().slot_of(seqno).is_some() => Superseded::Hidden,
            None => Superseded::Absent,
        };
        let item_bytes = match &superseded {
            Superseded::Taken(item) => item.allocation_size(),
            Superseded::Hidden => {
                lock(&self.changes().superseded).push((seqno, by));
                0
            }
            Superseded::Absent => return superseded,
        };
        self.changes().removed.add(Extent { items: 1, item_bytes, structure_bytes: 0 });
        superseded
    }

    /// Seqnos of items here that somebody who reads up to `last_seqno` does not see any more,
    /// rising.
    pub(super) fn hidden_from(&self, last_seqno: Seqno) -> Vec<Seqno> {
        let Some(changes) = self.changes.get() else { return Vec::new() };
        let superseded = lock(&changes.superseded);
        let is_hidden = |(_, by): &&(Seqno, Seqno)| *by <= last_seqno;
        let mut hidden: Vec<Seqno> =
            superseded.iter().filter(is_hidden).map(|(seqno, _)| *seqno).collect();
        drop(superseded);
        hidden.sort_unstable();
        hidden
    }

    /// What has been superseded here since it was frozen.
    pub(super) fn removed(&self) -> Extent {
        self.changes.get().map(|changes| changes.removed.get()).unwrap_or_default()
    }

    /// What has been superseded in front of it in its checkpoint, which is closed.
    pub(super) fn removed_before(&self) -> Extent {
        self.changes.get().map(|changes| changes.removed_before.get()).unwrap_or_default()
    }

    pub(super) fn set_removed_before(&self, removed: Extent) {
        if removed != Extent::default() {
            self.changes().removed_before.add(removed);
        }
    }

    fn changes(&self) -> &Changes {
        self.changes.get_or_init(Box::default)
    }
}

fn lock(superseded: &Mutex<Vec<(Seqno, Seqno)>>) -> MutexGuard<'_, Vec<(Seqno, Seqno)>> {
    superseded.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AtomicExtent {
    fn add(&self, extent: Extent) {
        self.items.fetch_add(extent.items, Ordering::Relaxed);
        self.item_bytes.fetch_add(extent.item_bytes, Ordering::Relaxed);
    }

    fn get(&self) -> Extent {
        Extent {
            items: self.items.load(Ordering::Relaxed),
            item_bytes: self.item_bytes.load(Ordering::Relaxed),
            structure_bytes: 0,
        }
    }
}
