//! What a checkpoint is, beside its items.

use std::sync::OnceLock;

use document::Seqno;

/// Where the items of a checkpoint come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointKind {
    /// From memory: of this vBucket's writers, or of the active one's.
    Memory,
    /// From the active vBucket's file.
    Disk,
    /// From the active vBucket's file, beginning with nothing.
    InitialDisk,
}

impl CheckpointKind {
    /// Whether the items come from a file: in order, without a key twice, and perhaps very many.
    pub fn is_disk(self) -> bool {
        self != Self::Memory
    }
}

/// The history that a checkpoint stands for: consistent at its end, not in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The first seqno.
    pub start: Seqno,
    /// The last seqno. Of a checkpoint that was closed before all of its snapshot had come, the
    /// last one that did: if nothing had, that is in front of the first one.
    pub end: Seqno,
    /// Where history is consistent once more.
    pub whole_end: Seqno,
    /// The end of the last snapshot that was whole when this one, or the part of it that was
    /// announced last, began: history that is not whole goes back to here.
    pub base: Seqno,
    /// The last seqno of something visible: prepares and aborts are not.
    pub visible_end: Seqno,
    /// Set for disk snapshots: up to here prepares are completed.
    pub high_completed: Option<Seqno>,
    /// The highest prepare that the writer of the snapshot had, if it said so.
    pub high_prepared: Option<Seqno>,
    /// Set for disk snapshots: tombstones up to here may be missing.
    pub purge_seqno: Option<Seqno>,
}

impl Snapshot {
    /// The snapshot of a single seqno, which grows as mutations come.
    pub fn beginning_at(start: Seqno) -> Self {
        let visible_end = Seqno(start.0.saturating_sub(1));
        let base = visible_end;
        Self {
            start,
            end: start,
            whole_end: start,
            base,
            visible_end,
            high_completed: None,
            high_prepared: None,
            purge_seqno: None,
        }
    }
}

/// A checkpoint as its segments know it.
#[derive(Debug)]
pub struct CheckpointInfo {
    id: u64,
    kind: CheckpointKind,
    /// Set when it is closed.
    snapshot: OnceLock<Snapshot>,
}

impl CheckpointInfo {
    pub(super) fn new(id: u64, kind: CheckpointKind) -> Self {
        Self { id, kind, snapshot: OnceLock::new() }
    }

    /// Its number; ids of a vBucket's checkpoints follow each other without a gap.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Where its items come from.
    pub fn kind(&self) -> CheckpointKind {
        self.kind
    }

    /// The history that it stands for, once it is closed.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.snapshot.get().copied()
    }

    pub(super) fn close(&self, snapshot: Snapshot) {
        assert!(self.snapshot.set(snapshot).is_ok(), "a checkpoint is closed once");
    }
}
