//! The role of a vBucket: taking up another one, and what requests do meanwhile. Source:
//! docs/specification/engine.md, section 6.1.

use std::sync::Arc;

use document::{Item, Key, Seqno, VbUuid, VbucketState, expiry};

use super::{Vbucket, wholeness};
use crate::checkpoint::CheckpointKind;
use crate::durability::Monitor;
use crate::effect::Effect;
use crate::operation::{Ambiguity, Found, Now, Refusal, SyncWriteEnd};
use crate::persistence::{FlushUrgency, SnapshotRange, StateInFile, Topology};
use crate::waiter::Waiter;

/// Requests that wait for a pending vBucket to take up another role, at most.
const PARKED_MAX: usize = 1024;

/// What a vBucket is to become.
#[derive(Clone, Debug)]
pub struct RoleChange {
    /// Its role from now on.
    pub state: VbucketState,
    /// Who must hold durable writes. One that is not said is none.
    pub topology: Option<Topology>,
    /// Whether the role is taken over from another node that gives it up and whose branch of
    /// history goes on.
    pub is_takeover: bool,
    /// A name for the branch that begins when the vBucket becomes active in another way.
    pub fresh_uuid: VbUuid,
}

impl Vbucket {
    /// Takes up another role. An active vBucket that ceases to be one ends the waits for
    /// persistence; one that becomes active begins a branch of history, at the end of the last
    /// snapshot that it has whole. Requests that have waited for the role are tried again.
    ///
    /// Durable writes of an active vBucket that ceases to be one are ambiguous: other nodes decide
    /// on them. One that becomes active decides on those that it has received. A topology is worth
    /// nothing unless [`crate::check_topology`] approves of it.
    pub fn change_role(&mut self, change: RoleChange, now: Now, effects: &mut Vec<Effect>) {
        let is_same = change.state == self.state;
        if is_same && change.topology.is_none() {
            return;
        }
        self.topology = Arc::new(change.topology.unwrap_or_default());
        self.state_in_file = StateInFile::Outdated;
        // Before the snapshot ends below: what is held depends on up to where it is whole.
        self.change_monitor(change.state, effects);
        if !is_same {
            let became_active = change.state == VbucketState::Active;
            if became_active {
                self.begin_to_be_active(change.fresh_uuid, change.is_takeover, effects);
            }
            if self.state == VbucketState::Active {
                self.end_snapshot_here();
                self.end_waits(effects);
            }
            // A replica that becomes pending, or is one again, receives on: what was announced is
            // still coming, and a sender that hands the vBucket over says nothing anew.
            self.is_stream_new |= !(receives(self.state) && receives(change.state));
            // What is here may be a branch that others have given up, or days old.
            let begins_to_receive = receives(change.state) && !receives(self.state);
            self.state = change.state;
            if became_active || begins_to_receive || !self.has_history() {
                self.whole_from_seqno = wholeness::of_new(self.state);
            }
            self.is_takeover_late = false;
            self.retry_parked(effects);
            effects.push(Effect::RoleChanged(self.state));
        }
        self.checkpoints.queue_state(self.state);
        // What is in front of the writes of clients ends first: behind it none can be aborted.
        self.resolve_sync_writes(now, effects);
        if let Monitor::Active(monitor) = &self.monitor
            && monitor.is_impossible()
        {
            self.give_up_sync_writes(|_| true, Ambiguity::TooFewNodes, now, effects);
        }
        self.ask_for_flush(FlushUrgency::Awaited, effects);
        self.settle_account();
    }

    /// Says who must hold durable writes of an active vBucket, for as long as it is in memory: the
    /// file is not told. For whoever says it again at each start.
    pub fn assume_topology(&mut self, topology: Topology, now: Now, effects: &mut Vec<Effect>) {
        if self.state != VbucketState::Active || *self.topology == topology {
            return;
        }
        self.topology = Arc::new(topology);
        self.change_monitor(self.state, effects);
        self.resolve_sync_writes(now, effects);
        self.settle_account();
    }

    /// Has durable writes watched over as it is done in another role, or with another topology.
    fn change_monitor(&mut self, state: VbucketState, effects: &mut Vec<Effect>) {
        let whole = match self.state {
            VbucketState::Active => self.high_seqno(),
            _ => self.last_whole_seqno(),
        };
        let left = self.monitor.change(state, &self.topology, self.durability_limits, whole);
        let end = SyncWriteEnd::Ambiguous(Ambiguity::NotActive);
        let ambiguous = |waiter| Effect::SyncWriteEnded(waiter, end);
        effects.extend(left.waiters.into_iter().map(ambiguous));
        effects.extend(left.forgotten.into_iter().map(|write| Effect::Release(write.item)));
    }

