//! Durable writes: what their monitor decides happens here. Source: docs/specification/engine.md,
//! sections 5.4 to 5.8.
//!
//! A prepare is beside the document that it will replace: in `prepares`, which is empty but while
//! there are durable writes, so that everybody else pays one look at a length. All is decided under
//! the vBucket's lock: who brings the last acknowledgement, or the flush that was missing, commits
//! in the same call whatever waits for it.

use document::{DurabilityLevel, Item, ItemBuilder, Key, RevSeqno, Seqno, VbucketState};
use platform::Instant;

use super::{Vbucket, release};
use crate::durability::{
    BeginRefusal, ClientWait, DurabilityLimits, DurabilityStatus, GivenUp, Monitor, TrackedWrite,
};
use crate::effect::Effect;
use crate::operation::{Ambiguity, Mutation, Now, Refusal, SyncWriteEnd, SyncWriteRequest};
use crate::waiter::Waiter;

impl Vbucket {
    /// Sets which durable writes are taken on.
    pub fn set_durability_limits(&mut self, limits: DurabilityLimits) {
        self.durability_limits = limits;
        if let Monitor::Active(monitor) = &mut self.monitor {
            monitor.set_limits(limits);
        }
    }

    /// The node `node` holds all prepares up to `seqno` as their levels demand. Heard of nodes that
    /// are in no topology yet, too, and of prepares whose time is long over.
    pub fn acknowledge(&mut self, node: &str, seqno: Seqno, now: Now, effects: &mut Vec<Effect>) {
        if let Monitor::Active(monitor) = &mut self.monitor {
            monitor.acknowledge(node, seqno);
            self.resolve_sync_writes(now, effects);
        }
    }

    /// The node `node` follows anew, from behind `after` on: what it has acknowledged above that,
    /// it does not have any more.
    pub fn restart_acknowledgements(&mut self, node: &str, after: Seqno) {
        if let Monitor::Active(monitor) = &mut self.monitor {
            monitor.restart_node(node, after);
        }
    }

