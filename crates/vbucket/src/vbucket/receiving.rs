//! What another node's active vBucket sends into a replica, or into a pending vBucket. Source:
//! docs/specification/protocol.md, sections 20.6 to 20.8.

use document::{
    Cas, FailoverEntry, Item, ItemBuilder, Key, Operation, RevSeqno, Seqno, VbUuid, VbucketState,
};

use super::role::receives;
use super::write::release_builder;
use super::{Vbucket, release};
use crate::checkpoint::{CheckpointKind, Snapshot};
use crate::effect::Effect;
use crate::eviction::Absent;
use crate::operation::Now;
use crate::persistence::SnapshotRange;

/// A part of history that is announced: it is consistent once all of it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedSnapshot {
    /// Its first seqno, or the one before.
    pub start: Seqno,
    /// Its last seqno.
    pub end: Seqno,
    /// Whether it comes from the sender's file: no key twice, prepares that ended left out.
    pub is_disk: bool,
    /// Whether it begins a checkpoint in the sender's log.
    pub begins_checkpoint: bool,
    /// The last seqno in it of something visible.
    pub max_visible: Option<Seqno>,
    /// Up to here the sender's prepares are completed.
    pub high_completed: Option<Seqno>,
    /// The highest prepare that the sender had.
    pub high_prepared: Option<Seqno>,
    /// Of a snapshot from the sender's file: up to here that may have forgotten tombstones.
    pub purge_seqno: Option<Seqno>,
}

/// A version of a document that is received: a mutation, a deletion, or a prepare, as the builder's
/// operation says.
pub struct Received {
    /// Its content.
    pub builder: ItemBuilder,
    /// Its version.
    pub cas: Cas,
    /// Its place in history.
    pub seqno: Seqno,
    /// How often the document has changed.
    pub revision: RevSeqno,
}

/// Why something was not received. The sender breaks the rules, or the vBucket has another role by
/// now: the stream ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveError {
    /// The vBucket is neither a replica nor pending.
    NotReceiving,
    /// The seqno is not in the snapshot that was announced.
    OutOfSnapshot,
    /// The seqno is not above the highest one.
    SeqnoTooLow,
    /// What is to end has not begun.
    NoSuchPrepare,
    /// The snapshot is none that can be received.
    BadSnapshot,
    /// What it says of a collection is not understood.
    BadEvent,
    /// The document has a prepare already that has not ended.
    UnexpectedPrepare,
    /// The stream was granted to a vBucket that is elsewhere: what is between would be missing.
    OtherPosition,
}

/// Where a stream into a vBucket has to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPosition {
    /// Everything up to here has come.
    pub start: Seqno,
    /// The snapshot that it is in; at its end if that is whole.
    pub snapshot_start: Seqno,
    /// Its end.
    pub snapshot_end: Seqno,
    /// The branch of history that it is in; 0 where nothing has come.
    pub uuid: VbUuid,
}

impl Vbucket {
    /// Where a stream has to go on.
    pub fn stream_position(&self) -> StreamPosition {
        let start = self.high_seqno();
        let (snapshot_start, snapshot_end) = match self.snapshot {
            _ if self.is_snapshot_whole() => (start, start),
            range => (range.start.min(start), range.end),
        };
        let uuid = if start == Seqno(0) { VbUuid(0) } else { self.uuid() };
        StreamPosition { start, snapshot_start, snapshot_end, uuid }
    }

    /// Another node has agreed to send what follows `asked_from`: its branches of history are this
    /// vBucket's from now on. Unless that is not [`Vbucket::stream_position`] any more, because the
    /// vBucket was emptied, or is another than the one that the stream was asked for.
    pub fn begin_receiving(
        &mut self,
        asked_from: StreamPosition,
        failover_log: &[FailoverEntry],
        effects: &mut Vec<Effect>,
    ) -> Result<(), ReceiveError> {
        self.check_receiving()?;
        if asked_from != self.stream_position() {
            return Err(ReceiveError::OtherPosition);
        }
        self.failover_table.adopt(failover_log);
        self.is_stream_new = true;
        self.passive().begin_stream();
        let held = self.high_prepared_seqno();
        // A node that has just become active counts from scratch: it is told again what is held.
        effects.extend((held > Seqno(0)).then_some(Effect::AcknowledgePrepares(held)));
        self.flush_state_anew(effects);
        Ok(())
    }