    fn begin_to_be_active(&mut self, uuid: VbUuid, is_takeover: bool, effects: &mut Vec<Effect>) {
        self.checkpoints.cut_snapshot(self.high_completed_seqno());
        self.begin_snapshot_purged(Seqno(0));
        // What comes now is no part of a snapshot that another node sent.
        let detached = self.checkpoints.begin_checkpoint();
        self.destroy(detached, effects);
        if !is_takeover {
            // Before the snapshot ends here: what came of it behind its beginning is on the new
            // branch.
            let seqno = self.last_whole_seqno();
            self.failover_table.begin_branch(uuid, seqno);
        }
        // The end of what was received was its sender's to reach: nobody is told to wait for it.
        self.end_snapshot_here();
    }

    /// What is here is a snapshot, and nothing more of it comes.
    fn end_snapshot_here(&mut self) {
        let high = self.high_seqno();
        self.snapshot = SnapshotRange { start: high, end: high };
        self.snapshot_kind = CheckpointKind::Memory;
    }

    /// The end of the last snapshot that is here whole: up to there history is what its writer had.
    pub fn last_whole_seqno(&self) -> Seqno {
        let high = self.high_seqno();
        if high < self.snapshot.end { self.snapshot.start } else { high }
    }

    /// Whether writers are held up, while the vBucket is active: another node takes it over and
    /// does not catch up with them. Source: docs/specification/protocol.md, section 22.
    pub fn set_takeover_late(&mut self, is_late: bool) {
        self.is_takeover_late = is_late && self.state == VbucketState::Active;
    }

    /// Whether writers are held up for a takeover.
    pub fn is_takeover_late(&self) -> bool {
        self.is_takeover_late
    }

    /// Who must hold durable writes.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Has `waiter` told when the vBucket takes up another role: its request was refused with
    /// [`Refusal::NotYetActive`]. `false` when too many wait.
    pub fn park(&mut self, waiter: Waiter) -> bool {
        let has_room = self.parked.len() < PARKED_MAX;
        if has_room {
            self.parked.push(waiter);
            self.publish();
        }
        has_room
    }

    /// Requests that wait for another role, those of clients that have gone included.
    pub fn parked_count(&self) -> usize {
        self.parked.len()
    }

    /// The vBucket is no more, or another is in its place: whoever waits hears of it.
    pub fn retire(&mut self, effects: &mut Vec<Effect>) {
        self.end_waits(effects);
        self.disown_sync_writes(effects);
        self.retry_parked(effects);
        self.publish();
    }

    fn retry_parked(&mut self, effects: &mut Vec<Effect>) {
        effects.extend(std::mem::take(&mut self.parked).into_iter().map(Effect::Retry));
    }

    /// Marks the state as one that the file does not have, and asks for a flush.
    pub fn flush_state_anew(&mut self, effects: &mut Vec<Effect>) {
        self.state_in_file = StateInFile::Outdated;
        self.ask_for_flush(FlushUrgency::Awaited, effects);
    }

    /// Whether requests for documents are served, or why not.
    pub fn check_active(&self) -> Result<(), Refusal> {
        match self.state {
            VbucketState::Active => Ok(()),
            VbucketState::Pending => Err(Refusal::NotYetActive),
            VbucketState::Replica | VbucketState::Dead => Err(Refusal::NotActive),
        }
    }

    /// The live document `key` of a replica. One whose time is over is hidden and stays: to delete
    /// it is for the active vBucket.
    pub fn get_replica(
        &mut self,
        key: Key<'_>,
        now: Now,
        effects: &mut Vec<Effect>,
    ) -> Result<Found, Refusal> {
        if self.state != VbucketState::Replica {
            return Err(Refusal::NotActive);
        }
        self.check_collection(key)?;
        let is_live = |item: &&Item| {
            !item.is_deleted() && !expiry::is_past(item.expiry(), now.wall.seconds())
        };
        let item = match self.hash_table.get(key) {
            Some(item) => Some(item).filter(is_live).cloned(),
            None => {
                self.check_absent(key)?;
                None
            }
        };
        let item = item.ok_or(Refusal::NotFound)?;
        if item.is_ejected() {
            return Err(Refusal::Ejected(item));
        }
        self.note_read(&item, effects);
        let cas = item.cas();
        Ok(Found { item, cas })
    }
}

/// Whether a vBucket in this role takes what another node sends.
pub(super) fn receives(state: VbucketState) -> bool {
    matches!(state, VbucketState::Replica | VbucketState::Pending)
}

