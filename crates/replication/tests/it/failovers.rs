//! A client that follows a vBucket from node to node: of two nodes now one and now the other is
//! lost, with what it has not written to its disk, and the other is promoted.

mod acknowledged;
mod checks;
mod client;
mod link;
mod liveness;
mod membership;
mod node;
mod receive;

use std::collections::BTreeMap;
use std::time::Duration;

use bucket::{BucketConfig, BucketType, EvictionConfig, Persistence};
use document::{DurabilityLevel, Key, Manifest, ManifestEdit, VbucketState};
use platform::Random;
use platform::seeds::seeds;
use protocol::Feature;
use vbucket::eviction::EvictionPolicy;
use vbucket::{Now, RecoveryStep, Waiter};

use acknowledged::{Acknowledged, DurableWrite, Lost};
use client::Client;
use link::Link;
use node::{Node, key_in};

use crate::support::{Machine, VBID, config};

const LEVELS: [DurabilityLevel; 3] = [
    DurabilityLevel::Majority,
    DurabilityLevel::MajorityAndPersistOnMaster,
    DurabilityLevel::PersistToMajority,
];
const COLLECTIONS: &[Feature] = &[Feature::Collections];

struct Run {
    seed: u64,
    random: Random,
    nodes: [Node; 2],
    active: usize,
    /// What the other node receives by, while it does.
    link: Option<Link>,
    /// The other node has no place.
    is_given_up: bool,
    client: Client,
    manifest: Manifest,
    /// Durable writes under way, by who waits for them.
    waiting: BTreeMap<u64, DurableWrite>,
    acknowledged: BTreeMap<Vec<u8>, Acknowledged>,
    replica_lost: Lost,
    /// Other vBuckets are written to, too.
    is_flooded: bool,
    /// When all documents that expire have expired, by any clock.
    expiry_max: u32,
    starts: u64,
    replica_rollbacks: u64,
}

