//! The nodes of the model, what runs between them, and what has to hold.

use std::collections::BTreeMap;
use std::time::Duration;

use document::{Cas, DurabilityLevel, Item, ItemBuilder, ItemMeta, Operation, Seqno, VbucketState};
use platform::{Clock, Random, WallTime};

use super::super::words::key;
use super::node::{Link, Message, Node};
use crate::checkpoint::{LogRange, Tenure};
use crate::effect::Effect;
use crate::failover_table::StreamStart;
use crate::operation::{Now, Refusal, StoreMode, SyncWriteEnd, SyncWriteRequest, WriteCondition};
use crate::vbucket::receiving::ReceivedSnapshot;
use crate::waiter::Waiter;

const KEYS: [&str; 5] = ["k0", "k1", "k2", "k3", "k4"];
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A durable write that a client has begun.
struct Write {
    key: &'static str,
    version: u64,
    level: DurabilityLevel,
    has_ended: bool,
}

/// When nodes have caught up with a failure, so that another one may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CatchUp {
    /// The others hold in memory what there was.
    InMemory,
    /// The others have persisted it.
    OnDisk,
    /// The others hold it in memory, and the active node has persisted it: what was persisted on
    /// another one, which was active before, would not outlast its restart otherwise.
    ActiveOnDisk,
}

pub(super) struct Cluster {
    nodes: Vec<Node>,
    active: usize,
    clock: Clock,
    random: Random,
    writes: Vec<Write>,
    /// By key, the last version that was acknowledged as durable.
    acknowledged: BTreeMap<&'static str, u64>,
    /// By key, the last version that was a deletion, whatever became of it.
    deleted: BTreeMap<&'static str, u64>,
    next_version: u64,
    next_uuid: u64,
    /// Levels whose writes are promised to last.
    promised: &'static [DurabilityLevel],
    /// When nodes have caught up with a failure.
    catch_up: CatchUp,
    /// Set while nodes have not caught up with the last failure: up to here they have to.
    catching_up: Option<Seqno>,
}

impl Cluster {
    pub(super) fn new(
        random: Random,
        promised: &'static [DurabilityLevel],
        catch_up: CatchUp,
    ) -> Self {
        let nodes = NAMES.iter().zip(1..).map(|(name, uuid)| Node::new(name, uuid)).collect();
        let mut cluster = Self {
            nodes,
            active: 0,
            clock: Clock::simulated(WallTime(1_700_000_000 * 1_000_000_000)),
            random,
            writes: Vec::new(),
            acknowledged: BTreeMap::new(),
            deleted: BTreeMap::new(),
            next_version: 0,
            next_uuid: 10,
            promised,
            catch_up,
            catching_up: None,
        };
        cluster.activate(0);
        cluster
    }

