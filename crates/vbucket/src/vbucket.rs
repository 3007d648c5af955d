//! The vBucket: one lock, one history.

pub(crate) mod collections;
mod compaction;
mod ephemeral;
mod flush;
mod foreign;
mod key_load;
mod locking;
mod lookup;
pub(crate) mod paging;
mod publishing;
mod read;
pub(crate) mod receiving;
mod receiving_prepares;
pub(crate) mod recovery;
pub(crate) mod restore;
pub(crate) mod role;
mod streams;
mod sync_writes;
mod versions;
mod wholeness;
mod write;

use std::sync::Arc;

use document::{FailoverEntry, Item, RevSeqno, Seqno, VbUuid, Vbid, VbucketState};
use platform::{Instant, Random};

use crate::checkpoint::{CheckpointKind, CheckpointManager, Detached, LogPersistence};
use crate::clock_rules::ClockRules;
use crate::collections::Collections;
use crate::destruction::Destruction;
use crate::document_locks::DocumentLocks;
use crate::durability::{DurabilityLimits, Monitor, TrackedWrites};
use crate::effect::Effect;
use crate::eviction::{AbsentKeys, EvictionOptions, KeyFilter, Residency};
use crate::failover_table::FailoverTable;
use crate::hash_table::{
    DatatypeCounts, HashSeed, HashTable, ItemAction, TableCounts, VisitPosition,
};
use crate::hlc::{Drift, Hlc};
use crate::memory_account::{MemoryAccount, MemoryUse};
use crate::persistence::{
    FileFacts, FlushUrgency, PersistentState, SeqnoStatus, SnapshotRange, StateInFile, Topology,
};
use crate::statistics::{VbucketFigures, VbucketStatistics};
use crate::waiter::Waiter;

/// One vBucket. Seqno order, CAS order, hash-table order and checkpoint order are one order,
/// because every mutation happens under the one lock that the caller holds around a call.
#[derive(Debug)]
pub struct Vbucket {
    vbid: Vbid,
    state: VbucketState,
    hash_table: HashTable,
    /// Prepares that have not ended, by key, beside the documents that they will replace.
    prepares: HashTable,
    /// Decides when they end.
    monitor: Monitor,
    durability_limits: DurabilityLimits,
    /// The last abort in the log, or prepare in it that was dropped.
    last_abort_seqno: Option<Seqno>,
    checkpoints: CheckpointManager,
    clock: Hlc,
    clock_rules: ClockRules,
    failover_table: FailoverTable,
    locks: DocumentLocks,
    /// The named ones.
    collections: Collections,
    /// The highest revision that a deleted document had: a document that is created anew
    /// continues after it, its tombstone may be gone from memory.
    max_deleted_revision: RevSeqno,
    /// Everything up to here is durable: in the journal, or in the file; in an ephemeral bucket, it
    /// is only in the log no more.
    persisted_seqno: Seqno,
    /// The end of the last snapshot that is durable whole.
    persisted_whole_seqno: Seqno,
    /// The snapshot that what is durable ends in.
    persisted_snapshot: SnapshotRange,
    /// Everything up to here is in the file, and may leave memory for it. Not above
    /// `persisted_seqno`.
    applied_seqno: Seqno,
    /// Whether there is no file.
    is_ephemeral: bool,
    /// The highest seqno of a tombstone that was purged, here or in what was received before the
    /// snapshot that comes.
    purge_seqno: Seqno,
    /// Up to here tombstones may be missing in the snapshot that comes: where it begins they are
    /// not missed yet, and each seqno that comes leaves some behind it.
    received_purge_seqno: Seqno,
    /// A copy that began empty, or was none before, is whole once it is consistent up to here.
    whole_from_seqno: Seqno,
    /// Another node takes the vBucket over and cannot keep up with those who write to it.
    is_takeover_late: bool,
    /// Who must hold durable writes.
    topology: Arc<Topology>,
    /// The snapshot that history ends in, unless the vBucket is active.
    snapshot: SnapshotRange,
    /// Where the items of that snapshot come from.
    snapshot_kind: CheckpointKind,
    /// No snapshot was announced yet: on the stream into the vBucket, or since its role lets it
    /// receive one.
    is_stream_new: bool,
    /// A stream has read everything and is to hear of what comes next.
    streams_wait: bool,
    /// What the file remembers beside that.
    facts: FileFacts,
    /// Whether the state on disk is the one here. By this alone, not by what a batch has: of what
    /// belongs to the state much may change while one is on its way.
    state_in_file: StateInFile,
    /// Queued for the flusher and not taken by it yet.
    queued_for_flush: Option<FlushUrgency>,
    /// When it was queued last.
    queued_since: Instant,
    /// Who waits for which seqno to be persisted, and until when.
    waiters: Vec<SeqnoWaiter>,
    /// Requests that wait until it is no longer pending.
    parked: Vec<Waiter>,
    /// What anybody may read without the lock.
    figures: Arc<VbucketFigures>,
    eviction: EvictionOptions,
    /// Whether documents may be in the file alone.
    residency: Residency,
    /// What is known of keys that are not in the hash table.
    absent: AbsentKeys,
    /// For frequency counters.
    random: Random,
    /// Where the pager goes on, and where the next sample is taken.
    paging_hand: VisitPosition,
    sampling_hand: VisitPosition,
    account: MemoryAccount,
    /// What of the account is this vBucket's.
    accounted: MemoryUse,
}

