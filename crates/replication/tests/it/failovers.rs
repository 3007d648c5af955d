//! A client that follows a vBucket from node to node: of two nodes now one and now the other is
//! lost, with what it has not written to its disk, and the other is promoted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bucket::{BucketConfig, CompactionOrder, Persistence};
use document::{
    Deletion, DurabilityLevel, FailoverEntry, ItemBuilder, ItemMeta, Key, Operation, Seqno,
};
use document::{VbUuid, VbucketState};
use platform::Random;
use platform::seeds::seeds;
use platform::simulated::SimulatedFiles;
use protocol::dcp::parse_failover_log;
use protocol::dcp::{Document, MarkerFlags, Message, StreamFlags, StreamRequest};
use protocol::{Feature, Frame, Opcode, Parsed, Status};
use replication::Answer;
use vbucket::{Effect, Now, ReceiveError, ReceivedSnapshot, RecoveryStep, Vbucket};

use crate::consumer::{Consumer, Received};
use crate::support::{Machine, VBID, config};

const COLLECTIONS: &[Feature] = &[Feature::Collections];

type Documents = BTreeMap<Vec<u8>, (Vec<u8>, Seqno)>;

/// A node, whose machine is made anew at each start.
struct Node {
    files: SimulatedFiles,
    config: BucketConfig,
    machine: Machine,
}

/// A client, which knows what it had at the ends of snapshots.
struct Client {
    /// What it negotiates.
    features: &'static [Feature],
    consumer: Consumer,
    /// The branches of what it has.
    log: Vec<(VbUuid, Seqno)>,
    ends: Vec<(Seqno, Documents)>,
    rollbacks: u64,
}

struct Run {
    seed: u64,
    random: Random,
    nodes: [Node; 2],
    active: usize,
    /// What the other node receives by, while it does.
    link: Option<Consumer>,
    client: Client,
    starts: u64,
    replica_rollbacks: u64,
}

impl Node {
    fn new(config: &BucketConfig, seed: u64) -> Self {
        let files = SimulatedFiles::new();
        let machine = Machine::start(Arc::new(files.clone()), config.clone(), seed);
        Self { files, config: config.clone(), machine }
    }

    /// Loses what it has not written to its disk, and starts again.
    fn crash(&mut self, seed: u64) {
        self.machine.driver.pool().shutdown();
        self.files.power_cut(seed);
        self.machine = Machine::start(Arc::new(self.files.clone()), self.config.clone(), seed);
    }

    /// Of an active vBucket durable writes wait for the other node.
    fn take_role(&self, state: VbucketState) {
        let name = |name: &str| Some(name.to_owned());
        let topology = vec![vec![name("this"), name("other")]];
        let topology = (state == VbucketState::Active).then_some(topology);
        self.machine.bucket.set_vbucket_state(VBID, state, topology).unwrap();
    }
}

fn open(machine: &Machine, name: &str, features: &[Feature]) -> Consumer {
    Consumer::open(machine, name, 0x25, features)
}

/// The history that `answer` names, or where to go back to; nothing where it is to be asked again.
fn heard(answer: &Answer) -> Option<Result<Vec<(VbUuid, Seqno)>, Seqno>> {
    match answer {
        Answer::Value(log) => Some(Ok(parse_failover_log(log).unwrap())),
        Answer::Rollback(seqno) => Some(Err(*seqno)),
        Answer::Fail(Status::Etmpfail, _) => None,
        other => panic!("{other:?}"),
    }
}

impl Client {
    fn new(machine: &Machine, features: &'static [Feature]) -> Self {
        let nothing = (Seqno(0), Documents::new());
        let consumer = open(machine, "client", features);
        Self { features, consumer, log: Vec::new(), ends: vec![nothing], rollbacks: 0 }
    }

    /// Goes on with what this node has.
    fn connect(&mut self, machine: &mut Machine) {
        let streams = std::mem::take(&mut self.consumer.streams);
        self.consumer = open(machine, "client", self.features);
        self.consumer.streams = streams;
        loop {
            let answer = self.consumer.request(machine, VBID, self.request());
            match heard(&answer) {
                Some(Ok(log)) => {
                    self.log = log;
                    return;
                }
                Some(Err(seqno)) => self.go_back(seqno),
                None => machine.run(),
            }
        }
    }