    pub(super) fn random(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    pub(super) fn any_node(&mut self) -> usize {
        usize::try_from(self.random(3)).unwrap()
    }

    pub(super) fn other_node(&mut self) -> usize {
        (self.active + 1 + usize::try_from(self.random(2)).unwrap()) % 3
    }

    fn others(&self) -> [usize; 2] {
        [(self.active + 1) % 3, (self.active + 2) % 3]
    }

    fn now(&self) -> Now {
        Now { monotonic: self.clock.now(), wall: self.clock.wall_time() }
    }

    fn uuid(&mut self) -> u64 {
        self.next_uuid += 1;
        self.next_uuid
    }

    /// The node becomes the active one, and the others follow it.
    fn activate(&mut self, index: usize) {
        self.active = index;
        let others = self.others();
        let nodes = [index, others[0], others[1]].map(|index| NAMES[index]).join(" ");
        let (uuid, now) = (self.uuid(), self.now());
        self.nodes[index].link = Link::default();
        self.nodes[index].become_active(&nodes, uuid, now);
        self.hear(index);
        for other in others {
            if self.nodes[other].vbucket.state() == VbucketState::Active {
                let uuid = self.uuid();
                self.nodes[other].become_replica(uuid, now);
                self.hear(other);
            }
            self.reconnect(other);
        }
    }

    /// The node becomes the active one of a chain that has no other node yet: what it has
    /// inherited ends without one.
    fn activate_alone(&mut self, index: usize) {
        self.active = index;
        let (uuid, now) = (self.uuid(), self.now());
        self.nodes[index].link = Link::default();
        self.nodes[index].become_active(&format!("{} - -", NAMES[index]), uuid, now);
        self.hear(index);
        self.flush(index);
        assert_eq!(self.nodes[index].vbucket.prepare_count(), 0, "no key is left behind");
    }

    /// Deals with what has come of what the node has just done.
    fn hear(&mut self, index: usize) {
        let effects = std::mem::take(&mut self.nodes[index].effects);
        for effect in effects {
            match effect {
                Effect::AcknowledgePrepares(seqno) if index != self.active => {
                    let link = &mut self.nodes[index].link;
                    assert!(link.acknowledged <= seqno, "acknowledgements rise");
                    link.acknowledged = seqno;
                    link.acknowledgements.push_back(seqno);
                }
                Effect::SyncWriteEnded(waiter, end) => self.end_write(waiter, end),
                _ => {}
            }
        }
    }

    fn end_write(&mut self, waiter: Waiter, end: SyncWriteEnd) {
        let write = &mut self.writes[usize::try_from(waiter.0).unwrap()];
        assert!(!write.has_ended, "a write of {} ends twice", write.key);
        write.has_ended = true;
        if self.promised.contains(&write.level) && matches!(end, SyncWriteEnd::Committed { .. }) {
            self.acknowledged.insert(write.key, write.version);
        }
    }

    /// A client writes or deletes, durably or not.
    pub(super) fn write(&mut self) {
        self.next_version += 1;
        let version = self.next_version;
        let key_name = KEYS[usize::try_from(self.random(5)).unwrap()];
        let level = DurabilityLevel::from_byte(u8::try_from(self.random(4)).unwrap());
        let seconds = 1 + self.random(20);
        let waiter = Waiter(self.writes.len() as u64);
        let request = level.map(|level| SyncWriteRequest {
            level,
            deadline: self.clock.now().after(Duration::from_secs(seconds)),
            waiter,
        });
        if let Some(level) = level {
            self.writes.push(Write { key: key_name, version, level, has_ended: false });
        }
        let condition = WriteCondition { sync_write: request, ..WriteCondition::default() };
        let (is_deletion, now, active) = (self.random(4) == 0, self.now(), self.active);
        let Node { vbucket, effects, .. } = &mut self.nodes[active];
        let key = key(key_name);
        let result = if is_deletion {
            vbucket.delete(key.as_key(), condition, now, effects)
        } else {
            let value = version.to_string();
            let (meta, operation) = (ItemMeta::default(), condition.operation());
            let builder = ItemBuilder::step(key.as_key(), meta, operation, value.as_bytes());
            vbucket.store(StoreMode::Set, builder, condition, now, effects)
        };
        let has_begun = result.is_ok();
        if is_deletion && has_begun {
            self.deleted.insert(key_name, version);
        }
        if !has_begun && let Some(write) = level.and(self.writes.last_mut()) {
            write.has_ended = true;
        }
        self.hear(active);
    }

    pub(super) fn flush(&mut self, index: usize) {
        let now = self.now();
        self.nodes[index].flush(now);
        self.hear(index);
    }

    pub(super) fn recover_memory(&mut self, index: usize) {
        self.nodes[index].recover_memory();
        self.hear(index);
    }

    pub(super) fn let_time_pass(&mut self) {
        self.clock.advance(Duration::from_secs(3));
        let (now, active) = (self.now(), self.active);
        let Node { vbucket, effects, .. } = &mut self.nodes[active];
        vbucket.end_overdue_sync_writes(now, effects);
        self.hear(active);
    }

    /// A stream to the node begins: what was on its way is lost, and what the active node does not
    /// know is given up.
    pub(super) fn reconnect(&mut self, index: usize) {
        let uuid = self.uuid();
        let position = self.nodes[index].vbucket.stream_position();
        let request = StreamStart {
            start: position.start,
            snapshot_start: position.snapshot_start,
            snapshot_end: position.snapshot_end,
            uuid: position.uuid,
            ..StreamStart::default()
        };
        self.nodes[index].link = Link::default();
        if self.nodes[self.active].vbucket.rollback_point(&request).is_some() {
            self.nodes[index].roll_back(uuid);
        }
        let after = self.nodes[index].vbucket.high_seqno();
        let is_within_snapshot = !self.nodes[index].vbucket.is_snapshot_whole();
        let active = &mut self.nodes[self.active];
        active.vbucket.restart_acknowledgements(NAMES[index], after);
        let log = active.vbucket.failover_entries().to_vec();
        let Node { vbucket, effects, .. } = &mut self.nodes[index];
        vbucket.begin_receiving(vbucket.stream_position(), &log, effects).unwrap();
        self.hear(index);
        let registration = self.nodes[self.active]
            .vbucket
            .open_stream(NAMES[index], after, Tenure::WhileGettingOn)
            .unwrap();
        self.nodes[index].link.cursor = Some(registration.id);
        self.nodes[index].link.last_sent = after;
        // Of a snapshot from a file, prepares were left out whose ends the log has: the rest of it
        // has to come from a file, too.
        if registration.needs_backfill || is_within_snapshot {
            self.flush(self.active);
            let active = &mut self.nodes[self.active];
            let end = active.vbucket.high_seqno();
            let messages = active.backfill(after);
            let cursor =
                active.vbucket.open_stream(NAMES[index], end, Tenure::WhileGettingOn).unwrap().id;
            let link = &mut self.nodes[index].link;
            link.cursor = Some(cursor);
            link.last_sent = end;
            link.messages.extend(messages);
        }
    }

    /// What is new in the active node's log goes on its way.
    pub(super) fn send(&mut self, index: usize) {
        let active = self.active;
        let Some(cursor) = self.nodes[index].link.cursor else { return };
        let Some(range) = self.nodes[active].vbucket.read_stream(cursor) else { return };
        let items = range.items();
        let mut messages = messages_of(&range, &items, self.nodes[index].link.last_sent);
        let Node { vbucket, effects, .. } = &mut self.nodes[active];
        vbucket.finish_stream_read(&range, items.len(), effects);
        let link = &mut self.nodes[index].link;
        link.last_sent = range.last_seqno();
        link.messages.extend(messages.drain(..));
        self.hear(active);
    }

    pub(super) fn deliver(&mut self, index: usize) {
        let now = self.now();
        for _ in 0..=self.random(6) {
            if let Some(message) = self.nodes[index].link.messages.pop_front() {
                self.nodes[index].receive(message, now);
                self.hear(index);
            }
        }
    }

    pub(super) fn deliver_acknowledgement(&mut self, index: usize) {
        let (now, active) = (self.now(), self.active);
        if let Some(seqno) = self.nodes[index].link.acknowledgements.pop_front() {
            let Node { vbucket, effects, .. } = &mut self.nodes[active];
            vbucket.acknowledge(NAMES[index], seqno, now, effects);
            self.hear(active);
        }
    }

    /// One node loses its memory, if the others could stand it.
    pub(super) fn crash_one(&mut self) {
        if !self.has_caught_up() {
            return;
        }
        let (index, uuid, now) = (self.any_node(), self.uuid(), self.now());
        self.nodes[index].crash(uuid, now);
        if index == self.active {
            self.forget_clients();
            let best = self.best_of(&self.others());
            if self.random(2) == 0 {
                self.activate_alone(best);
            }
            // It comes back as what it was, and hears that it is not that any more.
            self.activate(best);
        } else {
            self.hear(index);
            if self.nodes[index].vbucket.state() == VbucketState::Active {
                self.nodes[index].become_replica(uuid, now);
                self.hear(index);
            }
            self.reconnect(index);
        }
        self.catching_up = Some(self.nodes[self.active].vbucket.high_seqno());
    }

    /// The active node loses its memory and goes on with what it has persisted; the others follow.
    pub(super) fn restart_active(&mut self) {
        if !self.has_caught_up() {
            return;
        }
        let (active, uuid, now) = (self.active, self.uuid(), self.now());
        self.forget_clients();
        self.nodes[active].crash(uuid, now);
        self.hear(active);
        // Its file may say an older role.
        self.activate(active);
        self.catching_up = Some(self.nodes[active].vbucket.high_seqno());
    }

    /// All nodes lose their memories, and the one that holds most goes on.
    pub(super) fn crash_everybody(&mut self) {
        if !self.has_caught_up() {
            return;
        }
        self.forget_clients();
        for index in 0..3 {
            let (uuid, now) = (self.uuid(), self.now());
            self.nodes[index].crash(uuid, now);
            self.nodes[index].effects.clear();
        }
        let previous = self.active;
        // The active node is among those that have persisted what counts.
        let others = self.others();
        let best = if self.random(2) == 0 { previous } else { self.best_of(&others) };
        self.activate(best);
        self.catching_up = Some(self.nodes[self.active].vbucket.high_seqno());
    }

    /// Another node becomes active, and the one that was follows it.
    pub(super) fn demote(&mut self) {
        if !self.has_caught_up() {
            return;
        }
        let (uuid, now, active) = (self.uuid(), self.now(), self.active);
        self.nodes[active].become_replica(uuid, now);
        self.hear(active);
        let best = self.best_of(&self.others());
        self.activate(best);
        self.catching_up = Some(self.nodes[self.active].vbucket.high_seqno());
    }

    /// The clients of the active node are gone: what they wait for, nobody hears.
    fn forget_clients(&mut self) {
        self.writes.iter_mut().for_each(|write| write.has_ended = true);
    }

    fn best_of(&self, indices: &[usize]) -> usize {
        let rank = |&index: &usize| {
            let vbucket = &self.nodes[index].vbucket;
            (vbucket.high_prepared_seqno(), vbucket.high_seqno())
        };
        *indices.iter().max_by_key(|index| rank(index)).unwrap()
    }

    fn has_caught_up(&mut self) -> bool {
        if let Some(seqno) = self.catching_up {
            let persisted = |index: usize| self.nodes[index].vbucket.persisted_for_clients();
            let received = |index: usize| self.nodes[index].vbucket.stream_position();
            let has_all = |&index: &usize| match self.catch_up {
                CatchUp::OnDisk => persisted(index) >= seqno,
                _ => received(index).snapshot_start >= seqno,
            };
            let active_has_all = match self.catch_up {
                CatchUp::ActiveOnDisk => persisted(self.active) >= seqno,
                _ => true,
            };
            if active_has_all && self.others().iter().all(has_all) {
                self.catching_up = None;
            }
        }
        self.catching_up.is_none()
    }

    /// Everything that is on its way arrives, and all that waits ends.
    pub(super) fn settle(&mut self) {
        for _ in 0..60 {
            for index in self.others() {
                self.send(index);
                while !self.nodes[index].link.messages.is_empty() {
                    self.deliver(index);
                }
                self.flush(index);
                while !self.nodes[index].link.acknowledgements.is_empty() {
                    self.deliver_acknowledgement(index);
                }
            }
            self.flush(self.active);
            self.let_time_pass();
        }
    }

    pub(super) fn check(&self) {
        let active = &self.nodes[self.active].vbucket;
        let status = active.durability_status();
        assert!(status.last_committed_seqno <= status.high_prepared_seqno);
        assert_eq!(active.prepare_count(), status.tracked_count);
        for index in self.others() {
            let status = self.nodes[index].vbucket.durability_status();
            assert!(status.last_tracked_seqno <= self.nodes[index].vbucket.high_seqno());
        }
    }

    /// All nodes have the same, no prepare is left, and nothing that was promised is missing.
    pub(super) fn check_end(&mut self) {
        assert!(self.writes.iter().all(|write| write.has_ended), "every write ends");
        let active = self.active;
        let now = self.now();
        for name in KEYS {
            let found = self.nodes[active].vbucket.get(key(name).as_key(), now, &mut Vec::new());
            let version = |item: &Item| -> u64 {
                std::str::from_utf8(item.value()).unwrap().parse().unwrap()
            };
            let seen = match found {
                Ok(found) => (version(&found.item), found.item.cas()),
                Err(Refusal::NotFound) => (0, Cas::ANY),
                Err(refusal) => panic!("{name}: {refusal:?}"),
            };
            let promised = self.acknowledged.get(name).copied().unwrap_or(0);
            let deleted = self.deleted.get(name).copied().unwrap_or(0);
            let is_there = seen.0 >= promised || (seen.0 == 0 && deleted >= promised);
            assert!(is_there, "{name}: {promised} was promised, {} is there", seen.0);
            for index in self.others() {
                let vbucket = &mut self.nodes[index].vbucket;
                let found = vbucket.get_replica(key(name).as_key(), now, &mut Vec::new());
                let there = found.map_or((0, Cas::ANY), |found| (version(&found.item), found.cas));
                assert_eq!(there, seen, "{name} on {}", NAMES[index]);
            }
        }
        let active = &self.nodes[active].vbucket;
        for Node { name, vbucket, .. } in &self.nodes {
            assert_eq!(vbucket.prepare_count(), 0, "{name}");
            assert_eq!(vbucket.high_seqno(), active.high_seqno(), "{name}");
            assert!(vbucket.high_completed_seqno() <= active.high_completed_seqno(), "{name}");
        }
    }
}

/// Markers and items of what was read, behind `last_sent`.
fn messages_of(range: &LogRange, items: &[Item], last_sent: Seqno) -> Vec<Message> {
    let (mut messages, mut items) = (Vec::new(), items.iter().peekable());
    let mut last_sent = last_sent;
    for (kind, snapshot) in range.snapshots() {
        let end = snapshot.end.min(range.last_seqno());
        let part: Vec<&Item> =
            std::iter::from_fn(|| items.next_if(|item| item.seqno() <= end)).collect();
        let Some(last) = part.last() else { continue };
        let start = snapshot.start.max(last_sent.next());
        messages.push(Message::Snapshot(ReceivedSnapshot {
            start,
            end: last.seqno(),
            is_disk: kind.is_disk(),
            begins_checkpoint: snapshot.start > last_sent,
            max_visible: None,
            high_completed: snapshot.high_completed,
            high_prepared: snapshot.high_prepared,
            purge_seqno: None,
        }));
        last_sent = last.seqno();
        for item in part {
            let operation = match item.operation() {
                Operation::Commit { .. } if kind.is_disk() => Operation::Mutation,
                operation => operation,
            };
            messages.push(Message::Item(item.clone(), operation));
        }
    }
    messages
}