    /// A snapshot is announced. What is received belongs to it until the next one is. It begins no
    /// later than behind what is here: nothing lies in a gap.
    pub fn receive_snapshot(
        &mut self,
        received: ReceivedSnapshot,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ReceiveError> {
        self.check_receiving()?;
        let high = self.high_seqno();
        let ReceivedSnapshot { start, end, .. } = received;
        let is_behind = |seqno: Option<Seqno>| seqno.is_some_and(|seqno| seqno > end);
        let is_past = start < high && end <= high;
        let leaves_gap = start > high.next();
        if start > end
            || is_past
            || leaves_gap
            || is_behind(received.max_visible)
            || is_behind(received.high_completed)
            || is_behind(received.high_prepared)
            || is_behind(received.purge_seqno)
        {
            return Err(ReceiveError::BadSnapshot);
        }
        let base = self.last_whole_seqno();
        // A sender that does not say what it has purged may have purged anything in it.
        let purge_seqno = received.is_disk.then_some(received.purge_seqno.unwrap_or(end));
        let kind = match (received.is_disk, high) {
            (false, _) => CheckpointKind::Memory,
            (true, Seqno(0)) => CheckpointKind::InitialDisk,
            (true, _) => CheckpointKind::Disk,
        };
        let snapshot = Snapshot {
            start: high.next().min(end),
            end,
            whole_end: end,
            base,
            visible_end: received.max_visible.unwrap_or(end),
            high_completed: received.high_completed.or(received.is_disk.then_some(Seqno(0))),
            // A lower one says that the sender does not know.
            high_prepared: received.high_prepared.filter(|&seqno| seqno >= start),
            purge_seqno,
        };
        let begins = received.begins_checkpoint || received.is_disk || self.is_stream_new;
        if begins || !self.checkpoints.extend_snapshot(snapshot) {
            let detached = self.checkpoints.begin_snapshot(kind, snapshot);
            self.destroy(detached, effects);
        }
        self.begin_snapshot_purged(purge_seqno.unwrap_or_default());
        self.is_stream_new = false;
        self.snapshot = SnapshotRange { start: base, end };
        self.snapshot_kind = kind;
        self.settle_account();
        Ok(())
    }

    /// Receives a version of a document, or a prepare of one.
    pub fn receive(
        &mut self,
        received: Received,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ReceiveError> {
        let Received { builder, cas, seqno, revision } = received;
        let replaces = self.check_received(seqno).and_then(|()| self.replaced_prepare(&builder));
        let replaced = match replaces {
            Ok(replaced) => replaced,
            Err(error) => {
                release_builder(builder, effects);
                return Err(error);
            }
        };
        let operation = builder.operation();
        let cas = self.clock.adopt(cas, now.wall, &self.clock_rules);
        let item = builder.charged_to(self.account.id()).finish(cas, seqno, revision);
        match operation {
            Operation::Mutation => self.put_received(item, now, effects),
            Operation::Prepare(_) => self.put_prepare(item, replaced.as_ref(), now, effects),
            Operation::Commit { .. } | Operation::Abort { .. } => {
                panic!("what ends a prepare is received by itself")
            }
        }
        if let Some(replaced) = replaced {
            self.passive().complete(replaced.seqno());
            // A prepare that has come has taken its place among the prepares already.
            if operation == Operation::Mutation {
                self.forget_prepare(replaced, effects);
            } else {
                effects.push(Effect::Release(replaced));
            }
        }
        self.end_received(effects);
        Ok(())
    }

    /// Makes `item` the version of its key that is visible, and queues it.
    pub(super) fn put_received(&mut self, item: Item, now: Now, effects: &mut Vec<Effect>) {
        self.locks.release(item.key());
        let replaced = self.make_visible(&item);
        match &replaced {
            _ if item.is_deleted() => self.figures.done.deletions.add(1),
            Some(before) if !before.is_deleted() => self.figures.done.updates.add(1),
            _ => self.figures.done.creations.add(1),
        }
        let queued = self.checkpoints.queue_received(item, replaced.as_ref());
        release(replaced, effects);
        self.finish_queueing(queued, now, effects);
    }

    /// A version of `key` comes that nobody has looked up: where documents leave memory whole, the
    /// file may have an older one, which does not count from now on.
    ///
    /// Whether it does, the filter of keys guesses: it takes tombstones, and now and then a key
    /// that was never there, for documents. So documents of a replica under full eviction are
    /// counted inexactly, until the file has what came and is asked how many it has.
    /// Returns whether it was taken for one that the file has.
    pub(super) fn note_arrival(&mut self, key: Key<'_>) -> bool {
        let may_have_older = self.may_lack_documents()
            && self.hash_table.get(key).is_none()
            && matches!(self.absent.find(key), Absent::Unknown);
        if may_have_older && self.collections.uid() != 0 {
            self.absent.note_guess(key.collection());
        }
        // Where no document is in the file alone it has a tombstone.
        let has_older = may_have_older && self.absent.document_count > 0;
        if has_older {
            self.absent.document_count -= 1;
        }
        self.absent.forget(key);
        has_older
    }

    /// Nothing lies between the highest seqno and `seqno` that is sent here.
    pub fn receive_seqno_advanced(
        &mut self,
        seqno: Seqno,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ReceiveError> {
        self.check_received(seqno)?;
        self.advance_received(seqno, effects);
        self.end_received(effects);
        Ok(())
    }

    /// Everything up to `seqno` has come, where nothing is that is queued.
    pub(super) fn advance_received(&mut self, seqno: Seqno, effects: &mut Vec<Effect>) {
        self.checkpoints.advance_received(seqno);
        // No item comes for this seqno that would tell the file where the snapshot ends.
        self.note_whole_in_file(self.persisted_whole_seqno);
        self.flush_state(effects);
        self.answer_waiters(effects);
        // The end of a snapshot may make the copy whole.
        self.publish();
    }

    /// Whether everything has come that the last snapshot announced.
    pub fn is_snapshot_whole(&self) -> bool {
        self.high_seqno() >= self.snapshot.end
    }

    /// Whether the first snapshot from another node's file is still coming: until it is whole there
    /// is nothing here that others could follow.
    pub fn is_receiving_initial_disk_snapshot(&self) -> bool {
        self.state != VbucketState::Active
            && self.snapshot_kind == CheckpointKind::InitialDisk
            && !self.is_snapshot_whole()
    }

    fn check_receiving(&self) -> Result<(), ReceiveError> {
        if receives(self.state) { Ok(()) } else { Err(ReceiveError::NotReceiving) }
    }

    /// Whether something at `seqno` can be received now.
    pub(super) fn check_received(&self, seqno: Seqno) -> Result<(), ReceiveError> {
        self.check_receiving()?;
        if seqno <= self.high_seqno() {
            return Err(ReceiveError::SeqnoTooLow);
        }
        if self.is_stream_new || seqno > self.snapshot.end {
            return Err(ReceiveError::OutOfSnapshot);
        }
        Ok(())
    }
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
