//! Mutations enter the log.

use std::sync::Arc;

use document::{Item, Operation, Seqno, VbucketState};

use super::super::detached::Detached;
use super::super::extent::Extent;
use super::super::run::{MetaItem, Run};
use super::super::segment::{Content, Segment, Superseded};
use super::{CheckpointManager, SEGMENT_SLOTS_MAX};
use crate::checkpoint::CheckpointKind;

/// A tail begins with room for as many items as the last one had, but for no more than so many.
const EXPECTED_SLOTS_MAX: usize = 64;

/// What a mutation means for the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueOutcome {
    /// One item more to write.
    New,
    /// It takes the place of one that was still to be written.
    Replaced,
    /// It takes the place of one that is written already: one item more to write.
    PersistAgain,
}

/// What queuing a mutation has left over.
#[derive(Debug)]
pub struct Queued {
    /// What it means for the file.
    pub outcome: QueueOutcome,
    /// The item that it superseded, if that has left the log: to be dropped elsewhere.
    pub superseded: Option<Item>,
    /// What has left the log: to be dropped elsewhere.
    pub detached: Option<Detached>,
}

impl CheckpointManager {
    /// Queues the next mutation of an active vBucket: its seqno is the one after the highest.
    /// `replaced` is the version of the same key and namespace that it supersedes, which the hash
    /// table has just let go. If that is in the open checkpoint, no later reader sees it there.
    ///
    /// A full checkpoint is closed before, as is one in which the two versions must not meet
    /// because one of them is part of a durable write.
    pub fn queue(&mut self, item: Item, replaced: Option<&Item>) -> Queued {
        assert!(item.seqno() == self.high_seqno.next(), "seqnos rise one by one");
        let may_not_meet = self.may_not_meet(&item, replaced);
        let is_full = self.open_extent().bytes() >= self.checkpoint_bytes_max();
        let mut detached = None;
        if may_not_meet || (is_full && self.open_has_items()) {
            detached = self.begin_checkpoint();
        }
        let queued = self.push(item, replaced);
        self.open.snapshot.end = self.high_seqno;
        self.open.snapshot.whole_end = self.high_seqno;
        self.open.snapshot.visible_end = self.max_visible_seqno;
        self.last_snapshot_end = self.high_seqno;
        Queued { detached, ..queued }
    }

    /// Queues what a replica has received: its seqno is higher than every one before and within
    /// the snapshot that the last marker has announced.
    pub fn queue_received(&mut self, item: Item, replaced: Option<&Item>) -> Queued {
        let seqno = item.seqno();
        assert!(seqno > self.high_seqno, "seqnos rise");
        let snapshot = self.open.snapshot;
        assert!(snapshot.start <= seqno, "what is received is in the snapshot that was announced");
        assert!(seqno <= snapshot.end, "what is received is in the snapshot that was announced");
        let detached = match self.may_not_meet(&item, replaced) {
            true => self.begin_part(),
            false => None,
        };
        let queued = self.push(item, replaced);
        if seqno == snapshot.end {
            self.last_snapshot_end = seqno;
        }
        Queued { detached, ..queued }
    }

    /// Whether both versions are in the open checkpoint, which shows one version of a key, and one
    /// of them is part of a durable write, of which no part may be missing.
    fn may_not_meet(&self, item: &Item, replaced: Option<&Item>) -> bool {
        let is_sync = |item: &Item| item.operation() != Operation::Mutation;
        let are_sync = |replaced: &Item| is_sync(replaced) || is_sync(item);
        replaced.is_some_and(|replaced| self.is_in_open(replaced.seqno()) && are_sync(replaced))
    }

    /// A replica hears that nothing it is sent lies between the highest seqno and `seqno`, which is
    /// within the snapshot that the last marker has announced.
    pub fn advance_received(&mut self, seqno: Seqno) {
        let snapshot = self.open.snapshot;
        assert!(seqno > self.high_seqno, "seqnos rise");
        assert!(seqno <= snapshot.end, "what is skipped is in the snapshot that was announced");
        self.high_seqno = seqno;
        if seqno == snapshot.end {
            self.last_snapshot_end = seqno;
        }
    }

    /// Notes in the log that the vBucket takes up another role.
    pub fn queue_state(&mut self, state: VbucketState) {
        self.tail.push_meta(MetaItem::VbucketState(state));
    }

