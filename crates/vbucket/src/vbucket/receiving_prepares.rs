//! Durable writes that a replica, or a pending vBucket, receives: prepares and their ends. Source:
//! docs/specification/engine.md, section 5.6; docs/specification/protocol.md, section 21.

use document::{Cas, Deletion, Item, ItemBuilder, ItemMeta, Key, Operation, RevSeqno, Seqno};

use super::receiving::ReceiveError;
use super::{Vbucket, release};
use crate::checkpoint::CheckpointKind;
use crate::durability::{Monitor, PassiveMonitor, SnapshotEnd, TrackedWrite};
use crate::effect::Effect;
use crate::operation::Now;

impl Vbucket {
    /// The prepare of `key` at the seqno `prepare` is visible as of `seqno`.
    pub fn receive_commit(
        &mut self,
        key: Key<'_>,
        prepare: Seqno,
        seqno: Seqno,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ReceiveError> {
        self.check_received(seqno)?;
        match self.take_ended(key, prepare)? {
            Some(prepared) => {
                let item = prepared.committed(seqno);
                self.forget_prepare(prepared, effects);
                self.put_received(item, now, effects);
            }
            // The version itself has come, or comes.
            None => self.advance_received(seqno, effects),
        }
        self.end_received(effects);
        Ok(())
    }

    /// The prepare of `key` at the seqno `prepare` comes to nothing, at `seqno`.
    pub fn receive_abort(
        &mut self,
        key: Key<'_>,
        prepare: Seqno,
        seqno: Seqno,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<(), ReceiveError> {
        self.check_received(seqno)?;
        let ended = self.take_ended(key, prepare)?;
        if ended.is_none() && self.prepared(key).is_some() {
            // What has become of the older one comes behind this. It is to be decided on here if
            // that does not come, and the file has one of the two. Who has the other is told of its
            // end by the seqno up to which prepares are completed in this snapshot.
            self.advance_received(seqno, effects);
            self.end_received(effects);
            return Ok(());
        }
        let item = match &ended {
            Some(prepared) => prepared.aborted(seqno, now.wall.seconds()),
            // Who follows this vBucket one day may have the prepare.
            None => self.abort_without_prepare(key, prepare, seqno, now),
        };
        let queued = self.checkpoints.queue_received(item, ended.as_ref());
        self.last_abort_seqno = Some(seqno);
        if let Some(prepared) = ended {
            self.forget_prepare(prepared, effects);
        }
        self.finish_queueing(queued, now, effects);
        self.end_received(effects);
        Ok(())
    }

    /// Ends the prepare of `key` at `prepare` and returns it. In order, but for snapshots from a
    /// file: there it may be missing, too.
    fn take_ended(&mut self, key: Key<'_>, prepare: Seqno) -> Result<Option<Item>, ReceiveError> {
        let prepared = self.prepared(key).filter(|item| item.seqno() == prepare).cloned();
        if self.snapshot_kind.is_disk() {
            self.passive().complete(prepare);
            return Ok(prepared);
        }
        let prepared = prepared.ok_or(ReceiveError::NoSuchPrepare)?;
        if !self.passive().is_next(prepare) {
            return Err(ReceiveError::NoSuchPrepare);
        }
        self.passive().complete(prepare);
        self.passive().note_completed(prepare);
        Ok(Some(prepared))
    }

    fn abort_without_prepare(&self, key: Key<'_>, prepare: Seqno, seqno: Seqno, now: Now) -> Item {
        let meta = ItemMeta {
            expiry: now.wall.seconds(),
            deletion: Some(Deletion::Explicit),
            ..ItemMeta::default()
        };
        let builder = ItemBuilder::new(key, meta, &[]).with_operation(Operation::Abort { prepare });
        // The clock of a vBucket to which nothing has happened is at 0, which names no version.
        let cas = self.clock.max_cas().max(Cas(1));
        builder.charged_to(self.account.id()).finish(cas, seqno, RevSeqno(1))
    }

    /// The prepare that ends by what is received, without being said to: in a snapshot from a file,
    /// where a version stands for what led to it, or where a stream goes on behind a gap.
    pub(super) fn replaced_prepare(
        &self,
        builder: &ItemBuilder,
    ) -> Result<Option<Item>, ReceiveError> {
        let Some(prepare) = self.prepared(builder.key()) else { return Ok(None) };
        let Monitor::Passive(monitor) = &self.monitor else {
            return Err(ReceiveError::NotReceiving);
        };
        match self.snapshot_kind.is_disk() || monitor.may_replace(prepare.seqno()) {
            true => Ok(Some(prepare.clone())),
            false => Err(ReceiveError::UnexpectedPrepare),
        }
    }

    /// Makes `item` the prepare of its key, in place of `replaced`, and queues it.
    pub(super) fn put_prepare(
        &mut self,
        item: Item,
        replaced: Option<&Item>,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        // A snapshot from a file has no key twice; otherwise no checkpoint holds two prepares of
        // one (docs/durability.md, invariant 9).
        let is_memory = self.snapshot_kind == CheckpointKind::Memory;
        if is_memory && self.older_prepare_is_in_open(item.key()) {
            let detached = self.checkpoints.begin_part();
            self.destroy(detached, effects);
        }
        let queued = self.checkpoints.queue_received(item.clone(), replaced);
        release(self.prepares.insert(item.clone()), effects);
        let write = TrackedWrite::new(item, None);
        let level = write.level;
        self.passive().track(write);
        self.finish_queueing_prepare(level, queued, now, effects);
    }

    /// What watches over the prepares that are received.
    ///
    /// # Panics
    /// If none are: the role was checked.
    pub(super) fn passive(&mut self) -> &mut PassiveMonitor {
        match &mut self.monitor {
            Monitor::Passive(monitor) => monitor,
            Monitor::Active(_) | Monitor::Dead(_) => panic!("a vBucket that receives is passive"),
        }
    }

    /// If that was the last seqno of a snapshot: what is held of it now is acknowledged.
    pub(super) fn end_received(&mut self, effects: &mut Vec<Effect>) {
        if self.high_seqno() < self.snapshot.end {
            return;
        }
        let seqno = self.snapshot.end;
        let snapshot = self.checkpoints.open_snapshot();
        let is_disk = self.snapshot_kind.is_disk();
        let high_prepared_on_disk = is_disk.then(|| snapshot.high_prepared.unwrap_or(seqno));
        if let Some(completed) = snapshot.high_completed.filter(|_| is_disk) {
            self.end_prepares_through(completed, effects);
        }
        self.passive().end_snapshot(SnapshotEnd { seqno, high_prepared_on_disk });
        self.acknowledge_held(effects);
        // What has come behind the last prepare was in no haste before.
        if self.passive().end_count() > 0 {
            self.hurry_flush(effects);
        }
    }

    /// The sender's file says that all prepares up to `completed` have ended. Of one that is left
    /// over, nothing that is visible has come about.
    fn end_prepares_through(&mut self, completed: Seqno, effects: &mut Vec<Effect>) {
        while let Some(write) = self.passive().next_through(completed) {
            let (item, seqno) = (write.item.clone(), write.seqno);
            self.passive().complete(seqno);
            self.forget_prepare(item, effects);
        }
        self.passive().note_completed(completed);
    }
}
