//! A part of the log for a reader, to be walked without the vBucket's lock.

use std::sync::Arc;

use document::{Item, Seqno};

use super::cursor::CursorId;
use super::info::{CheckpointInfo, CheckpointKind, Snapshot};
use super::run::MetaItem;
use super::segment::{Content, Segment};

/// Whole segments from a cursor on, to the end of the log when the read began. It shows the log as
/// it was then: no key twice in one memory checkpoint, and nothing that came later.
#[derive(Debug)]
pub struct LogRange {
    pub(super) cursor: CursorId,
    pub(super) from: Arc<Segment>,
    /// Of the first segment, what the reader had before.
    pub(super) skips_through: Seqno,
    /// The segment before which it ends.
    pub(super) end: Arc<Segment>,
    pub(super) last_seqno: Seqno,
    /// The open checkpoint and its snapshot when the read began.
    pub(super) open: (u64, Snapshot),
}

/// How far a reader goes at most, approximately: it stops where a snapshot ends.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimit {
    /// Items.
    pub items_max: usize,
    /// Bytes of items.
    pub item_bytes_max: usize,
    /// Whether it may also stop within a disk snapshot, which can be larger than memory.
    pub cuts_disk_snapshots: bool,
}

/// What a range holds of one checkpoint.
#[derive(Clone, Debug)]
pub struct LogSection {
    /// Which checkpoint: whether this continues what was read before.
    pub checkpoint_id: u64,
    /// Where its items come from.
    pub kind: CheckpointKind,
    /// The history that it stands for, more of which may come in other ranges.
    pub snapshot: Snapshot,
    /// Items, seqnos rising.
    pub items: Vec<Item>,
}

impl ReadLimit {
    /// No limit.
    pub const NONE: Self =
        Self { items_max: usize::MAX, item_bytes_max: usize::MAX, cuts_disk_snapshots: false };
}

impl LogRange {
    /// The last seqno that it covers, whether or not there is an item.
    pub fn last_seqno(&self) -> Seqno {
        self.last_seqno
    }

    /// Ends the range where `limit` is reached, at the end of a checkpoint, and where one kind of
    /// checkpoint follows another: disk snapshots stand alone. Returns whether more follows.
    pub fn limit(&mut self, limit: ReadLimit) -> bool {
        let has_disk = || self.segments().any(|(_, content)| content.checkpoint.kind().is_disk());
        // Who cuts nothing need not touch every item.
        if self.is_one_checkpoint() && !has_disk() {
            return false;
        }
        let mut read = (0, 0);
        let mut previous: Option<&CheckpointInfo> = None;
        let mut cut = None;
        for (segment, content) in self.segments() {
            let is_full = read.0 >= limit.items_max || read.1 >= limit.item_bytes_max;
            let checkpoint = &*content.checkpoint;
            let may_cut = match previous {
                None => false,
                Some(previous) if previous.id() != checkpoint.id() => {
                    is_full || previous.kind().is_disk() || checkpoint.kind().is_disk()
                }
                Some(_) => is_full && limit.cuts_disk_snapshots && checkpoint.kind().is_disk(),
            };
            if may_cut {
                cut = Some((Arc::clone(segment), Seqno(segment.first_seqno.0 - 1)));
                break;
            }
            self.show(segment, content, |item| {
                read = (read.0 + 1, read.1 + item.allocation_size());
            });
            previous = Some(checkpoint);
        }
        let Some((end, last_seqno)) = cut else { return false };
        (self.end, self.last_seqno) = (end, last_seqno);
        true
    }

    /// Shows every item, seqnos rising.
    pub fn for_each(&self, mut show: impl FnMut(&Item)) {
        for (segment, content) in self.segments() {
            self.show(segment, content, &mut show);
        }
    }

    /// Every item, seqnos rising.
    pub fn items(&self) -> Vec<Item> {
        let there = |content: &Content| content.read().slots().iter().flatten().count();
        let mut items = Vec::with_capacity(self.segments().map(|(_, it)| there(it)).sum());
        self.for_each(|item| items.push(item.clone()));
        items
    }