#[derive(Clone, Copy, Debug)]
struct SeqnoWaiter {
    seqno: Seqno,
    deadline: Instant,
    waiter: Waiter,
}

impl Vbucket {
    /// An empty vBucket whose history begins with the branch `uuid`.
    pub fn new(
        vbid: Vbid,
        state: VbucketState,
        uuid: VbUuid,
        seed: HashSeed,
        account: MemoryAccount,
    ) -> Self {
        let eviction = EvictionOptions::default();
        let limits = DurabilityLimits::default();
        let figures = Arc::new(VbucketFigures::new(state));
        let checkpoints = CheckpointManager::continuing(Seqno(0), LogPersistence::File)
            .shown_in(Arc::clone(&figures.readers));
        let vbucket = Self {
            vbid,
            state,
            hash_table: HashTable::new(seed.clone(), TableCounts::of(&figures)),
            prepares: HashTable::new(seed, TableCounts::default()),
            monitor: Monitor::new(state, TrackedWrites::default(), &Topology::new(), limits),
            durability_limits: limits,
            last_abort_seqno: None,
            is_takeover_late: false,
            checkpoints,
            clock: Hlc::default(),
            clock_rules: ClockRules::default(),
            failover_table: FailoverTable::new(uuid),
            locks: DocumentLocks::default(),
            collections: Collections::counted_in(Arc::clone(&figures.collections)),
            max_deleted_revision: RevSeqno(0),
            persisted_seqno: Seqno(0),
            persisted_whole_seqno: Seqno(0),
            persisted_snapshot: SnapshotRange::default(),
            applied_seqno: Seqno(0),
            is_ephemeral: false,
            purge_seqno: Seqno(0),
            received_purge_seqno: Seqno(0),
            whole_from_seqno: wholeness::of_new(state),
            topology: Arc::default(),
            snapshot: SnapshotRange::default(),
            snapshot_kind: CheckpointKind::Memory,
            is_stream_new: true,
            streams_wait: false,
            facts: FileFacts::NONE,
            state_in_file: StateInFile::Outdated,
            queued_for_flush: None,
            queued_since: Instant::default(),
            waiters: Vec::new(),
            parked: Vec::new(),
            figures,
            absent: AbsentKeys::new(eviction.filter),
            residency: Residency::of(eviction.policy),
            eviction,
            random: Random::from_seed(vbid.0.into()),
            paging_hand: VisitPosition::default(),
            sampling_hand: VisitPosition::default(),
            account,
            accounted: MemoryUse::default(),
        };
        vbucket.publish();
        vbucket
    }

