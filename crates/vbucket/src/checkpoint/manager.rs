//! The log of one vBucket: its checkpoints, and the cursors that move through them.

mod queueing;
mod reading;
mod removal;
mod snapshots;

use std::sync::Arc;

use document::Seqno;

use super::cursor::{Cursor, CursorId, CursorStatus};
use super::extent::Extent;
use super::info::{CheckpointInfo, CheckpointKind, Snapshot};
use super::reader_places::ReaderPlaces;
use super::run::Run;
use super::segment::Segment;
use super::tenure::Tenure;

pub use queueing::{QueueOutcome, Queued};

/// Slots of a segment. A full one is frozen, so that what is freed at once stays bounded.
const SEGMENT_SLOTS_MAX: usize = 1024;

/// Whether the log is read for a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPersistence {
    /// A flusher reads it, through a cursor that is never dropped.
    File,
    /// Nobody does: the vBucket lives in memory alone.
    None,
}

/// The checkpoints of a vBucket, oldest first, the last one open. Every method but those of ranges
/// is called under the vBucket's lock, and takes no longer for a long log than for a short one,
/// unless it says so.
#[derive(Debug)]
pub struct CheckpointManager {
    /// The oldest segment that is kept, and how much log lay before it.
    head: Arc<Segment>,
    head_position: Extent,
    open: OpenCheckpoint,
    /// Where mutations go, how much they are, and the place in the chain that they will take.
    tail: Run,
    tail_items: Extent,
    tail_place: Arc<Segment>,
    /// Items that the tail may come to have, by how many the last one had.
    expected_slots: usize,
    /// How much log lay before the tail when that began, what has been superseded since in the
    /// open checkpoint's frozen segments left in.
    tail_position: Extent,
    /// Items ever queued and not superseded, whether or not they are still here.
    total_items: usize,
    cursors: Vec<Cursor>,
    /// What of the cursors is read without the lock.
    readers: Arc<ReaderPlaces>,
    persistence: Option<CursorId>,
    high_seqno: Seqno,
    /// The seqno of the last item queued, or what the log continues from: the end of what readers
    /// are given. Lower than `high_seqno` where a replica heard that nothing follows for a while.
    last_item_seqno: Seqno,
    /// The highest seqno of something visible.
    max_visible_seqno: Seqno,
    /// The end of the last complete snapshot.
    last_snapshot_end: Seqno,
    limits: CheckpointLimits,
}

/// Bytes above which an active vBucket's open checkpoint is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointLimits {
    /// While there are streams, which get on a checkpoint at a time.
    pub with_streams_bytes: usize,
    /// While there are none: what is read leaves anyway, and the larger a checkpoint, the more
    /// versions of a document take each other's place in it.
    pub alone_bytes: usize,
}

impl CheckpointLimits {
    /// No limit.
    pub const NONE: Self = Self { with_streams_bytes: usize::MAX, alone_bytes: usize::MAX };
}

/// What is known of the open checkpoint alone.
#[derive(Debug)]
struct OpenCheckpoint {
    info: Arc<CheckpointInfo>,
    snapshot: Snapshot,
    /// Its first segment that is kept.
    first: Arc<Segment>,
    /// The lowest seqno that can be in it.
    first_seqno: Seqno,
    /// How much log lay before it.
    position: Extent,
    /// Its frozen segments that are kept, in order, so that a seqno finds its segment.
    frozen: Vec<Arc<Segment>>,
    /// What has been superseded in frozen segments of it since they were frozen.
    removed: Extent,
}

impl CheckpointManager {
    /// An empty log that continues after `high_seqno`.
    pub fn continuing(high_seqno: Seqno, persistence: LogPersistence) -> Self {
        let place = Segment::new(0, high_seqno.next());
        let mut log = Self {
            head: Arc::clone(&place),
            head_position: Extent::default(),
            open: OpenCheckpoint {
                info: Arc::new(CheckpointInfo::new(1, CheckpointKind::Memory)),
                snapshot: Snapshot::beginning_at(high_seqno.next()),
                first: Arc::clone(&place),
                first_seqno: high_seqno.next(),
                position: Extent::default(),
                frozen: Vec::new(),
                removed: Extent::default(),
            },
            tail: Run::beginning_at(high_seqno.next()),
            tail_items: Extent::default(),
            tail_place: place,
            expected_slots: 0,
            tail_position: Extent::default(),
            total_items: 0,
            cursors: Vec::new(),
            readers: Arc::default(),
            persistence: None,
            high_seqno,
            last_item_seqno: high_seqno,
            max_visible_seqno: high_seqno,
            last_snapshot_end: high_seqno,
            limits: CheckpointLimits::NONE,
        };
        if persistence == LogPersistence::File {
            let registered = log.register("persistence", high_seqno, Tenure::Always);
            log.persistence = registered.ok().map(|registration| registration.id);
        }
        log
    }

    /// The same log, whose cursors are shown there to whoever looks without the lock.
    #[must_use]
    pub(crate) fn shown_in(mut self, readers: Arc<ReaderPlaces>) -> Self {
        self.readers = readers;
        self.list_readers();
        self
    }

