//! Walks over the documents in memory, a portion at a time: who leaves, and who is read how often.

use document::{Item, Key, Seqno, VbucketState, expiry};

use super::{Vbucket, release};
use crate::document_locks::DocumentLocks;
use crate::effect::Effect;
use crate::eviction::frequency_counter;
use crate::eviction::{Absent, EvictionPolicy, EvictionStrategy, FrequencyHistogram, Verdict};
use crate::hash_table::{ItemAction, VisitPosition};
use crate::operation::Now;

/// Documents deleted because their time was over, in one portion.
const EXPIRED_MAX: usize = 32;

/// How far a portion of a walk goes.
#[derive(Clone, Copy, Debug)]
pub struct PagingLimits {
    /// Slots of the hash table that are gone through.
    pub slots_max: usize,
    /// Bytes after which everybody stays.
    pub bytes_max: u64,
    /// Whether tombstones that nothing but a hash table holds go before their time, and nothing
    /// else: without a disk each deletion leaves one, and of small documents that are written often
    /// they would leave room for few.
    pub forgets_tombstones: bool,
}

/// What a portion of a walk has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paged {
    /// Whether the walk has come to the end; the next one begins at the beginning.
    pub is_at_end: bool,
    /// Documents that have left memory, with their values alone or whole, or were deleted because
    /// there is no disk.
    pub evicted_count: usize,
    /// Tombstones that were forgotten.
    pub forgotten_count: usize,
    /// Bytes that this frees, those of deleted documents once the log is done with them.
    pub freed_bytes: u64,
}

/// What could leave memory, from a look at some of it.
#[derive(Clone, Debug, Default)]
pub struct EvictableSample {
    /// The frequency counters of those that could leave.
    pub frequencies: FrequencyHistogram,
    /// Their bytes.
    seen_bytes: u64,
    /// Bytes of everything that was looked at, and of the tombstones among it that may go.
    looked_at_bytes: u64,
    tombstone_bytes: u64,
    /// Documents that were looked at.
    seen_count: u64,
    /// Documents in the hash tables that were looked into.
    document_count: u64,
}

impl EvictableSample {
    /// Bytes that could leave of all documents, if those that were seen are like the others.
    pub fn evictable_bytes(&self) -> u64 {
        let all = u128::from(self.seen_bytes) * u128::from(self.document_count);
        let bytes = all.checked_div(self.seen_count.into()).unwrap_or(0);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Whether tombstones take more than one part in `parts` of what was looked at for both
    /// samples.
    pub fn tombstones_take_more_than(&self, other: &Self, parts: u64) -> bool {
        let tombstone_bytes = self.tombstone_bytes.saturating_add(other.tombstone_bytes);
        let looked_at_bytes = self.looked_at_bytes.saturating_add(other.looked_at_bytes);
        tombstone_bytes.saturating_mul(parts) > looked_at_bytes
    }
}

/// What of a document can leave memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Nothing,
    Value,
    Whole,
    /// It is deleted: there is no disk.
    Deleted,
}

/// What decides which documents of a vBucket can leave.
#[derive(Clone, Copy)]
struct Exits {
    policy: EvictionPolicy,
    /// What is above is in memory alone, or in the journal, where nobody looks.
    applied: Seqno,
    /// What is from here on is in the open checkpoint, and still in the log.
    open_from: Seqno,
    is_ephemeral: bool,
    is_active: bool,
    now: Now,
}

