//! Scopes and collections of several nodes, which change them at the same time.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use bucket::{Bucket, manifest_json};
use cluster::{BucketPlan, ClusterPlan, NodeAddress, PlannedNode, Revision};
use document::ManifestEdit;
use executor::DeterministicPool;
use node::{BucketSettings, Copies, Node, NodeConfig, PeerLogin, Peers, World};
use platform::simulated::{SimulatedFiles, SimulatedNetwork};
use platform::{Clock, Entropy, WallTime};

const BUCKET: &str = "default";
const VBUCKETS: u16 = 4;
const PORT: u16 = 11210;
const MANAGEMENT_PORT: u16 = 8091;

/// The buckets of the nodes that answer, by host.
#[derive(Default)]
struct Answering {
    buckets: BTreeMap<String, Bucket>,
    silent: BTreeSet<String>,
    /// The next offer to this host comes behind the change of somebody else.
    is_faster: Option<(String, &'static str)>,
    /// The next answer does not arrive.
    loses_answer: bool,
}

#[derive(Clone, Default)]
struct Others(Arc<Mutex<Answering>>);

impl Others {
    fn lock(&self) -> MutexGuard<'_, Answering> {
        self.0.lock().unwrap()
    }
}

impl Peers for Others {
    fn copies(&self, _: &NodeAddress, _: &PeerLogin) -> anyhow::Result<Copies> {
        anyhow::bail!("nobody asks for copies")
    }

    fn exchange_manifest(
        &self,
        node: &NodeAddress,
        _: &PeerLogin,
        ours: &str,
    ) -> anyhow::Result<String> {
        let mut world = self.lock();
        anyhow::ensure!(!world.silent.contains(&node.host), "no answer");
        let bucket = world.buckets[&node.host].clone();
        let theirs = bucket.manifest();
        let ours = manifest_json::decode(ours.as_bytes()).unwrap();
        if theirs.uid < ours.uid {
            if let Some((_, scope)) = world.is_faster.take_if(|(host, _)| *host == node.host) {
                bucket.edit_manifest(ManifestEdit::CreateScope { scope })?;
            }
            bucket.set_manifest(ours)?;
            anyhow::ensure!(!std::mem::take(&mut world.loses_answer), "the answer is lost");
        }
        Ok(manifest_json::encode(&theirs))
    }
}

/// Three nodes.
struct Cluster {
    others: Others,
    nodes: Vec<(Node, DeterministicPool)>,
}

fn host(index: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, index))
}

impl Cluster {
    fn new() -> Self {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        let network = SimulatedNetwork::new(clock.clone(), 1);
        let others = Others::default();
        let start = |index| {
            let pool = DeterministicPool::new(clock.clone(), u64::from(index));
            let world = World {
                clock: clock.clone(),
                files: Arc::new(SimulatedFiles::new()),
                network: network.host(host(index)).into(),
                entropy: Entropy::simulated(u64::from(index)),
                pool: pool.pool().clone(),
                peers: Arc::new(others.clone()),
            };
            let config = NodeConfig {
                data_dir: PathBuf::from("/data"),
                host: host(index),
                port: PORT,
                password: Some("password".to_owned()),
                node_name: Some(format!("n{index}")),
                threads: 1,
                buckets: vec![BucketSettings {
                    name: BUCKET.to_owned(),
                    vbuckets: Some(VBUCKETS),
                    memory_quota_bytes: 64 << 20,
                    journal_size_bytes: 64 << 20,
                    ..BucketSettings::default()
                }],
                ..NodeConfig::default()
            };
            let node = Node::start(world, config, MANAGEMENT_PORT).unwrap();
            let bucket = node.buckets().default_bucket().unwrap().bucket().clone();
            others.lock().buckets.insert(host(index).to_string(), bucket);
            (node, pool)
        };
        let nodes: Vec<_> = (1..=3).map(start).collect();
        let planned = |index: u8| PlannedNode {
            name: format!("n{index}"),
            address: NodeAddress {
                host: host(index).to_string(),
                data_port: PORT,
                management_port: MANAGEMENT_PORT,
                tls: None,
                external: None,
            },
        };
        let mut plan = ClusterPlan::of_nodes((1..=3).map(planned).collect());
        plan.revision = Revision { epoch: 1, revision: 2 };
        let plan = plan.with_bucket(BUCKET, BucketPlan::balanced(3, 1, VBUCKETS));
        for (node, _) in &nodes {
            node.carry_out(&plan).unwrap();
        }
        Self { others, nodes }
    }