    fn push(&mut self, item: Item, replaced: Option<&Item>) -> Queued {
        let by = item.seqno();
        let (outcome, superseded) = match replaced {
            Some(replaced) => self.supersede(replaced.seqno(), by),
            None => (QueueOutcome::New, None),
        };
        if self.tail.slots().len() >= SEGMENT_SLOTS_MAX || !self.tail.can_hold(by) {
            self.freeze();
        }
        if self.tail.slots().is_empty() {
            self.tail.reserve(self.expected_slots);
        }
        self.high_seqno = by;
        self.last_item_seqno = by;
        if !item.operation().is_prepared() {
            self.max_visible_seqno = by;
        }
        self.total_items += 1;
        self.tail_items +=
            Extent { items: 1, item_bytes: item.allocation_size(), structure_bytes: 0 };
        self.tail.push(item);
        Queued { outcome, superseded, detached: None }
    }

    /// Whether `seqno` is in the open checkpoint, or was.
    pub fn is_in_open(&self, seqno: Seqno) -> bool {
        self.open.first_seqno <= seqno && seqno <= self.high_seqno
    }

    /// From where on what is in the open checkpoint is still in the log.
    pub fn open_kept_from(&self) -> Seqno {
        self.open.first_seqno.max(self.head.first_seqno)
    }

    fn open_has_items(&self) -> bool {
        self.high_seqno >= self.open.first_seqno
    }

    /// The item at `seqno` is superseded by the one at `by`. In a closed checkpoint it stays, and
    /// in one from a file, which has no key twice, there is nothing to supersede.
    fn supersede(&mut self, seqno: Seqno, by: Seqno) -> (QueueOutcome, Option<Item>) {
        if !self.is_in_open(seqno) || self.open.info.kind() != CheckpointKind::Memory {
            return (QueueOutcome::New, None);
        }
        let taken = match self.tail.take(seqno) {
            Some(item) => {
                let item_bytes = item.allocation_size();
                self.tail_items -= Extent { items: 1, item_bytes, structure_bytes: 0 };
                Some(item)
            }
            None => match self.supersede_frozen(seqno, by) {
                Superseded::Taken(item) => Some(item),
                Superseded::Hidden => None,
                Superseded::Absent => return (QueueOutcome::PersistAgain, None),
            },
        };
        self.total_items -= 1;
        let mut outcome = QueueOutcome::Replaced;
        for cursor in &mut self.cursors {
            if seqno < cursor.next_seqno() {
                cursor.set_passed(cursor.passed() - 1);
                if Some(cursor.id) == self.persistence {
                    outcome = QueueOutcome::PersistAgain;
                }
            }
        }
        (outcome, taken)
    }

    fn supersede_frozen(&mut self, seqno: Seqno, by: Seqno) -> Superseded {
        let behind = self.open.frozen.partition_point(|segment| segment.first_seqno <= seqno);
        let Some(index) = behind.checked_sub(1) else { return Superseded::Absent };
        let segment = &self.open.frozen[index];
        let Some(content) = segment.content() else { return Superseded::Absent };
        let mut is_read = false;
        for cursor in &mut self.cursors {
            let has_passed = seqno < cursor.next_seqno();
            if let Some(read) = cursor.read_of(segment.ordinal) {
                is_read = true;
                // Who has passed it counts it out in `supersede`; who reads it now does when that
                // is confirmed.
                if !has_passed {
                    read.superseded.push(segment.ordinal);
                }
            }
        }
        let before = content.removed();
        let superseded = content.supersede(seqno, by, is_read);
        self.open.removed += content.removed() - before;
        superseded
    }

    /// Freezes the tail, if there is anything in it: readers take whole segments.
    pub(super) fn freeze(&mut self) {
        if let Some(frozen) = self.freeze_tail() {
            self.open.frozen.push(frozen);
        }
    }

    /// The frozen segment, not yet known as one of the open checkpoint's.
    pub(super) fn freeze_tail(&mut self) -> Option<Arc<Segment>> {
        if self.tail.is_empty() {
            return None;
        }
        let next_seqno = self.last_item_seqno.next();
        let next = Segment::new(self.tail_place.ordinal + 1, next_seqno);
        let mut run = std::mem::replace(&mut self.tail, Run::beginning_at(next_seqno));
        self.expected_slots = run.slots().len().min(EXPECTED_SLOTS_MAX);
        run.shrink();
        let extent = Extent {
            structure_bytes: Segment::size() + run.structure_bytes(),
            ..std::mem::take(&mut self.tail_items)
        };
        let info = Arc::clone(&self.open.info);
        let content = Content::new(info, self.last_item_seqno, self.tail_position, run);
        self.tail_place.freeze(content, Arc::clone(&next));
        self.tail_position += extent;
        Some(std::mem::replace(&mut self.tail_place, next))
    }
}