    /// The same vBucket, whose documents are evicted as `options` say. For a vBucket that has none
    /// yet.
    #[must_use]
    pub fn with_eviction(mut self, options: EvictionOptions) -> Self {
        assert!(self.hash_table.len() == 0, "how documents leave is decided before they come");
        self.absent = AbsentKeys::new(options.filter);
        self.residency = Residency::of(options.policy);
        self.eviction = options;
        self.publish();
        self
    }

    /// Which vBucket this is.
    pub fn vbid(&self) -> Vbid {
        self.vbid
    }

    /// Its role.
    pub fn state(&self) -> VbucketState {
        self.state
    }

    /// The branch of history that is written now.
    pub fn uuid(&self) -> VbUuid {
        self.failover_table.current().uuid
    }

    /// The branches of its history.
    pub fn failover_entries(&self) -> &[FailoverEntry] {
        self.failover_table.entries()
    }

    /// Everything up to here is in memory.
    pub fn high_seqno(&self) -> Seqno {
        self.checkpoints.high_seqno()
    }

    /// Everything up to here is durable: in the journal, or in the file; in an ephemeral bucket, it
    /// is only in the log no more.
    pub fn persisted_seqno(&self) -> Seqno {
        self.persisted_seqno
    }

    /// Everything up to here is in the file, where reads find it.
    pub fn applied_seqno(&self) -> Seqno {
        self.applied_seqno
    }

    /// Whether anything ever happened to it that a file should remember.
    pub fn has_history(&self) -> bool {
        self.high_seqno() > Seqno(0)
    }

    /// The highest CAS given out.
    pub fn max_cas(&self) -> document::Cas {
        self.clock.max_cas()
    }

    /// The highest revision that a deleted document had.
    pub fn max_deleted_revision(&self) -> RevSeqno {
        self.max_deleted_revision
    }

    /// How far the clocks of others were from this node's.
    pub fn drift(&self) -> Drift {
        self.clock.drift()
    }

    /// Versions named without the wall clock, which had not moved past the last one.
    pub fn logical_ticks(&self) -> u64 {
        self.clock.logical_ticks()
    }

    /// Has the clock go on from `cas`, back as well, and the file remember that. A start raises it
    /// again where it finds versions with a higher one.
    pub fn set_max_cas(&mut self, cas: document::Cas, effects: &mut Vec<Effect>) {
        self.clock.set_back(cas);
        self.flush_state_anew(effects);
    }

    /// What it has done.
    pub fn statistics(&self) -> VbucketStatistics {
        self.figures.done.read()
    }

    /// Counts on from what the vBucket has done whose place this one takes.
    pub fn continue_statistics(&mut self, before: VbucketStatistics) {
        let mut all = self.statistics();
        all += before;
        self.figures.done.set(&all);
    }

    /// The log.
    pub fn checkpoints(&self) -> &CheckpointManager {
        &self.checkpoints
    }

    /// Documents, in memory or not, tombstones left out.
    pub fn document_count(&self) -> usize {
        self.document_count_in_memory() + self.absent.document_count
    }

    /// Documents in memory, those without their value included, tombstones left out.
    pub fn document_count_in_memory(&self) -> usize {
        self.hash_table.len() - self.hash_table.tombstone_count()
    }

    /// Documents whose value is only in the file, those that are there whole included.
    pub fn ejected_count(&self) -> usize {
        self.hash_table.ejected_count() + self.absent.document_count
    }

    /// Look-ups of keys in the file, and their results, that are in memory.
    pub fn lookup_count(&self) -> usize {
        self.absent.lookup_count()
    }

    /// The filter of keys that are in the file and may not be in memory.
    pub fn key_filter(&self) -> &KeyFilter {
        self.absent.filter()
    }

    /// Tombstones that are not flushed yet, or not purged.
    pub fn tombstone_count(&self) -> usize {
        self.hash_table.tombstone_count()
    }

