//! Making durable what vBuckets have queued, a group of them at a time.

use std::time::Duration;

use document::{Seqno, Vbid};
use platform::Instant;
use storage::{CommitReport, StorageError, VbucketRecord};
use vbucket::{Effect, FlushUrgency, FlushWork, Vbucket};

use super::apply::note_applied;
use super::file_state;
use super::flush_order::FlushOrder;
use super::write_gate::WritePath;
use crate::core::{BucketCore, VbucketSlot, micros};
use crate::memory::CheckpointState;

/// How often room is made in a full journal for what a backup waits for, without any use.
const FULL_ROUNDS_MAX: usize = 100;

/// Bytes of items after which a flusher looks who has come meanwhile: about as many as the journal
/// makes durable with one sync, so that it costs none.
const PORTION_BYTES_MAX: u64 = 8 << 20;

/// What became of a group of vBuckets.
pub(crate) struct Flushed {
    pub(super) item_count: usize,
    /// A vBucket could not be flushed: the disk failed.
    pub(crate) has_failed: bool,
    /// The journal has no room before files have followed it.
    pub(crate) journal_is_full: bool,
}

/// How the flush of one vBucket went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// It is durable, or will never be.
    Done,
    /// The disk failed.
    Failed,
    /// The journal has no room.
    JournalIsFull,
}

impl BucketCore {
    /// A vBucket has something to flush. What nobody waits for is not put off while the log's
    /// memory is short.
    pub(crate) fn queue_flush(&self, vbid: Vbid, urgency: FlushUrgency) {
        let is_short = || self.checkpoint_state() != CheckpointState::Available;
        let urgency = match urgency {
            FlushUrgency::Deferred if is_short() => FlushUrgency::Soon,
            urgency => urgency,
        };
        self.disk.flush_queues.push(vbid, urgency);
    }

    /// Flushes `group`, whose order is that of vBuckets, each in its turn: a journal that fills up
    /// meanwhile refuses the others. What fails is queued again.
    pub(crate) fn flush(&self, group: &[Vbid]) -> Flushed {
        self.flush_each(group, FlushOrder::AwaitedFirst, u64::MAX, Vbucket::begin_flush)
    }

    /// Flushes of `group` the first ones, so many that it does not take long. The others are queued
    /// in front: who has come meanwhile may go before them.
    pub(super) fn flush_portion(&self, group: &[Vbid], order: FlushOrder) -> Flushed {
        self.flush_each(group, order, PORTION_BYTES_MAX, Vbucket::begin_flush)
    }

    /// Flushes of `group` the states alone, for which a full journal has a reserve.
    pub(crate) fn flush_states(&self, group: &[Vbid]) -> Flushed {
        self.flush_each(group, FlushOrder::AwaitedFirst, u64::MAX, Vbucket::begin_state_flush)
    }