impl Vbucket {
    /// Evicts what `strategy` takes of the documents in the next slots, from where the portion
    /// before has ended. Documents whose time is over are deleted on the way.
    pub fn page(
        &mut self,
        limits: PagingLimits,
        strategy: EvictionStrategy,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Paged {
        let mut expired = Vec::new();
        let mut departed = Vec::new();
        let mut deleted = Vec::new();
        let mut paged = Paged::default();
        let mut released = Vec::new();
        let mut purge_seqno = self.purge_seqno;
        let (exits, locks, prepares) = (self.exits(now), &mut self.locks, &self.prepares);
        let random = &mut self.random;
        let is_active = self.state == VbucketState::Active;
        let judge = |item: &Item| {
            let is_over = expiry::is_past(item.expiry(), now.wall.seconds()) && !item.is_deleted();
            // To delete what is over its time is for the active vBucket.
            if is_active && is_over && expired.len() < EXPIRED_MAX {
                expired.push(item.clone());
                return ItemAction::Keep;
            }
            if limits.forgets_tombstones {
                if !exits.may_forget(item) {
                    return ItemAction::Keep;
                }
                purge_seqno = purge_seqno.max(item.seqno());
                paged.forgotten_count += 1;
                return ItemAction::Remove;
            }
            let leaving = exits.of(item, locks);
            // What a durable write is about to replace need not be looked up when it does.
            let is_prepared = prepares.len() > 0 && prepares.get(item.key()).is_some();
            if leaving == Leaving::Nothing || is_prepared || paged.freed_bytes >= limits.bytes_max {
                return ItemAction::Keep;
            }
            if let Verdict::Keep(frequency) =
                strategy.judge(item.heat(), (random.next_u64() >> 32) as u32)
            {
                item.set_heat(frequency);
                return ItemAction::Keep;
            }
            paged.evicted_count += 1;
            paged.freed_bytes += leaving.bytes_of(item);
            match leaving {
                Leaving::Nothing => ItemAction::Keep,
                Leaving::Value => ItemAction::Replace(item.ejected()),
                Leaving::Whole => {
                    departed.push(item.clone());
                    ItemAction::Remove
                }
                Leaving::Deleted => {
                    deleted.push(item.clone());
                    ItemAction::Keep
                }
            }
        };
        let next = self.hash_table.visit(self.paging_hand, limits.slots_max, judge, &mut released);
        self.paging_hand = next.unwrap_or_default();
        paged.is_at_end = next.is_none();
        self.purge_seqno = purge_seqno;
        self.figures.done.purged_tombstones.add(paged.forgotten_count);
        effects.extend(released.into_iter().map(Effect::Release));
        for item in departed {
            self.depart(item, effects);
        }
        for item in expired {
            self.delete_expired(&item, now, effects);
            effects.push(Effect::Release(item));
        }
        let ejected_count = paged.evicted_count - deleted.len();
        self.figures.done.ejections.add(ejected_count);
        for item in deleted {
            self.auto_delete(item.key(), item.seqno(), now, effects);
            effects.push(Effect::Release(item));
        }
        self.settle_account();
        paged
    }

    /// Adds up to `slots_max` slots to `sample`: other ones than the last time, and not the ones
    /// where the pager is.
    pub fn sample_evictable(&mut self, slots_max: usize, now: Now, sample: &mut EvictableSample) {
        sample.document_count += u64::try_from(self.document_count_in_memory()).unwrap_or(u64::MAX);
        let (exits, locks) = (self.exits(now), &mut self.locks);
        let look = |item: &Item| {
            sample.seen_count += 1;
            let bytes = u64::try_from(item.allocation_size()).unwrap_or(u64::MAX);
            sample.looked_at_bytes += bytes;
            sample.tombstone_bytes += if exits.may_forget(item) { bytes } else { 0 };
            let leaving = exits.of(item, locks);
            if leaving != Leaving::Nothing {
                sample.frequencies.record(item.heat());
                sample.seen_bytes += leaving.bytes_of(item);
            }
            ItemAction::Keep
        };
        let next = self.hash_table.visit(self.sampling_hand, slots_max, look, &mut Vec::new());
        self.sampling_hand = next.unwrap_or_default();
        // Locks whose time is over have gone.
        self.publish();
    }

    /// Leaves `percent` of the frequency counters in up to `slots_max` slots. Returns where to go
    /// on; none at the end.
    pub fn decay_frequencies(
        &mut self,
        from: VisitPosition,
        slots_max: usize,
        percent: u8,
    ) -> Option<VisitPosition> {
        let decay = |item: &Item| {
            item.set_heat(frequency_counter::after_decay(item.heat(), percent));
            ItemAction::Keep
        };
        self.hash_table.visit(from, slots_max, decay, &mut Vec::new())
    }

    /// Drops the value of `key` from memory if the file has it, and the rest where documents leave
    /// whole. `None` when there is no such document, else whether it is out of memory now.
    pub fn eject(&mut self, key: Key<'_>, now: Now, effects: &mut Vec<Effect>) -> Option<bool> {
        let Some(item) = self.hash_table.get(key) else {
            let is_out_already =
                self.may_lack_documents() && matches!(self.absent.find(key), Absent::Unknown);
            return is_out_already.then_some(true);
        };
        if item.is_deleted() {
            return None;
        }
        let is_prepared = self.prepared(key).is_some();
        let exits = self.exits(now);
        if self.is_ephemeral || is_prepared || exits.must_stay(item) {
            return Some(false);
        }
        match exits.of(item, &mut self.locks) {
            Leaving::Nothing | Leaving::Deleted => {
                self.publish();
                return Some(true);
            }
            Leaving::Value => {
                let ejected = item.ejected();
                release(self.hash_table.insert(ejected), effects);
            }
            Leaving::Whole => {
                if let Some(item) = self.hash_table.remove(key) {
                    self.depart(item, effects);
                }
            }
        }
        self.figures.done.ejections.add(1);
        self.settle_account();
        Some(true)
    }

    fn exits(&self, now: Now) -> Exits {
        Exits {
            policy: self.eviction.policy,
            applied: self.applied_seqno,
            open_from: self.checkpoints.open_kept_from(),
            is_ephemeral: self.is_ephemeral,
            is_active: self.state == VbucketState::Active,
            now,
        }
    }

    /// A document has left the hash table whole.
    fn depart(&mut self, item: Item, effects: &mut Vec<Effect>) {
        self.absent.document_count += 1;
        self.note_departure(item.key());
        effects.push(Effect::Release(item));
    }
}

impl Exits {
    /// Whether `item` is a tombstone that no disk has and no log holds any more.
    fn may_forget(&self, item: &Item) -> bool {
        self.is_ephemeral && item.is_deleted() && item.seqno() <= self.applied
    }