    fn request(&self) -> StreamRequest<'static> {
        let received = self.consumer.streams.get(&VBID);
        let start = received.map_or(Seqno(0), |received| received.seqno);
        let marker = received.and_then(|received| received.markers.last());
        let within = marker.filter(|marker| marker.start <= start && start < marker.end);
        let (snapshot_start, snapshot_end) =
            within.map_or((start, start), |marker| (marker.start, marker.end));
        let branch = self.log.iter().find(|(_, seqno)| *seqno <= start);
        let uuid = branch.map_or(VbUuid(0), |(uuid, _)| *uuid);
        let (flags, end) = (StreamFlags(0), Seqno(u64::MAX));
        StreamRequest { flags, start, end, uuid, snapshot_start, snapshot_end, value: b"" }
    }

    /// Only at the end of a snapshot it has what there was at one moment.
    fn go_back(&mut self, seqno: Seqno) {
        self.rollbacks += 1;
        self.ends.retain(|(end, _)| *end <= seqno);
        let (seqno, documents) = self.ends.last().expect("nothing is an end, too").clone();
        let received = self.consumer.streams.entry(VBID).or_default();
        *received = Received::default();
        (received.seqno, received.documents) = (seqno, documents);
    }

    /// Takes some messages, one at a time.
    fn take(&mut self, machine: &Machine, count: u64) {
        for _ in 0..count {
            if self.consumer.take(machine, 1, 1) == 0 {
                return;
            }
            self.note_end();
        }
    }

    fn note_end(&mut self) {
        let Some(received) = self.consumer.streams.get(&VBID) else { return };
        let is_new = self.ends.last().is_none_or(|(end, _)| *end < received.seqno);
        if received.is_whole() && is_new {
            self.ends.push((received.seqno, received.documents.clone()));
        }
    }

    fn documents(&self) -> Documents {
        self.consumer.streams.get(&VBID).map_or_else(Documents::new, |it| it.documents.clone())
    }
}

