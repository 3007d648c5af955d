//! Checkpoints begin and end.

use std::sync::Arc;

use document::Seqno;

use super::super::detached::Detached;
use super::super::info::{CheckpointInfo, CheckpointKind, Snapshot};
use super::super::segment::Segment;
use super::{CheckpointManager, OpenCheckpoint};
use crate::checkpoint::Extent;

impl CheckpointManager {
    /// Closes the open checkpoint of an active vBucket and begins another. Returns what nobody
    /// needs any more.
    ///
    /// # Panics
    /// Within a snapshot that was announced: what is still to come of it would belong to none.
    pub fn begin_checkpoint(&mut self) -> Option<Detached> {
        let (high, Snapshot { start, end, .. }) = (self.high_seqno, self.open.snapshot);
        assert!(high < start || end <= high, "a snapshot is whole, or cut, when history goes on");
        let snapshot = Snapshot::beginning_at(self.high_seqno.next());
        self.begin(CheckpointKind::Memory, snapshot)
    }

    /// Closes the open checkpoint of a replica. The rest of its snapshot, if that is not whole,
    /// begins another, for which all that was announced holds.
    pub fn begin_part(&mut self) -> Option<Detached> {
        let start = self.high_seqno.next().min(self.open.snapshot.end);
        self.begin(self.open.info.kind(), Snapshot { start, ..self.open.snapshot })
    }

    /// What is missing of the open snapshot will not come: history goes on where it was cut off.
    /// Prepares are completed up to `high_completed` as far as is known here.
    pub fn cut_snapshot(&mut self, high_completed: Seqno) {
        let (high, snapshot) = (self.high_seqno, &mut self.open.snapshot);
        if snapshot.start <= high && high < snapshot.end {
            snapshot.end = high;
            snapshot.whole_end = high;
            snapshot.visible_end = snapshot.visible_end.min(high);
            snapshot.high_completed = snapshot.high_completed.map(|_| high_completed);
            snapshot.high_prepared = None;
        }
    }

    /// A marker has announced a snapshot to a replica: it begins a checkpoint of its own.
    pub fn begin_snapshot(&mut self, kind: CheckpointKind, snapshot: Snapshot) -> Option<Detached> {
        assert!(snapshot.start <= snapshot.end, "a snapshot has a beginning before its end");
        assert!(
            !kind.is_disk() || snapshot.high_completed.is_some(),
            "a disk snapshot says up to where prepares are completed"
        );
        self.begin(kind, snapshot)
    }

    /// A marker has announced a memory snapshot that continues the open one. Returns whether the
    /// open checkpoint takes it in; if not, it begins one of its own.
    pub fn extend_snapshot(&mut self, next: Snapshot) -> bool {
        let open = &mut self.open;
        let may = open.info.kind() == CheckpointKind::Memory && next.end >= open.snapshot.end;
        if may {
            open.snapshot = Snapshot { start: open.snapshot.start, ..next };
        }
        may
    }

    /// The snapshot of the open checkpoint.
    pub fn open_snapshot(&self) -> Snapshot {
        self.open.snapshot
    }

    /// Where a reader that has everything stands: the highest seqno, and the snapshot it is in.
    pub fn snapshot_position(&self) -> (Seqno, Seqno, Seqno) {
        let high = self.high_seqno;
        match self.open.snapshot {
            snapshot if high < snapshot.start => (high, high, high),
            snapshot => (high, snapshot.start, snapshot.end),
        }
    }

    /// The end of the last complete snapshot: where a new branch of history may begin.
    pub fn failover_seqno(&self) -> Seqno {
        self.last_snapshot_end
    }

    /// Empties the log, which continues after `high_seqno`. Cursors stand at its end.
    pub fn reset(&mut self, high_seqno: Seqno) -> Option<Detached> {
        self.freeze();
        self.high_seqno = high_seqno;
        self.last_item_seqno = high_seqno;
        self.max_visible_seqno = high_seqno;
        self.last_snapshot_end = Seqno(0);
        let snapshot = Snapshot::beginning_at(high_seqno.next());
        let gone = self.begin(CheckpointKind::Memory, snapshot);
        let rest = self.restart();
        Detached::joined(gone, rest)
    }

    fn begin(&mut self, kind: CheckpointKind, snapshot: Snapshot) -> Option<Detached> {
        let last = self.freeze_tail();
        let is_empty = self.tail_position == self.open.position;
        let id = self.open.info.id() + u64::from(!is_empty);
        let index = self.close_open(last.as_deref());
        self.open = OpenCheckpoint {
            info: Arc::new(CheckpointInfo::new(id, kind)),
            snapshot,
            first: Arc::clone(&self.tail_place),
            first_seqno: self.high_seqno.next(),
            position: self.tail_position,
            frozen: Vec::new(),
            removed: Extent::default(),
        };
        self.detach_consumed(index)
    }

    /// Fixes what readers of the open checkpoint may know, and returns the places of its segments,
    /// but for the `last` one. Walks them only if something in them has been superseded.
    fn close_open(&mut self, last: Option<&Segment>) -> Vec<Arc<Segment>> {
        let high = self.high_seqno;
        let open = &mut self.open;
        // Also where nothing has come, and it has a change of role alone: what its snapshot begins
        // with comes in the next one then, and a reader would take it for something that it has.
        open.snapshot.end = open.snapshot.end.min(high);
        open.snapshot.visible_end = open.snapshot.visible_end.min(high);
        if open.snapshot.end < open.snapshot.whole_end && open.info.kind().is_disk() {
            // What ended prepares may be in the part that follows.
            open.snapshot.high_completed = Some(Seqno(0));
            open.snapshot.high_prepared = None;
        }
        open.info.close(open.snapshot);
        if open.removed != Extent::default() {
            let contents = open.frozen.iter().filter_map(|segment| segment.content());
            // What is not in segments that are kept was in those that were expelled.
            let kept = contents.fold(Extent::default(), |sum, content| sum + content.removed());
            let mut removed = open.removed - kept;
            for content in open.frozen.iter().filter_map(|segment| segment.content()) {
                content.set_removed_before(removed);
                removed += content.removed();
            }
            if let Some(content) = last.and_then(Segment::content) {
                content.set_removed_before(removed);
            }
            self.tail_position -= open.removed;
        }
        std::mem::take(&mut open.frozen)
    }
}