    /// Whether `item` is not in the file, or is a commit in the open checkpoint. What comes back of
    /// that from the file is a document like any other, and what replaces it would take its place
    /// in the log, where the prepare has to be followed by its end (docs/durability.md, invariant
    /// 9). To let it go would free nothing: the log has it.
    fn must_stay(&self, item: &Item) -> bool {
        let is_in_open = item.seqno() >= self.open_from;
        item.seqno() > self.applied || (is_in_open && item.operation().ended_prepare().is_some())
    }

    /// What of `item` can leave memory. A lock is in memory alone, and stays with its document.
    fn of(&self, item: &Item, locks: &mut DocumentLocks) -> Leaving {
        if item.is_deleted() || item.operation().is_prepared() || self.must_stay(item) {
            return Leaving::Nothing;
        }
        let is_locked = locks.get(item.key(), self.now.monotonic).is_some();
        if self.is_ephemeral {
            let may_go = self.is_active && !is_locked;
            return if may_go { Leaving::Deleted } else { Leaving::Nothing };
        }
        if self.policy == EvictionPolicy::Full && !is_locked {
            return Leaving::Whole;
        }
        if item.is_ejected() { Leaving::Nothing } else { Leaving::Value }
    }
}

impl Leaving {
    /// Bytes that this frees of `item`.
    fn bytes_of(self, item: &Item) -> u64 {
        let bytes = match self {
            Self::Nothing => 0,
            Self::Value => item.value().len(),
            Self::Whole | Self::Deleted => item.allocation_size(),
        };
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}