    fn flush_each(
        &self,
        group: &[Vbid],
        order: FlushOrder,
        bytes_max: u64,
        begin: impl Fn(&mut Vbucket) -> Option<FlushWork>,
    ) -> Flushed {
        let is_sorted = group.is_sorted_by(|one, next| one < next);
        assert!(is_sorted, "file locks are taken in the order of vBuckets, each once");
        let slots: Vec<_> =
            group.iter().filter_map(|&vbid| Some((vbid, self.slot(vbid)?))).collect();
        let _files: Vec<_> = slots.iter().map(|(_, slot)| slot.lock_file()).collect();
        let mut started = self.clock.now();
        let (mut batches, mut writes, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut turns = order.turns(&slots).into_iter();
        while bytes < bytes_max
            && let Some(turn) = turns.next()
        {
            let begun = turn.slot.lock().as_mut().and_then(&begin);
            if let Some(mut batch) = begun {
                let write = self.storage_batch(&mut batch);
                // Who is alone has nobody to make way for.
                if !turns.as_slice().is_empty() {
                    bytes += write.item_bytes();
                }
                batches.push(batch);
                writes.push(write);
            }
        }
        self.disk.flush_queues.put_back(turns.map(|turn| (turn.vbid, turn.is_awaited)));
        let item_count = batches.iter().map(FlushWork::item_count).sum();
        let mut flushed = Flushed { item_count, has_failed: false, journal_is_full: false };
        let mut answered = batches.iter();
        // One allocation for what all of them want done.
        let mut effects = Vec::new();
        self.store.commit(writes, |vbid, result| {
            let batch = answered.next().filter(|batch| batch.vbid == vbid);
            let batch = batch.expect("storage answers for what it was given, in its order");
            let now = self.clock.now();
            let is_own_commit = result.as_ref().is_ok_and(|report| report.applied.is_some());
            match self.finish_flush(batch, now.since(started), result, &mut effects) {
                Outcome::Done => {}
                Outcome::Failed => flushed.has_failed = true,
                Outcome::JournalIsFull => flushed.journal_is_full = true,
            }
            // The commit of a file is timed by itself; the vBuckets of one group all took as long.
            if is_own_commit {
                started = self.clock.now();
            }
        });
        if flushed.journal_is_full {
            self.counters.add(&self.counters.journal_full_waits, 1);
            let used_bytes = self.store.journal_usage().map_or(0, |journal| journal.used_bytes);
            self.disk.flush_queues.note_full_journal(used_bytes);
        }
        self.look_for_room();
        self.wake_appliers();
        flushed
    }

    /// Flushes the items of these vBuckets that are only in memory now, as many flushes as that
    /// takes; brings files up to date where the journal has no room for them. What fails is queued
    /// again; then this is a vBucket of which not everything is durable.
    pub(crate) fn flush_items(&self, wanted: impl Fn(Vbid) -> bool) -> Result<(), Vbid> {
        let seqnos = |slot: &VbucketSlot| {
            let place = slot.lock();
            place.as_ref().map(|vbucket| (vbucket.persisted_seqno(), vbucket.high_seqno()))
        };
        let mut behind: Vec<(Vbid, Seqno, Seqno)> = self
            .slots()
            .filter(|(vbid, _)| wanted(*vbid))
            .filter_map(|(vbid, slot)| {
                seqnos(slot).map(|(persisted, high)| (vbid, persisted, high))
            })
            .filter(|(_, persisted, wanted)| persisted < wanted)
            .collect();
        let mut rounds_left = FULL_ROUNDS_MAX;
        while let Some(&(first, ..)) = behind.first() {
            let mut journal_is_full = false;
            for group in behind.chunks(self.config.persistence.group_vbuckets_max()) {
                let group: Vec<Vbid> = group.iter().map(|(vbid, ..)| *vbid).collect();
                journal_is_full |= self.flush(&group).journal_is_full;
            }
            if journal_is_full {
                self.apply_everything();
            }
            let mut has_moved = false;
            behind.retain_mut(|(vbid, before, wanted)| {
                // Of a vBucket that has gone nothing is wanted any more; nor of one that has begun
                // anew, or went back, what it does not have any more.
                let now = self.slot(*vbid).and_then(seqnos);
                let (persisted, high) = now.unwrap_or((*wanted, *wanted));
                has_moved |= persisted > *before || high < *wanted;
                (*before, *wanted) = (persisted, high.min(*wanted));
                *before < *wanted
            });
            if has_moved {
                rounds_left = FULL_ROUNDS_MAX;
            } else if journal_is_full && rounds_left > 0 {
                // Others may have taken the room that was made.
                rounds_left -= 1;
            } else {
                return Err(first);
            }
        }
        Ok(())
    }

    pub(crate) fn storage_batch(&self, batch: &mut FlushWork) -> storage::FlushBatch {
        let mut items = Vec::new();
        if self.store.keeps_items() {
            let content = batch.take_items(self.config.batch_bytes_max());
            self.counters.add(&self.counters.flusher_deduplications, content.superfluous);
            items = content.items;
        } else {
            batch.count_items();
        }
        let document_count = batch.document_count;
        let state = VbucketRecord { document_count, ..file_state::to_file(&batch.state) };
        let previous_seqno = batch.previous_seqno;
        storage::FlushBatch { vbid: batch.vbid, previous_seqno, items, state }
    }

    /// Tells the vBucket how its flush went.
    fn finish_flush(
        &self,
        batch: &FlushWork,
        took: Duration,
        result: Result<CommitReport, StorageError>,
        effects: &mut Vec<Effect>,
    ) -> Outcome {
        let slot = self.slot(batch.vbid).expect("a flushed vBucket has a place");
        match result {
            Ok(report) => {
                self.note_commit(batch, took, &report);
                if let Some(vbucket) = slot.lock().as_mut() {
                    vbucket.flush_succeeded(batch, self.now(), effects);
                    // Under the same hold: what is said to be durable is in the file, too.
                    if let Some(applied) = &report.applied {
                        note_applied(vbucket, applied);
                    }
                }
                self.note_disk(batch.vbid, WritePath::Flush, None);
                match report.applied {
                    Some(applied) => self.follow_apply(batch.vbid, &applied, effects),
                    None => self.carry_out(batch.vbid, effects),
                }
                Outcome::Done
            }
            Err(error) => {
                let urgency = slot.lock().as_mut().map(|vbucket| vbucket.flush_failed(batch));
                let queue_again = || {
                    let urgency = urgency.unwrap_or(FlushUrgency::Soon);
                    self.disk.flush_queues.push_again(batch.vbid, urgency);
                };
                // A full journal is no failure of the disk: writers are let in while appliers make
                // room.
                if matches!(error, StorageError::JournalFull { .. }) {
                    queue_again();
                    return Outcome::JournalIsFull;
                }
                self.counters.add(&self.counters.commits_failed, 1);
                if matches!(error, StorageError::Corrupt { .. } | StorageError::OutOfOrder { .. }) {
                    self.give_up_file(batch.vbid, &error);
                    return Outcome::Done;
                }
                self.note_disk(batch.vbid, WritePath::Flush, Some(&error));
                queue_again();
                Outcome::Failed
            }
        }
    }

    fn note_commit(&self, batch: &FlushWork, took: Duration, report: &CommitReport) {
        // A state alone, or a write behind a role that has just changed, does not say how long.
        if report.item_count > 0 && batch.queued_since != Instant::default() {
            let age = self.clock.now().since(batch.queued_since);
            self.counters.timings.storage_age.record(micros(age));
        }
        self.counters.timings.disk_commit.record(micros(took));
        self.counters.add(&self.counters.commits, 1);
        self.counters.add(&self.counters.items_persisted, report.item_count);
    }
}
