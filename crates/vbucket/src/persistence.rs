//! What passes between a vBucket and its file.

use std::sync::Arc;

use document::{
    Cas, Datatype, FailoverEntry, Item, Operation, RevSeqno, Seqno, Set, VbUuid, Vbid, VbucketState,
};

use platform::Instant;

use crate::checkpoint::{CheckpointKind, LogRange, ReadLimit, Snapshot};

/// Who must hold durable writes: chains of node names, the active first. `None` in a chain stands
/// for a replica that is not placed.
pub type Topology = Vec<Vec<Option<String>>>;

/// How soon the flusher is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlushUrgency {
    /// With what comes next, or in a moment: nobody waits for it.
    Deferred,
    /// At once: a crash is to lose as little of it as possible.
    Soon,
    /// Before others: somebody waits until it is durable.
    Awaited,
}

/// Whether the file has the state of its vBucket, whether or not there are mutations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateInFile {
    /// It does.
    Present,
    /// It will when the flush that took it last has succeeded.
    UnderWay,
    /// It does not, and a flush that is under way does not bring it either.
    Outdated,
}

/// The part of history that was consistent when it was whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotRange {
    /// The one before its first seqno, or the end of an earlier one that was whole.
    pub start: Seqno,
    /// Its last seqno.
    pub end: Seqno,
}

/// What the file remembers of what has happened to a vBucket, and memory only keeps for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// The seqno from which on CAS values are hybrid logical clock values; -1 for unknown.
    pub hlc_epoch: i64,
    /// Whether any document ever had xattrs.
    pub might_contain_xattrs: bool,
    /// The highest seqno of a prepare that is completed.
    pub completed_seqno: Seqno,
    /// The highest seqno of a prepare.
    pub prepared_seqno: Seqno,
    /// The highest seqno up to which all prepares are held.
    pub high_prepared_seqno: Seqno,
    /// The highest seqno that readers may see.
    pub max_visible_seqno: Seqno,
    /// What the last persisted items were a part of.
    pub checkpoint_kind: CheckpointKind,
}

impl FileFacts {
    /// Those of a vBucket to which nothing has happened.
    pub const NONE: Self = Self {
        hlc_epoch: -1,
        might_contain_xattrs: false,
        completed_seqno: Seqno(0),
        prepared_seqno: Seqno(0),
        high_prepared_seqno: Seqno(0),
        max_visible_seqno: Seqno(0),
        checkpoint_kind: CheckpointKind::Memory,
    };

    /// The file has all of the snapshot that it ends in: behind its last item nothing comes.
    pub(crate) fn note_whole(&mut self, kind: CheckpointKind, snapshot: &Snapshot) {
        self.note_prepare(self.prepared_seqno, self.prepared_seqno);
        if kind.is_disk() {
            self.note_ended(
                snapshot.high_completed.unwrap_or_default(),
                snapshot.high_prepared.unwrap_or(snapshot.whole_end),
            );
        }
    }

    /// Of a whole snapshot from another node's file, up to where prepares have ended and are held.
    fn note_ended(&mut self, high_completed: Seqno, high_prepared: Seqno) {
        self.completed_seqno = self.completed_seqno.max(high_completed);
        self.high_prepared_seqno = self.high_prepared_seqno.max(high_prepared);
    }

    /// Takes note of items that become a part of the file, seqnos rising. It ends in `part` then.
    fn note(&mut self, items: &[Item], part: &FilePart) {
        if let Some(first) = items.first()
            && self.hlc_epoch < 0
        {
            self.hlc_epoch = i64::try_from(first.seqno().0).unwrap_or(i64::MAX);
        }
        let is_disk = part.kind.is_disk();
        for item in items {
            self.might_contain_xattrs |= item.datatype().contains(Datatype::XATTR);
            let operation = item.operation();
            if !operation.is_prepared() {
                self.max_visible_seqno = self.max_visible_seqno.max(item.seqno());
            }
            if operation == Operation::Mutation {
                continue;
            }
            match operation.ended_prepare() {
                // In a part of a disk snapshot ends have no order: others may be missing.
                Some(prepare) if !is_disk => {
                    self.completed_seqno = self.completed_seqno.max(prepare);
                }
                Some(_) => {}
                None => self.note_prepare(item.seqno(), part.whole_seqno),
            }
        }
        let held = self.prepared_seqno;
        self.note_prepare(held, part.whole_seqno);
        if is_disk && part.is_whole {
            self.note_ended(part.high_completed, part.high_prepared);
        }
        self.checkpoint_kind = part.kind;
    }