    /// Makes a scope on a node, counted from 0. Returns the uid.
    fn create(&self, index: usize, scope: &str) -> Result<u64, String> {
        let edit = ManifestEdit::CreateScope { scope };
        let edited = self.nodes[index].0.membership().edit_manifest(BUCKET, edit);
        edited.map(|manifest| manifest.uid).map_err(|error| error.to_string())
    }

    /// The scopes of all nodes but the default one, by their ids, and that these are the same ones.
    fn scopes(&self) -> Vec<String> {
        let buckets = self.nodes.iter();
        let buckets = buckets.map(|(node, _)| node.buckets().default_bucket().unwrap());
        let mut manifests = buckets.map(|bucket| bucket.bucket().manifest());
        let first = manifests.next().unwrap();
        assert!(manifests.all(|other| (other.uid, &other.scopes) == (first.uid, &first.scopes)));
        first.scopes.iter().skip(1).map(|scope| scope.name.clone()).collect()
    }
}

#[test]
fn changes_of_one_moment_on_several_nodes_come_one_behind_the_other() {
    let cluster = Cluster::new();
    std::thread::scope(|threads| {
        for index in 0..3 {
            let cluster = &cluster;
            threads.spawn(move || {
                for number in 0..10 {
                    cluster.create(index, &format!("s{index}x{number}")).unwrap();
                }
            });
        }
    });
    let mut scopes = cluster.scopes();
    scopes.sort_unstable();
    scopes.dedup();
    assert_eq!(scopes.len(), 30);
}

#[test]
fn who_was_faster_comes_first_and_no_change_comes_twice() {
    let cluster = Cluster::new();
    let first = host(1).to_string();
    cluster.others.lock().is_faster = Some((first.clone(), "other"));
    assert_eq!(cluster.create(2, "s"), Ok(2));
    assert_eq!(cluster.scopes(), ["other", "s"]);
    cluster.others.lock().is_faster = Some((first, "same"));
    assert_eq!(cluster.create(1, "same"), Ok(3), "two equal changes are one");
    assert!(cluster.create(2, "same").unwrap_err().contains("already exists"));
    cluster.others.lock().loses_answer = true;
    assert_eq!(cluster.create(1, "lost"), Ok(4), "a change whose answer is lost is made once");
    assert_eq!(cluster.scopes(), ["other", "s", "same", "lost"]);
}

#[test]
fn nodes_that_do_not_answer_keep_nobody_from_changes_and_get_them_later() {
    let cluster = Cluster::new();
    cluster.others.lock().silent = (1..=2).map(|index| host(index).to_string()).collect();
    assert_eq!(cluster.create(2, "a"), Ok(1));
    assert_eq!(cluster.create(2, "b"), Ok(2));
    cluster.others.lock().silent.clear();
    assert_eq!(cluster.create(0, "c"), Ok(3));
    assert_eq!(cluster.scopes(), ["a", "b", "c"]);
}

#[test]
fn clients_are_told_the_uid_of_each_manifest() {
    let cluster = Cluster::new();
    let told: Vec<Arc<Mutex<Vec<u64>>>> = cluster.nodes.iter().map(|_| Arc::default()).collect();
    for ((node, _), told) in cluster.nodes.iter().zip(&told) {
        let (membership, told) = (Arc::downgrade(node.membership()), Arc::clone(told));
        node.membership().watch(Box::new(move || {
            let map = membership.upgrade().and_then(|node| node.bucket_map(BUCKET)).unwrap();
            told.lock().unwrap().push(map.manifest_uid);
        }));
    }
    assert_eq!(cluster.create(0, "a"), Ok(1));
    assert_eq!(cluster.create(2, "b"), Ok(2));
    for told in told {
        assert_eq!(*told.lock().unwrap(), [1, 2]);
    }
}