    /// Documents by the bits of their datatype.
    pub fn datatype_counts(&self) -> DatatypeCounts {
        self.hash_table.datatype_counts()
    }

    /// Documents that clients hold locked.
    pub fn lock_count(&self) -> usize {
        self.locks.count()
    }

    /// Bytes of the hash table, without what it holds.
    pub fn tables_bytes(&self) -> usize {
        self.hash_table.slots_bytes()
    }

    /// Bytes of the hash table and what it holds.
    pub fn documents_bytes(&self) -> usize {
        self.hash_table.bytes()
    }

    /// Shows a portion of the items in memory to `act`, at most `slots_max` slots' worth, and does
    /// what it says. Returns where to go on, none at the end.
    pub fn visit_items(
        &mut self,
        from: VisitPosition,
        slots_max: usize,
        act: impl FnMut(&Item) -> ItemAction,
        effects: &mut Vec<Effect>,
    ) -> Option<VisitPosition> {
        let mut released = Vec::new();
        let next = self.hash_table.visit(from, slots_max, act, &mut released);
        effects.extend(released.into_iter().map(Effect::Release));
        self.settle_account();
        next
    }

    /// How far the branch `uuid` has come, unless this history never ran through it.
    pub fn seqno_status(&self, uuid: VbUuid) -> Option<SeqnoStatus> {
        let current = self.uuid();
        let older_branch = match self.failover_table.end_of(uuid) {
            Some(end) => Some((uuid, end)),
            None if uuid == current => None,
            None => return None,
        };
        Some(SeqnoStatus {
            uuid: current,
            persisted: self.persisted_for_clients(),
            high: self.high_seqno(),
            older_branch,
        })
    }

    /// What the file is to remember now.
    pub fn persistent_state(&self) -> PersistentState {
        PersistentState {
            state: self.state,
            failover_table: Arc::clone(self.failover_table.entries()),
            high_seqno: self.high_seqno(),
            max_cas: self.clock.max_cas(),
            max_deleted_revision: self.max_deleted_revision,
            topology: Arc::clone(&self.topology),
            snapshot: match self.ends_whole_in_file() {
                true => SnapshotRange { start: self.persisted_seqno, end: self.persisted_seqno },
                false => self.snapshot,
            },
            purge_seqno: self.purge_seqno(),
            whole_from_seqno: self.whole_from_seqno,
            facts: self.facts,
        }
    }

    /// Asks for a flush, once of each urgency until the flusher has come.
    fn ask_for_flush(&mut self, urgency: FlushUrgency, effects: &mut Vec<Effect>) {
        if self.queued_for_flush < Some(urgency) {
            self.queued_for_flush = Some(urgency);
            effects.push(Effect::Flush(urgency));
        }
    }

    /// Hands out what has left the log. It stays counted until it is freed.
    fn destroy(&self, detached: Option<Detached>, effects: &mut Vec<Effect>) {
        let destruction = detached.map(|detached| Destruction::new(detached, &self.account));
        effects.extend(destruction.map(Effect::Destroy));
    }

    /// Brings the bucket's account in line with what this vBucket holds now.
    fn settle_account(&mut self) {
        let log = self.checkpoints.extent();
        let now = MemoryUse {
            tables_bytes: self.hash_table.slots_bytes()
                + self.prepares.slots_bytes()
                + self.absent.filter().bytes(),
            log_bytes: log.structure_bytes,
            checkpoints_bytes: log.bytes(),
        };
        self.account.settle(self.accounted, now);
        self.accounted = now;
        self.publish();
    }
}

impl Drop for Vbucket {
    fn drop(&mut self) {
        self.account.settle(self.accounted, MemoryUse::default());
    }
}

/// Pushes what must not be dropped under the lock.
fn release(item: Option<Item>, effects: &mut Vec<Effect>) {
    effects.extend(item.map(Effect::Release));
}

#[cfg(test)]
mod tests;