#[cfg(test)]
mod tests {
    use document::{FailoverEntry, ItemBuilder, ItemMeta, KeyBuf, Vbid};

    use super::*;
    use crate::hash_table::HashSeed;
    use crate::memory_account::MemoryAccount;
    use crate::operation::{StoreMode, WriteCondition};
    use crate::persistence::PersistentState;
    use crate::vbucket::restore::Restored;

    fn to(state: VbucketState) -> RoleChange {
        RoleChange { state, topology: None, is_takeover: false, fresh_uuid: VbUuid(99) }
    }

    fn key() -> KeyBuf {
        KeyBuf::in_default_collection(b"k").unwrap()
    }

    fn vbucket(state: VbucketState) -> Vbucket {
        let (seed, account) = (HashSeed::new(1), MemoryAccount::default());
        Vbucket::new(Vbid(0), state, VbUuid(7), seed, account)
    }

    fn set(vbucket: &mut Vbucket) -> Result<Seqno, Refusal> {
        let builder = ItemBuilder::new(key().as_key(), ItemMeta::default(), b"v");
        let (condition, now) = (WriteCondition::default(), Now::default());
        let stored = vbucket.store(StoreMode::Set, builder, condition, now, &mut Vec::new());
        stored.map(|written| written.done().unwrap().seqno)
    }

    /// A replica whose file ends at 50, in this snapshot.
    fn replica_in(start: u64, end: u64) -> Vbucket {
        restored(file_in(start, end))
    }

    fn file_in(start: u64, end: u64) -> PersistentState {
        let mut state = PersistentState::new(VbucketState::Replica);
        state.high_seqno = Seqno(50);
        state.failover_table = [FailoverEntry { uuid: VbUuid(7), seqno: Seqno(0) }].into();
        state.snapshot = SnapshotRange { start: Seqno(start), end: Seqno(end) };
        state
    }

    fn restored(state: PersistentState) -> Vbucket {
        let (vbid, fresh_uuid) = (Vbid(0), VbUuid(8));
        let restored = Restored { vbid, state, document_count: 0, fresh_uuid, was_clean: false };
        Vbucket::restore(restored, HashSeed::new(1), MemoryAccount::default())
    }

    fn branches(vbucket: &Vbucket) -> Vec<(u64, u64)> {
        let entries = vbucket.failover_entries().iter();
        entries.map(|entry| (entry.uuid.0, entry.seqno.0)).collect()
    }

    #[test]
    fn a_branch_begins_behind_the_last_whole_snapshot() {
        for (start, end, begins_at) in [(50, 50, 50), (40, 50, 50), (40, 60, 40)] {
            let mut vbucket = replica_in(start, end);
            assert_eq!(branches(&vbucket), [(7, 0)], "a crash begins none in a replica");
            vbucket.change_role(to(VbucketState::Active), Now::default(), &mut Vec::new());
            assert_eq!(branches(&vbucket), [(99, begins_at), (7, 0)], "{start}..{end}");
            assert_eq!(set(&mut vbucket).unwrap(), Seqno(51));
        }
        let mut vbucket = replica_in(50, 50);
        let takeover = RoleChange { is_takeover: true, ..to(VbucketState::Active) };
        vbucket.change_role(takeover, Now::default(), &mut Vec::new());
        assert_eq!(branches(&vbucket), [(7, 0)]);
    }

    /// The log of a replica that starts again begins behind the snapshot that the file is in.
    #[test]
    fn a_change_of_role_alone_leaves_the_file_in_its_snapshot() {
        for (start, end, begins_at) in [(40, 60, 40), (50, 50, 50)] {
            let mut file = file_in(start, end);
            file.facts.prepared_seqno = Seqno(45);
            file.facts.checkpoint_kind = CheckpointKind::Disk;
            for state in [VbucketState::Dead, VbucketState::Replica] {
                let mut vbucket = restored(file.clone());
                let (now, effects) = (Now::default(), &mut Vec::new());
                vbucket.change_role(to(state), now, effects);
                let mut batch = vbucket.begin_flush().expect("the role is to be flushed");
                assert!(batch.take_items(usize::MAX).items.is_empty());
                vbucket.flush_succeeded(&batch, now, effects);
                let snapshot = file.snapshot;
                assert_eq!((batch.state.snapshot, batch.state.facts), (snapshot, file.facts));
                assert!(vbucket.begin_flush().is_none(), "the file has the present state");
                file = batch.state;
            }
            let mut vbucket = restored(file);
            vbucket.change_role(to(VbucketState::Active), Now::default(), &mut Vec::new());
            assert_eq!(branches(&vbucket), [(99, begins_at), (7, 0)], "{start}..{end}");
        }
    }