    /// Ends the durable writes whose deadline has come, in order. Returns the next deadline.
    pub fn end_overdue_sync_writes(
        &mut self,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Option<Instant> {
        let is_over = |client: ClientWait| client.deadline <= now.monotonic;
        self.give_up_sync_writes(is_over, Ambiguity::TimeIsOver, now, effects);
        self.resolve_sync_writes(now, effects);
        match &mut self.monitor {
            Monitor::Active(monitor) => monitor.announce_anew(),
            Monitor::Passive(_) | Monitor::Dead(_) => None,
        }
    }

    /// All prepares up to here are held here as their levels demand.
    pub fn high_prepared_seqno(&self) -> Seqno {
        self.monitor.writes().high_prepared
    }

    /// The highest prepare that has ended; those below have, too.
    pub fn high_completed_seqno(&self) -> Seqno {
        self.monitor.writes().high_completed
    }

    /// The highest seqno of something visible.
    pub fn max_visible_seqno(&self) -> Seqno {
        self.checkpoints.max_visible_seqno()
    }

    /// The highest seqno for who compares it with others. Of a replica that is in the middle of a
    /// snapshot the end of that: what lies before is no state that the sender ever had. Source:
    /// docs/specification/protocol.md, section 14.3.
    pub fn comparable_high_seqno(&self) -> Seqno {
        let high = self.high_seqno();
        if self.is_within_snapshot() { high.max(self.snapshot.end) } else { high }
    }

    /// The same of what is visible.
    pub fn comparable_visible_seqno(&self) -> Seqno {
        let visible = self.max_visible_seqno();
        let end = self.checkpoints.open_snapshot().visible_end;
        if self.is_within_snapshot() { visible.max(end) } else { visible }
    }

    fn is_within_snapshot(&self) -> bool {
        self.state != VbucketState::Active && !self.is_snapshot_whole()
    }

    /// Prepares that have not ended.
    pub fn prepare_count(&self) -> usize {
        self.prepares.len()
    }

    /// Durable writes as statistics show them.
    pub fn durability_status(&self) -> DurabilityStatus {
        DurabilityStatus::of(&self.monitor, self.state, self.prepares.bytes())
    }

    /// Takes over a prepare from the file: one that has not ended, of whose key the file has no
    /// newer version. Seqnos rise from call to call, and nothing else happens before the last one;
    /// then [`Vbucket::resolve_sync_writes`] commits what can be.
    ///
    /// # Panics
    /// If `item` is no prepare, or higher than the file.
    pub fn restore_prepare(&mut self, item: Item) {
        assert!(item.seqno() <= self.persisted_seqno, "the file is not ahead of its vBucket");
        self.clock.observe(item.cas());
        let newest = self.hash_table.get(item.key()).map(Item::seqno);
        let has_ended = item.seqno() <= self.high_completed_seqno() || newest > Some(item.seqno());
        if has_ended || item.seqno() <= self.monitor.writes().last_seqno() {
            return;
        }
        let item = item.charged_to(self.account.id());
        self.prepares.insert(item.clone());
        self.monitor.track(TrackedWrite::new(item, None));
        self.settle_account();
    }

    /// Whether a durable write can be begun at all.
    pub(super) fn check_sync_write(&self, request: SyncWriteRequest) -> Result<(), Refusal> {
        use document::DurabilityLevel::Majority;
        if self.is_ephemeral && request.level != Majority {
            return Err(Refusal::InvalidDurabilityLevel);
        }
        let Monitor::Active(monitor) = &self.monitor else { return Err(Refusal::NotActive) };
        monitor.can_begin().map_err(|refusal| match refusal {
            BeginRefusal::NoTopology => Refusal::NoTopology,
            BeginRefusal::Impossible => Refusal::DurabilityImpossible,
        })
    }

    /// The prepare of `key` that has not ended.
    pub(super) fn prepared(&self, key: Key<'_>) -> Option<&Item> {
        if self.prepares.len() == 0 { None } else { self.prepares.get(key) }
    }

    /// Whether `key` may be written or locked as far as durable writes are concerned.
    pub(super) fn check_unprepared(&self, key: Key<'_>) -> Result<(), Refusal> {
        match self.prepared(key) {
            None => Ok(()),
            Some(prepare) if self.may_be_visible(prepare) => Err(Refusal::RecommitInProgress),
            Some(_) => Err(Refusal::SyncWriteInProgress),
        }
    }

    /// Whether the version of `key` that is visible here is the one that is visible.
    pub(super) fn check_settled(&self, key: Key<'_>) -> Result<(), Refusal> {
        match self.prepared(key) {
            Some(prepare) if self.may_be_visible(prepare) => Err(Refusal::RecommitInProgress),
            _ => Ok(()),
        }
    }

    fn may_be_visible(&self, prepare: &Item) -> bool {
        let write = self.monitor.writes().find(prepare.seqno());
        write.is_none_or(|write| write.may_be_visible)
    }

    /// Makes `builder`, which is a prepare, that of its key, whose revision is the one after
    /// `before`. Its end may come at once.
    pub(super) fn begin_sync_write(
        &mut self,
        builder: ItemBuilder,
        before: Option<RevSeqno>,
        request: SyncWriteRequest,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        let revision = RevSeqno(before.unwrap_or(self.max_deleted_revision).0 + 1);
        let cas = self.clock.next(now.wall);
        let seqno = self.high_seqno().next();
        let item = builder.charged_to(self.account.id()).finish(cas, seqno, revision);
        // No checkpoint holds two prepares of a key, or a prepare and an abort (docs/durability.md,
        // invariant 9).
        if self.older_prepare_is_in_open(item.key()) {
            let detached = self.checkpoints.begin_checkpoint();
            self.destroy(detached, effects);
        }
        self.checkpoints.set_limits(self.account.checkpoint_limits());
        let queued = self.checkpoints.queue(item.clone(), None);
        self.prepares.insert(item.clone());
        let SyncWriteRequest { waiter, deadline, .. } = request;
        let client = ClientWait { waiter, began: now.monotonic, deadline };
        let write = TrackedWrite::new(item, Some(client));
        let level = write.level;
        self.monitor.track(write);
        self.figures.done.sync_writes_accepted.add(1);
        self.finish_queueing_prepare(level, queued, now, effects);
        self.resolve_sync_writes(now, effects);
    }

    /// Whether a prepare of `level` is held here only once it is durable. Source:
    /// docs/specification/engine.md, sections 5.4 and 5.6.
    pub(super) fn awaits_flush(&self, level: DurabilityLevel) -> bool {
        match level {
            DurabilityLevel::Majority => false,
            DurabilityLevel::MajorityAndPersistOnMaster => self.state == VbucketState::Active,
            DurabilityLevel::PersistToMajority => true,
        }
    }

    /// Whether something is not durable yet, and what is held here waits until it is.
    pub(super) fn holds_by_flush(&self) -> bool {
        let mut behind = self.monitor.writes().behind(self.persisted_seqno);
        let waits_for_end =
            matches!(&self.monitor, Monitor::Passive(monitor) if monitor.end_count() > 0);
        waits_for_end || behind.any(|write| self.awaits_flush(write.level))
    }

    /// Whether the open checkpoint may hold another prepare of `key`, or what aborted one. The log
    /// does not see that by itself: what has ended is in no table any more.
    pub(super) fn older_prepare_is_in_open(&self, key: Key<'_>) -> bool {
        let committed = self.hash_table.get(key).and_then(|item| item.operation().ended_prepare());
        let older = [committed, self.last_abort_seqno];
        older.into_iter().flatten().any(|seqno| self.checkpoints.is_in_open(seqno))
    }

    /// Commits what enough nodes hold, in order, and asks for the next timeout. In a replica,
    /// acknowledges what is held now.
    pub fn resolve_sync_writes(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let persisted = self.persisted_through();
        let monitor = match &mut self.monitor {
            Monitor::Active(monitor) => monitor,
            Monitor::Passive(_) => return self.acknowledge_held(effects),
            Monitor::Dead(_) => return,
        };
        // Each flush comes by here, and most vBuckets have no durable writes.
        if monitor.writes.is_empty() {
            return;
        }
        // First what this node holds: nothing is committed above that (docs/durability.md,
        // invariant 2).
        monitor.advance(persisted);
        let satisfied = monitor.satisfied();
        while let Monitor::Active(monitor) = &mut self.monitor
            && let Some(write) = monitor.take_committed(satisfied)
        {
            let is_durable = write.seqno <= satisfied.durable_through;
            self.commit_prepare(write, is_durable, now, effects);
        }
        if let Monitor::Active(monitor) = &mut self.monitor
            && let Some(deadline) = monitor.announce()
        {
            effects.push(Effect::TimeSyncWrites(deadline));
        }
    }

    /// Acknowledges what a replica holds now and did not before.
    pub(super) fn acknowledge_held(&mut self, effects: &mut Vec<Effect>) {
        let persisted = self.persisted_through();
        let Monitor::Passive(monitor) = &mut self.monitor else { return };
        let advanced = monitor.advance(persisted);
        let held = monitor.writes.high_prepared;
        effects.extend(advanced.has_risen.then_some(Effect::AcknowledgePrepares(held)));
        let items = advanced.forgotten.into_iter().map(|write| write.item);
        effects.extend(items.map(Effect::Release));
    }

    /// Everything up to here is durable. At the end of the log, that is what is behind the last
    /// item, too, seqnos that another node has skipped, once the file knows.
    pub(super) fn persisted_through(&self) -> Seqno {
        if self.is_flushed() { self.high_seqno() } else { self.persisted_seqno }
    }

    /// Ends the writes of clients that `is_lost` says so of, as long as they are the next to end.
    pub(super) fn give_up_sync_writes(
        &mut self,
        is_lost: impl Fn(ClientWait) -> bool,
        why: Ambiguity,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        while let Monitor::Active(monitor) = &mut self.monitor
            && let Some(given_up) = monitor.give_up(&is_lost)
        {
            match given_up {
                GivenUp::Aborted(write) => self.abort_prepare(write, why, now, effects),
                GivenUp::Ownerless(waiter) => end_ambiguously(waiter, why, effects),
            }
        }
    }

    /// The clients of all writes hear that their ends are not known.
    pub(super) fn disown_sync_writes(&mut self, effects: &mut Vec<Effect>) {
        let waiters = self.monitor.writes_mut().disown();
        let why = Ambiguity::NotActive;
        waiters.into_iter().for_each(|waiter| end_ambiguously(waiter, why, effects));
    }

    fn commit_prepare(
        &mut self,
        write: TrackedWrite,
        is_durable: bool,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        let TrackedWrite { item: prepare, level, client, .. } = write;
        let seqno = self.high_seqno().next();
        let item = prepare.committed(seqno);
        let (cas, uuid) = (item.cas(), self.uuid());
        self.forget_prepare(prepare, effects);
        let replaced = self.make_visible(&item);
        self.checkpoints.set_limits(self.account.checkpoint_limits());
        let queued = self.checkpoints.queue(item, replaced.as_ref());
        release(replaced, effects);
        self.finish_queueing(queued, now, effects);
        self.figures.done.sync_writes_committed.add(1);
        self.figures.done.sync_writes_committed_not_durable.add(usize::from(!is_durable));
        if let Some(ClientWait { waiter, began, .. }) = client {
            let mutation = Mutation { cas, seqno, uuid };
            let end = SyncWriteEnd::Committed { mutation, level, began };
            effects.push(Effect::SyncWriteEnded(waiter, end));
        }
    }

    fn abort_prepare(
        &mut self,
        write: TrackedWrite,
        why: Ambiguity,
        now: Now,
        effects: &mut Vec<Effect>,
    ) {
        let TrackedWrite { item: prepare, client, .. } = write;
        let seqno = self.high_seqno().next();
        let item = prepare.aborted(seqno, now.wall.seconds());
        self.checkpoints.set_limits(self.account.checkpoint_limits());
        let queued = self.checkpoints.queue(item, Some(&prepare));
        self.last_abort_seqno = Some(seqno);
        self.forget_prepare(prepare, effects);
        self.finish_queueing(queued, now, effects);
        self.figures.done.sync_writes_aborted.add(1);
        if let Some(ClientWait { waiter, .. }) = client {
            end_ambiguously(waiter, why, effects);
        }
    }

    /// `prepare` has ended: nobody finds it any more.
    pub(super) fn forget_prepare(&mut self, prepare: Item, effects: &mut Vec<Effect>) {
        // One of two owners: nothing is freed here.
        drop(self.prepares.remove(prepare.key()));
        effects.push(Effect::Release(prepare));
        self.publish();
    }

    /// Makes `item`, which nobody has looked up, the version of its key that is visible. Returns
    /// the one before.
    pub(super) fn make_visible(&mut self, item: &Item) -> Option<Item> {
        if item.is_deleted() {
            self.max_deleted_revision = self.max_deleted_revision.max(item.revision());
        }
        if self.hides(item) {
            // It has its place in history, and is there for nobody.
            self.note_hidden(item);
            return None;
        }
        let has_older = self.note_arrival(item.key());
        let replaced = self.hash_table.insert(item.clone());
        let was_alive = || replaced.as_ref().is_some_and(|before| !before.is_deleted());
        self.note_in_collection(item, || was_alive() || has_older);
        if item.heat() == 0 {
            let initial_heat = || self.eviction.initial_frequency.get();
            item.set_heat(replaced.as_ref().map_or_else(initial_heat, Item::heat));
        }
        replaced
    }
}

fn end_ambiguously(waiter: Waiter, why: Ambiguity, effects: &mut Vec<Effect>) {
    effects.push(Effect::SyncWriteEnded(waiter, SyncWriteEnd::Ambiguous(why)));
}