    fn note_prepare(&mut self, seqno: Seqno, whole_seqno: Seqno) {
        self.prepared_seqno = self.prepared_seqno.max(seqno);
        if seqno <= whole_seqno {
            self.high_prepared_seqno = self.high_prepared_seqno.max(seqno);
        }
    }
}

/// Where a file ends after a flush.
struct FilePart {
    kind: CheckpointKind,
    /// Whether the last snapshot is whole.
    is_whole: bool,
    /// History up to here is consistent.
    whole_seqno: Seqno,
    /// Of a snapshot from another node's file, up to where prepares have ended and are held.
    high_completed: Seqno,
    high_prepared: Seqno,
}

/// What the file remembers of a vBucket beside its documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PersistentState {
    /// Its role.
    pub state: VbucketState,
    /// The branches of its history, newest first.
    pub failover_table: Arc<[FailoverEntry]>,
    /// The highest seqno.
    pub high_seqno: Seqno,
    /// The highest CAS given out.
    pub max_cas: Cas,
    /// The highest revision that a deleted document had.
    pub max_deleted_revision: RevSeqno,
    /// Who must hold durable writes.
    pub topology: Arc<Topology>,
    /// The snapshot that the file is in, unless the vBucket is active: then it is whole at every
    /// seqno.
    pub snapshot: SnapshotRange,
    /// Tombstones up to here may be missing in it; never above its highest seqno.
    pub purge_seqno: Seqno,
    /// A copy that began empty, or was none before, is whole once it is consistent up to here.
    pub whole_from_seqno: Seqno,
    /// The rest.
    pub facts: FileFacts,
}

impl PersistentState {
    /// Where a copy is whole from as long as nobody has said how far the active copy is.
    pub const WHOLE_FROM_UNKNOWN: Seqno = Seqno(u64::MAX);

    /// That of a vBucket without history.
    pub fn new(state: VbucketState) -> Self {
        Self {
            state,
            failover_table: Arc::default(),
            high_seqno: Seqno(0),
            max_cas: Cas(0),
            max_deleted_revision: RevSeqno(0),
            topology: Arc::default(),
            snapshot: SnapshotRange::default(),
            purge_seqno: Seqno(0),
            whole_from_seqno: Seqno(0),
            facts: FileFacts::NONE,
        }
    }

    /// The end of the last snapshot that a file with this state has whole.
    pub fn whole_seqno(&self) -> Seqno {
        let range = self.snapshot_in_file();
        if range.end <= self.high_seqno { self.high_seqno } else { range.start }
    }

    /// The snapshot that a file with this state is in.
    pub fn snapshot_in_file(&self) -> SnapshotRange {
        let (high, range) = (self.high_seqno, self.snapshot);
        match self.state {
            VbucketState::Active => SnapshotRange { start: high, end: high },
            _ => SnapshotRange { start: range.start.min(high), end: range.end.max(high) },
        }
    }
}

/// What a flush is to make durable: everything up to [`FlushWork::high_seqno`], whole.
#[derive(Debug)]
pub struct FlushWork {
    /// Whose.
    pub vbid: Vbid,
    /// What was flushed before ends here.
    pub previous_seqno: Seqno,
    /// The snapshot that this is in.
    previous_snapshot: SnapshotRange,
    /// The log to flush; none if it is the state alone.
    pub(crate) range: Option<LogRange>,
    /// What to remember with it.
    pub state: PersistentState,
    /// Since when the first of its mutations has waited.
    pub queued_since: Instant,
    /// What documents were counted as at its end, where that count is to be compared with the
    /// file's.
    pub document_count: Option<i64>,
    /// Items in `range`, once somebody has counted.
    item_count: Option<usize>,
}