    /// How many items there are.
    pub fn item_count(&self) -> usize {
        let mut count = 0;
        self.for_each(|_| count += 1);
        count
    }

    /// Meta items, each with the first seqno that stands behind it.
    pub fn metas(&self) -> Vec<(Seqno, MetaItem)> {
        let mut metas = Vec::new();
        for (segment, content) in self.segments() {
            let run = content.read();
            for &(slot, meta) in run.metas() {
                let behind = run.slots()[slot..].iter().flatten().next().map(Item::seqno);
                let seqno = behind.unwrap_or(content.last_seqno.next()).max(segment.first_seqno);
                metas.push((seqno, meta));
            }
        }
        metas
    }

    /// The snapshots that it runs through, in order. The last one may go on behind its end.
    pub fn snapshots(&self) -> Vec<(CheckpointKind, Snapshot)> {
        let mut snapshots: Vec<(u64, CheckpointKind, Snapshot)> = Vec::new();
        for (_, content) in self.segments() {
            let checkpoint = &content.checkpoint;
            if snapshots.last().is_some_and(|(id, _, _)| *id == checkpoint.id()) {
                continue;
            }
            snapshots.push((checkpoint.id(), checkpoint.kind(), self.snapshot_of(checkpoint)));
        }
        snapshots.into_iter().map(|(_, kind, snapshot)| (kind, snapshot)).collect()
    }

    /// The last of [`LogRange::snapshots`].
    pub fn last_snapshot(&self) -> Option<(CheckpointKind, Snapshot)> {
        let (_, content) = self.segments().last()?;
        let checkpoint = &content.checkpoint;
        Some((checkpoint.kind(), self.snapshot_of(checkpoint)))
    }

    /// Its items by the snapshots that they are in, in order. The last snapshot may go on behind
    /// the end of the range.
    pub fn sections(&self) -> Vec<LogSection> {
        let mut sections: Vec<LogSection> = Vec::new();
        for (segment, content) in self.segments() {
            let checkpoint = &content.checkpoint;
            if sections.last().is_none_or(|last| last.checkpoint_id != checkpoint.id()) {
                let (checkpoint_id, kind) = (checkpoint.id(), checkpoint.kind());
                let snapshot = self.snapshot_of(checkpoint);
                sections.push(LogSection { checkpoint_id, kind, snapshot, items: Vec::new() });
            }
            if let Some(section) = sections.last_mut() {
                self.show(segment, content, |item| section.items.push(item.clone()));
            }
        }
        sections
    }

    fn snapshot_of(&self, checkpoint: &CheckpointInfo) -> Snapshot {
        match self.open {
            (id, snapshot) if id == checkpoint.id() => snapshot,
            _ => checkpoint.snapshot().expect("a checkpoint that is not open is closed"),
        }
    }

    /// Whether all of it is one checkpoint, in which no key is twice.
    pub fn is_one_checkpoint(&self) -> bool {
        let mut ids = self.segments().map(|(_, content)| content.checkpoint.id());
        let first = ids.next();
        ids.all(|id| Some(id) == first)
    }

    fn segments(&self) -> impl Iterator<Item = (&Arc<Segment>, &Content)> {
        let mut next = Some(&self.from);
        std::iter::from_fn(move || {
            let segment = next.filter(|segment| segment.ordinal < self.end.ordinal)?;
            next = segment.next();
            let content = segment.content().expect("what lies before the end is frozen");
            Some((segment, content))
        })
    }

    fn show(&self, segment: &Arc<Segment>, content: &Content, mut show: impl FnMut(&Item)) {
        let hidden = content.hidden_from(self.last_seqno);
        let run = content.read();
        let is_first = segment.ordinal == self.from.ordinal;
        let first = if is_first { run.slot_after(self.skips_through) } else { 0 };
        for item in run.slots()[first..].iter().flatten() {
            if hidden.is_empty() || hidden.binary_search(&item.seqno()).is_err() {
                show(item);
            }
        }
    }
}
