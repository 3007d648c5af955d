//! Scopes and collections of several nodes, which change them at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use bucket::{Bucket, manifest_json};
use cluster::NodeAddress;
use document::ManifestEdit;
use executor::DeterministicPool;
use node::{Copies, Node, PeerLogin, Peers};

use crate::{BUCKET, host, start_three};

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

impl Cluster {
    fn new() -> Self {
        let others = Others::default();
        let peers: Arc<dyn Peers> = Arc::new(others.clone());
        let nodes = start_three(&peers, |host, node| {
            let bucket = node.buckets().default_bucket().unwrap().bucket().clone();
            others.lock().buckets.insert(host, bucket);
        });
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