/// The content of a batch.
#[derive(Debug)]
pub struct BatchItems {
    /// The newest version of every document in the batch, seqnos rising.
    pub items: Vec<Item>,
    /// How many older versions they make superfluous.
    pub superfluous: usize,
}

impl FlushWork {
    pub(crate) fn new(
        vbid: Vbid,
        (previous_seqno, previous_snapshot): (Seqno, SnapshotRange),
        range: Option<LogRange>,
        state: PersistentState,
        queued_since: Instant,
    ) -> Self {
        Self {
            vbid,
            previous_seqno,
            previous_snapshot,
            range,
            state,
            queued_since,
            document_count: None,
            item_count: None,
        }
    }

    /// The last seqno of the batch.
    pub fn high_seqno(&self) -> Seqno {
        self.state.high_seqno
    }

    /// Items that it holds, older versions of the same document included. Known once
    /// [`FlushWork::take_items`] or [`FlushWork::count_items`] was called.
    pub fn item_count(&self) -> usize {
        self.item_count.expect("a batch is counted before it is flushed")
    }

    /// Counts the items for a store that keeps none. Like [`FlushWork::take_items`] not under the
    /// vBucket's lock.
    pub fn count_items(&mut self) {
        self.item_count = Some(self.range.as_ref().map_or(0, LogRange::item_count));
    }

    /// Cuts the batch where `bytes_max` of items are reached, and collects what is left of it. Not
    /// under the vBucket's lock: it goes through all of it.
    pub fn take_items(&mut self, bytes_max: usize) -> BatchItems {
        let Some(range) = &mut self.range else {
            self.item_count = Some(0);
            return BatchItems { items: Vec::new(), superfluous: 0 };
        };
        let is_cut = range.limit(ReadLimit {
            items_max: usize::MAX,
            item_bytes_max: bytes_max,
            cuts_disk_snapshots: true,
        });
        if is_cut {
            // It was counted at an end that the batch does not have any more.
            self.document_count = None;
        }
        self.state.high_seqno = range.last_seqno();
        self.state.purge_seqno = self.state.purge_seqno.min(range.last_seqno());
        let all = range.items();
        if self.state.high_seqno == self.previous_seqno {
            // A change of role alone takes no seqno. The log may not know which snapshot the file
            // is in: after a start it begins anew where that ends.
            self.state.snapshot = self.previous_snapshot;
        } else if let Some((kind, snapshot)) = range.last_snapshot() {
            let (high, end) = (self.state.high_seqno, snapshot.whole_end);
            let start = if end <= high { end } else { snapshot.base };
            self.state.snapshot = SnapshotRange { start, end };
            let whole_seqno = self.state.whole_seqno();
            let part = FilePart {
                kind,
                is_whole: end <= high,
                whole_seqno,
                high_completed: snapshot.high_completed.unwrap_or_default(),
                high_prepared: snapshot.high_prepared.unwrap_or(end),
            };
            self.state.facts.note(&all, &part);
        }
        let count = all.len();
        self.item_count = Some(count);
        // No key comes twice within one checkpoint, so there is nothing to look for.
        let items = if range.is_one_checkpoint() { all } else { newest_versions(all) };
        let superfluous = count - items.len();
        BatchItems { items, superfluous }
    }
}

/// Of every key and namespace the last item.
fn newest_versions(all: Vec<Item>) -> Vec<Item> {
    let mut keys: Set<(bool, &[u8])> = Set::with_capacity_and_hasher(all.len(), Default::default());
    let is_newest: Vec<bool> = all
        .iter()
        .rev()
        .map(|item| keys.insert((item.operation().is_prepared(), item.key().encoded())))
        .collect();
    drop(keys);
    let mut is_newest = is_newest.into_iter().rev();
    let mut items = all;
    items.retain(|_| is_newest.next().unwrap_or(true));
    items
}

/// How far a branch of history has come (OBSERVE_SEQNO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqnoStatus {
    /// The branch that is written now.
    pub uuid: VbUuid,
    /// Everything up to here is on disk.
    pub persisted: Seqno,
    /// Everything up to here is in memory.
    pub high: Seqno,
    /// Set when the branch asked about is an older one: its name and where it ended.
    pub older_branch: Option<(VbUuid, Seqno)>,
}