impl Run {
    fn new(seed: u64, config: &BucketConfig) -> Self {
        let mut nodes = [Node::new(config, 2 * seed + 1), Node::new(config, 2 * seed + 2)];
        nodes[0].take_role(VbucketState::Active);
        nodes[1].take_role(VbucketState::Replica);
        let mut random = Random::from_seed(seed);
        let features: &[Feature] = if random.below(2) == 0 { &[] } else { COLLECTIONS };
        let client = Client::new(&nodes[0].machine, features);
        Self {
            seed,
            random,
            nodes,
            active: 0,
            link: None,
            is_given_up: false,
            client,
            manifest: Manifest::default(),
            waiting: BTreeMap::new(),
            acknowledged: BTreeMap::new(),
            replica_lost: Lost::Nothing,
            is_flooded: config.apply.cycle > Duration::ZERO,
            expiry_max: 0,
            starts: 0,
            replica_rollbacks: 0,
        }
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

    fn any_node(&mut self) -> &mut Node {
        let index = usize::from(self.below(2) == 0);
        &mut self.nodes[index]
    }

    fn step(&mut self) {
        let count = self.below(12);
        match self.below(24) {
            0..5 => self.write(),
            5 => self.source().run(),
            6 => self.target().run(),
            7 => self.recover_memory(),
            8 => self.follow(),
            9 => self.connect(),
            10 | 11 => self.client.take(&self.nodes[self.active].machine, count),
            12 if self.below(6) == 0 => self.restart_replica(),
            13 if self.below(3) == 0 => self.abort(),
            14 if self.below(4) == 0 => self.any_node().purge(),
            15 if self.below(3) == 0 => self.change_collections(),
            16 => self.evict(),
            17 => self.read(),
            18 if self.below(4) == 0 => self.any_node().pass_time(),
            19 if self.below(6) == 0 => self.change_membership(),
            20 => self.send_ahead(count),
            21 if self.is_flooded => self.flood(),
            22 if self.below(4) == 0 => self.any_node().fill_disk(true),
            23 => self.any_node().fill_disk(false),
            _ => self.replicate(count),
        }
    }

    fn any_key(&mut self) -> Vec<u8> {
        let scope = &self.manifest.scopes[0];
        let count = u64::try_from(scope.collections.len()).unwrap();
        let index = usize::try_from(self.random.below(count)).unwrap();
        key_in(scope.collections[index].id, &format!("key{}", self.random.below(20)))
    }

    /// One that nothing else has.
    fn any_value(&mut self) -> Vec<u8> {
        let mut value = self.random.next_u64().to_be_bytes().to_vec();
        if self.is_flooded {
            value.resize(usize::try_from(8 + self.random.below(4_000)).unwrap(), 0);
        }
        value
    }

    fn write(&mut self) {
        for _ in 0..=self.below(6) {
            self.note_commits();
            let (key, value) = (self.any_key(), self.any_value());
            let waiter = self.random.next_u64();
            let level = LEVELS[usize::try_from(self.below(3)).unwrap()];
            let durable = Some((level, Waiter(waiter)));
            let expiry = self.nodes[self.active].seconds() + 1;
            self.expiry_max = self.expiry_max.max(expiry);
            let node = &mut self.nodes[self.active];
            let (is_written, value) = match self.random.below(8) {
                0 | 1 => (node.delete(&key, None), None),
                2 => (node.set(&key, &value, 0, durable), Some(value)),
                3 => (node.delete(&key, durable), None),
                4 if self.random.below(2) == 0 => {
                    node.set(&key, &value, expiry, None);
                    self.acknowledged.remove(&key);
                    continue;
                }
                4 => {
                    node.touch(&key, expiry);
                    self.acknowledged.remove(&key);
                    continue;
                }
                _ => (node.set(&key, &value, 0, None), Some(value)),
            };
            if !is_written {
                continue;
            }
            if let Some(known) = self.acknowledged.get_mut(&key) {
                known.values.push(value.clone());
            }
            self.waiting.insert(waiter, (key, value, level));
        }
    }

    /// A collection comes, or goes. One of the nodes may hear of it later.
    fn change_collections(&mut self) {
        let collection = ["one", "two"][usize::from(self.below(2) == 0)];
        let scope = "_default";
        let (max_ttl, history) = (None, false);
        let create = ManifestEdit::CreateCollection { scope, collection, max_ttl, history };
        let drop = ManifestEdit::DropCollection { scope, collection };
        let next = self.manifest.edited(create).or_else(|_| self.manifest.edited(drop)).unwrap();
        let is_there =
            |key: &[u8]| next.collection_of_id(Key::from_trusted(key).collection()).is_some();
        self.note_commits();
        self.acknowledged.retain(|key, _| is_there(key));
        self.manifest = next;
        self.nodes[self.active].follow_manifest(&self.manifest);
        if self.below(2) == 0 {
            self.nodes[1 - self.active].follow_manifest(&self.manifest);
        }
    }

    fn connect(&mut self) {
        self.nodes[self.active].fill_disk(false);
        self.client.connect(&mut self.nodes[self.active].machine);
    }

    /// Documents leave memory.
    fn evict(&mut self) {
        for _ in 0..10 {
            let key = self.any_key();
            self.any_node().evict(&key);
        }
    }

    fn read(&mut self) {
        for _ in 0..3 {
            let key = self.any_key();
            self.nodes[self.active].look(&key);
        }
    }

    /// Nobody has acknowledged what is prepared.
    fn abort(&mut self) {
        self.source().bucket.on_vbucket(VBID, |vbucket, now, effects| {
            let monotonic = now.monotonic.after(Duration::from_secs(100_000));
            vbucket.end_overdue_sync_writes(Now { monotonic, ..now }, effects);
        });
    }

    fn recover_memory(&mut self) {
        let steps =
            [RecoveryStep::CloseFullCheckpoint, RecoveryStep::Expel, RecoveryStep::DropSlowCursors];
        let count = usize::try_from(self.below(4)).unwrap();
        let stands_for = Duration::from_secs(10 * self.below(2));
        let node = self.any_node();
        for step in &steps[..count] {
            node.recover_memory(*step, stands_for);
        }
    }

    fn flood(&mut self) {
        let index = usize::from(self.below(2) == 0);
        self.nodes[index].flood(&mut self.random);
    }

    fn restart_replica(&mut self) {
        self.note_loss(Lost::Memory);
        self.crash(1 - self.active);
    }

    fn crash(&mut self, node: usize) {
        self.link = None;
        self.starts += 1;
        let seed = 1_000_000 * (self.seed + 1) + self.starts;
        self.nodes[node].crash(seed);
    }

    /// The active node is lost, and comes back as a replica of the other.
    fn fail_over(&mut self) {
        self.note_commits();
        self.take_in();
        if self.below(2) == 0 {
            self.restart_replica();
        }
        self.waiting.clear();
        self.replica_lost = Lost::Nothing;
        self.acknowledged.retain(|_, known| !known.is_alone);
        self.crash(self.active);
        self.active = 1 - self.active;
        self.nodes[self.active].take_role(VbucketState::Active);
        self.nodes[1 - self.active].take_role(VbucketState::Replica);
        if self.below(3) > 0 {
            self.nodes[self.active].follow_manifest(&self.manifest);
        }
        self.connect();
        if self.below(3) == 0 {
            self.check_acknowledged(true);
        }
        for known in self.acknowledged.values_mut() {
            known.is_alone = true;
        }
    }
}

/// A journal that is soon full, of as many segments as the smallest one that nodes are given.
fn flooded(config: &BucketConfig) -> BucketConfig {
    let mut persistence = config.persistence;
    if let Persistence::Journal(options) = &mut persistence {
        (options.segment_bytes, options.bytes_max) = (16 << 10, 16 * (16 << 10));
    }
    let apply = BucketConfig::named("any").apply;
    BucketConfig { persistence, apply, ..config.clone() }
}

#[test]
fn a_client_that_goes_back_when_it_is_told_has_what_the_promoted_node_has() {
    let small = BucketConfig { checkpoint_memory_ratio: 0.005, ..config() };
    let files = BucketConfig { persistence: Persistence::Files, ..small.clone() };
    let full = EvictionConfig { policy: EvictionPolicy::Full, ..small.eviction };
    let full = BucketConfig { eviction: full, ..small.clone() };
    let ephemeral = Some(BucketType::Ephemeral);
    let ephemeral = BucketConfig { bucket_type: ephemeral, ..small.clone() };
    let flooded = flooded(&small);
    let (mut rollbacks, mut replica_rollbacks) = (0, 0);
    for seed in seeds(15) {
        for config in [&small, &files, &full, &ephemeral, &flooded] {
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
                match run.below(4) {
                    0 => run.check_client(),
                    1 => run.check_nodes(),
                    _ => {}
                }
            }
            run.check_nodes();
            run.check_client();
            if !run.nodes[0].is_ephemeral() {
                run.check_restarts();
            }
            rollbacks += run.client.rollbacks;
            replica_rollbacks += run.replica_rollbacks;
        }
    }
    assert!(rollbacks > 0, "clients had what was lost");
    assert!(replica_rollbacks > 0, "nodes that came back had what was lost");
}