    #[test]
    fn an_active_vbucket_that_comes_back_goes_on_in_another_branch() {
        let mut vbucket = vbucket(VbucketState::Active);
        set(&mut vbucket).unwrap();
        for state in [VbucketState::Dead, VbucketState::Active] {
            vbucket.change_role(to(state), Now::default(), &mut Vec::new());
        }
        assert_eq!(branches(&vbucket), [(99, 1), (7, 0)]);
        vbucket.change_role(to(VbucketState::Active), Now::default(), &mut Vec::new());
        assert_eq!(branches(&vbucket).len(), 2, "it was active already");
    }

    #[test]
    fn a_topology_is_remembered_until_a_change_that_does_not_say_one() {
        let mut vbucket = vbucket(VbucketState::Active);
        let topology = vec![vec![Some("a".to_owned()), None]];
        let change = RoleChange { topology: Some(topology.clone()), ..to(VbucketState::Active) };
        vbucket.change_role(change, Now::default(), &mut Vec::new());
        assert_eq!(*vbucket.begin_flush().unwrap().state.topology, topology);
        vbucket.change_role(to(VbucketState::Active), Now::default(), &mut Vec::new());
        assert_eq!(vbucket.topology(), &topology, "nothing has changed");
        vbucket.change_role(to(VbucketState::Dead), Now::default(), &mut Vec::new());
        assert!(vbucket.topology().is_empty());
    }

    #[test]
    fn writers_are_held_up_for_a_late_takeover_until_the_role_changes() {
        let mut vbucket = vbucket(VbucketState::Active);
        set(&mut vbucket).unwrap();
        vbucket.set_takeover_late(true);
        assert!(matches!(set(&mut vbucket), Err(Refusal::TakeoverIsLate)));
        let (condition, now) = (WriteCondition::default(), Now::default());
        let deleted = vbucket.delete(key().as_key(), condition, now, &mut Vec::new());
        assert!(matches!(deleted, Err(Refusal::TakeoverIsLate)));
        assert!(vbucket.get(key().as_key(), now, &mut Vec::new()).is_ok(), "readers are not");
        vbucket.set_takeover_late(false);
        assert_eq!(set(&mut vbucket).unwrap(), Seqno(2));
        vbucket.set_takeover_late(true);
        for state in [VbucketState::Dead, VbucketState::Active] {
            vbucket.change_role(to(state), now, &mut Vec::new());
        }
        assert_eq!(set(&mut vbucket).unwrap(), Seqno(3));
        vbucket.change_role(to(VbucketState::Replica), now, &mut Vec::new());
        vbucket.set_takeover_late(true);
        assert!(!vbucket.is_takeover_late(), "there are no writers");
    }

    #[test]
    fn requests_wait_while_a_vbucket_is_pending_and_are_tried_again_whatever_it_becomes() {
        for state in [VbucketState::Active, VbucketState::Replica, VbucketState::Dead] {
            let mut vbucket = vbucket(VbucketState::Pending);
            assert!(matches!(set(&mut vbucket), Err(Refusal::NotYetActive)));
            assert!(matches!(vbucket.prepare_write(key().as_key()), Err(Refusal::NotYetActive)));
            for number in 0..PARKED_MAX {
                assert!(vbucket.park(Waiter(number as u64)));
            }
            assert!(!vbucket.park(Waiter(0)), "there is a limit");
            let mut effects = Vec::new();
            vbucket.change_role(to(state), Now::default(), &mut effects);
            let retried = effects.iter().filter(|effect| matches!(effect, Effect::Retry(_)));
            assert_eq!((retried.count(), vbucket.parked_count()), (PARKED_MAX, 0));
        }
    }

    #[test]
    fn a_replica_shows_its_documents_to_those_who_ask_for_a_replica() {
        let mut vbucket = vbucket(VbucketState::Active);
        set(&mut vbucket).unwrap();
        let get = |vbucket: &mut Vbucket| {
            vbucket.get_replica(key().as_key(), Now::default(), &mut Vec::new())
        };
        assert!(matches!(get(&mut vbucket), Err(Refusal::NotActive)));
        vbucket.change_role(to(VbucketState::Replica), Now::default(), &mut Vec::new());
        assert_eq!(get(&mut vbucket).unwrap().item.value(), b"v");
        vbucket.change_role(to(VbucketState::Dead), Now::default(), &mut Vec::new());
        assert!(matches!(get(&mut vbucket), Err(Refusal::NotActive)));
    }
}
