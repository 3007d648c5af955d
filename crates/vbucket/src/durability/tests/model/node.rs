//! A node of the model: a vBucket, its file, and the stream into it.

use std::collections::VecDeque;

use document::{Item, ItemBuilder, Operation, Seqno, VbUuid, Vbid, VbucketState};
use platform::Instant;

use super::super::words::topology;
use crate::checkpoint::{CheckpointLimits, CursorId};
use crate::effect::Effect;
use crate::hash_table::HashSeed;
use crate::memory_account::MemoryAccount;
use crate::operation::Now;
use crate::persistence::{PersistentState, Topology};
use crate::vbucket::Vbucket;
use crate::vbucket::receiving::{Received, ReceivedSnapshot};
use crate::vbucket::recovery::RecoveryStep;
use crate::vbucket::restore::Restored;
use crate::vbucket::role::RoleChange;

/// What is on its way to a replica.
#[derive(Debug)]
pub(super) enum Message {
    Snapshot(ReceivedSnapshot),
    /// With the operation that the replica hears of.
    Item(Item, Operation),
}

/// A stream from the active node.
#[derive(Debug, Default)]
pub(super) struct Link {
    pub(super) cursor: Option<CursorId>,
    pub(super) last_sent: Seqno,
    pub(super) messages: VecDeque<Message>,
    pub(super) acknowledgements: VecDeque<Seqno>,
    /// The last one that was sent.
    pub(super) acknowledged: Seqno,
}

pub(super) struct Node {
    pub(super) name: &'static str,
    pub(super) vbucket: Vbucket,
    pub(super) link: Link,
    pub(super) effects: Vec<Effect>,
    account: MemoryAccount,
    file: PersistentState,
    /// The newest version of each key and namespace.
    items: Vec<Item>,
}

impl Node {
    pub(super) fn new(name: &'static str, uuid: u64) -> Self {
        let state = VbucketState::Replica;
        let account = MemoryAccount::default();
        Self {
            name,
            vbucket: empty_vbucket(uuid, account.clone()),
            link: Link::default(),
            effects: Vec::new(),
            account,
            file: PersistentState::new(state),
            items: Vec::new(),
        }
    }

    pub(super) fn become_active(&mut self, nodes: &str, uuid: u64, now: Now) {
        self.change_role(VbucketState::Active, Some(topology(nodes)), uuid, now);
    }

    pub(super) fn become_replica(&mut self, uuid: u64, now: Now) {
        self.change_role(VbucketState::Replica, None, uuid, now);
    }

    fn change_role(
        &mut self,
        state: VbucketState,
        topology: Option<Topology>,
        uuid: u64,
        now: Now,
    ) {
        let change = RoleChange { state, topology, is_takeover: false, fresh_uuid: VbUuid(uuid) };
        self.vbucket.change_role(change, now, &mut self.effects);
    }

    pub(super) fn flush(&mut self, now: Now) {
        while let Some(mut batch) = self.vbucket.begin_flush() {
            for item in batch.take_items(usize::MAX).items {
                let is_same = |other: &Item| {
                    let namespace = |item: &Item| item.operation().is_prepared();
                    other.key() == item.key() && namespace(other) == namespace(&item)
                };
                self.items.retain(|other| !is_same(other));
                self.items.push(item);
            }
            self.file = batch.state.clone();
            self.vbucket.flush_succeeded(&batch, now, &mut self.effects);
            self.vbucket.apply_succeeded(batch.high_seqno());
        }
    }

    /// Memory is short: whatever the open checkpoint holds closes it, and what was read leaves.
    pub(super) fn recover_memory(&mut self) {
        let limits = CheckpointLimits { with_streams_bytes: 1, alone_bytes: 1 };
        self.account.set_checkpoint_limits(limits);
        for step in [RecoveryStep::CloseFullCheckpoint, RecoveryStep::Expel] {
            self.vbucket.recover_memory(step, Instant::default(), &mut self.effects);
        }
        self.account.set_checkpoint_limits(CheckpointLimits::NONE);
    }

    /// Memory is lost.
    pub(super) fn crash(&mut self, uuid: u64, now: Now) {
        self.effects.clear();
        let state = self.file.clone();
        let completed = state.facts.completed_seqno;
        let (vbid, fresh_uuid) = (Vbid(0), VbUuid(uuid));
        let restored = Restored { vbid, state, document_count: 0, fresh_uuid, was_clean: false };
        self.vbucket = Vbucket::restore(restored, HashSeed::new(uuid), self.account.clone());
        self.items.sort_by_key(Item::seqno);
        let (prepares, documents): (Vec<Item>, Vec<Item>) =
            self.items.iter().cloned().partition(|item| item.operation().is_prepared());
        for item in documents {
            drop(self.vbucket.restore_document(item));
        }
        for item in prepares {
            if matches!(item.operation(), Operation::Prepare(_)) && item.seqno() > completed {
                self.vbucket.restore_prepare(item);
            }
        }
        self.vbucket.resolve_sync_writes(now, &mut self.effects);
        self.link = Link::default();
    }

    /// Everything is given up: all of it comes anew.
    pub(super) fn roll_back(&mut self, uuid: u64) {
        self.vbucket = empty_vbucket(uuid, self.account.clone());
        self.file = PersistentState::new(VbucketState::Replica);
        self.items.clear();
    }

    /// The file from behind `after` on, as a snapshot.
    pub(super) fn backfill(&mut self, after: Seqno) -> Vec<Message> {
        let end = self.file.high_seqno;
        let facts = &self.file.facts;
        let marker = ReceivedSnapshot {
            start: after,
            end,
            is_disk: true,
            begins_checkpoint: true,
            max_visible: Some(facts.max_visible_seqno.min(end)),
            high_completed: Some(facts.completed_seqno),
            high_prepared: Some(facts.high_prepared_seqno),
            purge_seqno: None,
        };
        self.items.sort_by_key(Item::seqno);
        let mut messages = vec![Message::Snapshot(marker)];
        for item in self.items.iter().filter(|item| item.seqno() > after) {
            let operation = match item.operation() {
                Operation::Commit { .. } => Operation::Mutation,
                Operation::Prepare(_) if item.seqno() <= facts.completed_seqno => continue,
                operation => operation,
            };
            messages.push(Message::Item(item.clone(), operation));
        }
        messages
    }

    pub(super) fn receive(&mut self, message: Message, now: Now) {
        let (vbucket, effects) = (&mut self.vbucket, &mut self.effects);
        let received = match &message {
            Message::Snapshot(snapshot) => vbucket.receive_snapshot(*snapshot, effects),
            Message::Item(item, Operation::Commit { prepare }) => {
                vbucket.receive_commit(item.key(), *prepare, item.seqno(), now, effects)
            }
            Message::Item(item, Operation::Abort { prepare }) => {
                vbucket.receive_abort(item.key(), *prepare, item.seqno(), now, effects)
            }
            Message::Item(item, operation) => {
                let builder = ItemBuilder::new(item.key(), item.meta(), item.value());
                let builder = builder.with_operation(*operation);
                let (cas, seqno, revision) = (item.cas(), item.seqno(), item.revision());
                vbucket.receive(Received { builder, cas, seqno, revision }, now, effects)
            }
        };
        assert_eq!(received, Ok(()), "{}: {message:?}", self.name);
    }
}

fn empty_vbucket(uuid: u64, account: MemoryAccount) -> Vbucket {
    let state = VbucketState::Replica;
    Vbucket::new(Vbid(0), state, VbUuid(uuid), HashSeed::new(1), account)
}