    /// Sets when an active vBucket's open checkpoint is closed.
    pub fn set_limits(&mut self, limits: CheckpointLimits) {
        self.limits = limits;
    }

    /// Above this many bytes an active vBucket closes its open checkpoint, with streams or without.
    pub fn set_checkpoint_bytes_max(&mut self, bytes: usize) {
        self.set_limits(CheckpointLimits { with_streams_bytes: bytes, alone_bytes: bytes });
    }

    /// Bytes above which the open checkpoint is closed now.
    pub fn checkpoint_bytes_max(&self) -> usize {
        if self.has_streams() { self.limits.with_streams_bytes } else { self.limits.alone_bytes }
    }

    fn has_streams(&self) -> bool {
        self.cursors.iter().any(|cursor| cursor.tenure != Tenure::Always)
    }

    /// The highest seqno queued; of an empty history, the one it continues from.
    pub fn high_seqno(&self) -> Seqno {
        self.high_seqno
    }

    /// The highest seqno of something visible: prepares and aborts are not.
    pub fn max_visible_seqno(&self) -> Seqno {
        self.max_visible_seqno
    }

    /// Of a log that continues a file: the highest seqno of something visible there.
    pub fn set_max_visible_seqno(&mut self, seqno: Seqno) {
        self.max_visible_seqno = seqno.min(self.high_seqno);
    }

    /// The flusher's cursor.
    pub fn persistence_cursor(&self) -> Option<CursorId> {
        self.persistence
    }

    /// Whether the flusher has read everything, and that was confirmed.
    pub fn is_flushed(&self) -> bool {
        self.persistence.is_none_or(|cursor| self.is_at_end(cursor))
    }

    /// Items that the flusher has not read.
    pub fn unflushed_count(&self) -> usize {
        self.persistence.map_or(0, |cursor| self.remaining(cursor))
    }

    /// Whether everything has been read through the cursor, meta items included.
    pub fn is_at_end(&self, cursor: CursorId) -> bool {
        let is_at_tail = |cursor: &Cursor| Arc::ptr_eq(&cursor.position, &self.tail_place);
        self.tail.is_empty() && self.cursor(cursor).is_none_or(is_at_tail)
    }

    /// Items in front of the cursor.
    pub fn remaining(&self, cursor: CursorId) -> usize {
        self.cursor(cursor).map_or(0, |cursor| self.total_items - cursor.passed())
    }

    /// How much is in the log.
    pub fn extent(&self) -> Extent {
        self.tail_position - self.open.removed + self.tail_extent() - self.head_position
    }

    /// How much is in the open checkpoint, whether or not it is still here.
    pub fn open_extent(&self) -> Extent {
        self.tail_position - self.open.removed + self.tail_extent() - self.open.position
    }

    /// How many checkpoints there are, the open one included.
    pub fn checkpoint_count(&self) -> u64 {
        self.open.info.id() - self.checkpoint_id(&self.head) + 1
    }

    /// The number of the open checkpoint.
    pub fn open_checkpoint_id(&self) -> u64 {
        self.open.info.id()
    }

    /// Where the items of the open checkpoint come from.
    pub fn open_kind(&self) -> CheckpointKind {
        self.open.info.kind()
    }

    /// All cursors.
    pub fn cursors(&self) -> Vec<CursorStatus> {
        let status = |cursor: &Cursor| CursorStatus {
            name: Arc::clone(&cursor.place.name),
            checkpoint_id: self.checkpoint_id(&cursor.position),
            next_seqno: cursor.next_seqno(),
            remaining: self.total_items - cursor.passed(),
            visits: cursor.visits,
            tenure: cursor.tenure,
        };
        self.cursors.iter().map(status).collect()
    }

    /// Items that cursors have in front of them or behind them.
    pub(crate) fn total_items(&self) -> usize {
        self.total_items
    }

    /// Whether whoever looks without the lock sees how far the cursors are.
    pub(crate) fn shows_readers(&self) -> bool {
        self.cursors.iter().all(Cursor::is_shown)
    }

    /// The list of cursors is another.
    fn list_readers(&self) {
        self.readers.list(self.cursors.iter().map(|cursor| Arc::clone(&cursor.place)).collect());
    }

    /// Whether the cursor is still there.
    pub fn has_cursor(&self, id: CursorId) -> bool {
        self.cursor(id).is_some()
    }

    fn cursor(&self, id: CursorId) -> Option<&Cursor> {
        self.cursors.iter().find(|cursor| cursor.id == id)
    }

    fn cursor_mut(&mut self, id: CursorId) -> Option<&mut Cursor> {
        self.cursors.iter_mut().find(|cursor| cursor.id == id)
    }

    fn checkpoint_id(&self, segment: &Segment) -> u64 {
        segment.checkpoint_id().unwrap_or(self.open.info.id())
    }

    /// The tail as a part of the log. The place of an empty tail costs nothing yet.
    fn tail_extent(&self) -> Extent {
        if self.tail.is_empty() {
            return Extent::default();
        }
        let structure_bytes = Segment::size() + self.tail.structure_bytes();
        Extent { structure_bytes, ..self.tail_items }
    }
}