impl Run {
    fn new(seed: u64, config: &BucketConfig) -> Self {
        let nodes = [Node::new(config, 2 * seed + 1), Node::new(config, 2 * seed + 2)];
        nodes[0].take_role(VbucketState::Active);
        nodes[1].take_role(VbucketState::Replica);
        let mut random = Random::from_seed(seed);
        let features: &[Feature] = if random.below(2) == 0 { &[] } else { COLLECTIONS };
        let client = Client::new(&nodes[0].machine, features);
        let (active, link, starts) = (0, None, 0);
        Self { seed, random, nodes, active, link, client, starts, replica_rollbacks: 0 }
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    fn source(&mut self) -> &mut Machine {
        &mut self.nodes[self.active].machine
    }

    fn target(&mut self) -> &mut Machine {
        &mut self.nodes[1 - self.active].machine
    }

    fn step(&mut self) {
        let count = self.below(12);
        match self.below(16) {
            0..5 => self.write(),
            5 => self.source().run(),
            6 => self.target().run(),
            7 => self.recover_memory(),
            8 => self.follow(),
            9 => self.client.connect(&mut self.nodes[self.active].machine),
            10 | 11 => self.client.take(&self.nodes[self.active].machine, count),
            12 if self.below(6) == 0 => self.restart_replica(),
            13 if self.below(3) == 0 => self.abort(),
            14 if self.below(4) == 0 => self.purge(),
            _ => self.replicate(count),
        }
    }

    fn write(&mut self) {
        for _ in 0..=self.below(6) {
            let name = format!("key{}", self.below(20));
            let value = self.random.next_u64().to_be_bytes();
            match self.below(5) {
                0 => drop(self.source().try_delete(&name)),
                1 => drop(self.source().set_durable(&name, &value, DurabilityLevel::Majority)),
                _ => drop(self.source().try_set(&name, &value)),
            }
        }
    }

    /// Nobody has acknowledged what is prepared.
    fn abort(&mut self) {
        self.source().bucket.on_vbucket(VBID, |vbucket, now, effects| {
            let monotonic = now.monotonic.after(Duration::from_secs(100_000));
            vbucket.end_overdue_sync_writes(Now { monotonic, ..now }, effects);
        });
    }

    /// One of the files forgets its tombstones.
    fn purge(&mut self) {
        let node = usize::try_from(self.below(2)).unwrap();
        let machine = &mut self.nodes[node].machine;
        let order = CompactionOrder { drop_deletes: true, ..CompactionOrder::default() };
        machine.bucket.compact(VBID, order, |_| {}).unwrap();
        machine.run();
    }

    fn recover_memory(&mut self) {
        let steps =
            [RecoveryStep::CloseFullCheckpoint, RecoveryStep::Expel, RecoveryStep::DropSlowCursors];
        let count = usize::try_from(self.below(4)).unwrap();
        let node = usize::try_from(self.below(2)).unwrap();
        for step in &steps[..count] {
            self.nodes[node].machine.bucket.on_vbucket(VBID, |vbucket, now, effects| {
                vbucket.recover_memory(*step, now.monotonic, effects);
            });
        }
    }

    /// The replica asks for its stream anew.
    fn follow(&mut self) {
        let mut link = open(self.source(), "link", COLLECTIONS);
        for (key, value) in [
            ("enable_sync_writes", "true"),
            ("consumer_name", "other"),
            ("max_marker_version", "2.2"),
        ] {
            assert_eq!(link.control(self.source(), key, value), Answer::Done);
        }
        let mut entry = 0;
        loop {
            let mut place = None;
            self.target().bucket.with_vbucket(VBID, |vbucket| {
                place = Some((vbucket.stream_position(), vbucket.failover_entries().to_vec()));
            });
            let (position, entries) = place.unwrap();
            let uuid = if entry > 0 { entries[entry].uuid } else { position.uuid };
            let request = StreamRequest {
                flags: StreamFlags(0),
                start: position.start,
                end: Seqno(u64::MAX),
                uuid,
                snapshot_start: position.snapshot_start,
                snapshot_end: position.snapshot_end,
                value: b"",
            };
            match heard(&link.request(self.source(), VBID, request)) {
                Some(Ok(log)) => {
                    let entry = |(uuid, seqno)| FailoverEntry { uuid, seqno };
                    let log: Vec<FailoverEntry> = log.into_iter().map(entry).collect();
                    let begun = self.target().bucket.on_vbucket(VBID, |vbucket, _, effects| {
                        vbucket.begin_receiving(position, &log, effects)
                    });
                    assert_eq!(begun, Some(Ok(())), "seed {}", self.seed);
                    self.link = Some(link);
                    return;
                }
                // A newest branch that has brought nothing need not be known.
                Some(Err(Seqno(0)))
                    if entries[entry].seqno >= position.start && entry + 1 < entries.len() =>
                {
                    entry += 1;
                }
                Some(Err(seqno)) => {
                    entry = 0;
                    self.replica_rollbacks += 1;
                    self.target().bucket.rollback(VBID, seqno).unwrap();
                }
                None => self.source().run(),
            }
        }
    }

    /// So many messages go over.
    fn replicate(&mut self, count: u64) {
        let Some(mut link) = self.link.take() else { return };
        for _ in 0..count {
            let source = &self.nodes[self.active].machine;
            let bytes = link.take_bytes(source, 1);
            let Parsed::Complete { frame, .. } = Frame::parse(&bytes, usize::MAX) else { break };
            let message = Message::parse(&frame).unwrap();
            if message == Message::Noop {
                let (noop, status) = (Opcode::DcpNoop.byte(), Some(Status::Success));
                let opaque = frame.header.opaque;
                link.producer.on_response(noop, status, opaque, source.clock.now()).unwrap();
                continue;
            }
            if matches!(message, Message::StreamEnd(_)) {
                return;
            }
            let received = self
                .target()
                .bucket
                .on_vbucket(VBID, |vbucket, now, effects| receive(vbucket, &message, now, effects));
            assert_eq!(received, Some(Ok(())), "seed {}: {message:?}", self.seed);
        }
        let mut seqno = Seqno(0);
        self.target().bucket.with_vbucket(VBID, |vbucket| seqno = vbucket.high_prepared_seqno());
        let held = Message::SeqnoAcknowledged { seqno };
        let acknowledged = link.tell(self.source(), VBID, &held);
        assert_eq!(acknowledged, Answer::Nothing, "seed {}", self.seed);
        self.link = Some(link);
    }

    fn restart_replica(&mut self) {
        self.link = None;
        self.starts += 1;
        let seed = 1_000_000 * (self.seed + 1) + self.starts;
        self.nodes[1 - self.active].crash(seed);
    }

    /// The active node is lost, and comes back as a replica of the other.
    fn fail_over(&mut self) {
        if self.below(2) == 0 {
            self.restart_replica();
        }
        self.link = None;
        self.active = 1 - self.active;
        self.starts += 1;
        let seed = 1_000_000 * (self.seed + 1) + self.starts;
        self.nodes[1 - self.active].crash(seed);
        self.nodes[self.active].take_role(VbucketState::Active);
        self.nodes[1 - self.active].take_role(VbucketState::Replica);
        self.client.connect(&mut self.nodes[self.active].machine);
    }

    /// All that the active node has, from nothing.
    fn expected(&mut self) -> Documents {
        let features = self.client.features;
        let mut whole = open(self.source(), "whole", features);
        assert!(matches!(whole.resume(self.source(), VBID, u64::MAX), Answer::Value(_)));
        whole.take_all(self.source());
        whole.streams.remove(&VBID).map_or_else(Documents::new, |it| it.documents)
    }

    fn check(&mut self) {
        let expected = self.expected();
        loop {
            self.source().run();
            let before = self.client.ends.len();
            self.client.take(&self.nodes[self.active].machine, 100_000);
            if self.client.ends.len() == before {
                break;
            }
        }
        assert!(self.client.documents() == expected, "seed {}", self.seed);
    }
}

fn receive(
    vbucket: &mut Vbucket,
    message: &Message<'_>,
    now: Now,
    effects: &mut Vec<Effect>,
) -> Result<(), ReceiveError> {
    let version = |document: &Document<'_>, operation, deletion| {
        let (flags, expiry, datatype) = (document.flags, document.expiry, document.datatype);
        let meta = ItemMeta { flags, expiry, datatype, deletion };
        let key = Key::from_trusted(document.key);
        let builder = ItemBuilder::step(key, meta, operation, document.value);
        let (cas, seqno, revision) = (document.cas, document.seqno, document.revision);
        vbucket::Received { builder, cas, seqno, revision }
    };
    match message {
        Message::SnapshotMarker(marker) => {
            let received = ReceivedSnapshot {
                start: marker.start,
                end: marker.end,
                is_disk: marker.flags.contains(MarkerFlags::DISK),
                begins_checkpoint: marker.flags.contains(MarkerFlags::CHECKPOINT),
                max_visible: marker.max_visible,
                high_completed: marker.high_completed,
                high_prepared: marker.high_prepared.filter(|&seqno| seqno >= marker.start),
                purge_seqno: marker.purge,
            };
            vbucket.receive_snapshot(received, effects)
        }
        Message::Mutation(document) => {
            vbucket.receive(version(document, Operation::Mutation, None), now, effects)
        }
        Message::Prepare(prepare) => {
            let operation = Operation::Prepare(prepare.level);
            vbucket.receive(version(&prepare.document, operation, None), now, effects)
        }
        Message::Commit(end) => {
            let key = Key::from_trusted(end.key);
            vbucket.receive_commit(key, end.prepare, end.seqno, now, effects)
        }
        Message::Abort(end) => {
            let key = Key::from_trusted(end.key);
            vbucket.receive_abort(key, end.prepare, end.seqno, now, effects)
        }
        Message::Deletion(deletion) => {
            let document = Document {
                key: deletion.key,
                value: deletion.value,
                datatype: deletion.datatype,
                cas: deletion.cas,
                seqno: deletion.seqno,
                revision: deletion.revision,
                flags: [0; 4],
                expiry: 1,
                lock_seconds: 0,
                heat: 0,
            };
            let deletion = Some(Deletion::Explicit);
            vbucket.receive(version(&document, Operation::Mutation, deletion), now, effects)
        }
        Message::SeqnoAdvanced { seqno } => vbucket.receive_seqno_advanced(*seqno, effects),
        other => panic!("{other:?} is not expected"),
    }
}

#[test]
fn a_client_that_goes_back_when_it_is_told_has_what_the_promoted_node_has() {
    let small = BucketConfig { checkpoint_memory_ratio: 0.005, ..config() };
    let files = BucketConfig { persistence: Persistence::Files, ..small.clone() };
    let (mut rollbacks, mut replica_rollbacks) = (0, 0);
    for seed in seeds(15) {
        for config in [&small, &files] {
            let mut run = Run::new(seed, config);
            run.client.connect(&mut run.nodes[0].machine);
            for _ in 0..4 {
                run.follow();
                for _ in 0..run.below(150) {
                    run.step();
                }
                run.fail_over();
                for _ in 0..run.below(30) {
                    run.write();
                    let count = run.below(40);
                    run.client.take(&run.nodes[run.active].machine, count);
                }
                if run.below(2) == 0 {
                    run.check();
                }
            }
            run.check();
            rollbacks += run.client.rollbacks;
            replica_rollbacks += run.replica_rollbacks;
        }
    }
    assert!(rollbacks > 0, "clients had what was lost");
    assert!(replica_rollbacks > 0, "nodes that came back had what was lost");
}
