//! One node with two buckets, as clients of either see it, over a restart too.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use client::{ClientError, ClusterClient, Connection, ConnectionOptions, Login, ServerAddress};
use cluster::{BucketPlan, ClusterPlan};
use executor::ExecutorPool;
use node::{BucketSettings, Copies, Node, NodeConfig, PeerLogin, Peers, World};
use platform::files::RealFiles;
use platform::network::Network;
use platform::{Clock, Entropy};
use protocol::client::{Request, store_extras};
use protocol::request::StoreExtras;
use protocol::{Opcode, Status};

const PASSWORD: &str = "password";
const MANAGEMENT_PORT: u16 = 8091;
const PATIENCE: Duration = Duration::from_secs(60);
/// The buckets, with how many vBuckets they have.
const BUCKETS: [(&str, u16); 2] = [("travel", 4), ("orders", 8)];

fn config(directory: &Path) -> NodeConfig {
    let bucket = |(name, vbuckets): (&str, u16)| BucketSettings {
        name: name.to_owned(),
        vbuckets: Some(vbuckets),
        memory_quota_bytes: 64 << 20,
        journal_size_bytes: 64 << 20,
        ..BucketSettings::default()
    };
    NodeConfig {
        data_dir: directory.join("data"),
        port: 0,
        memcached_port: Some(0),
        password: Some(PASSWORD.into()),
        threads: 2,
        buckets: BUCKETS.map(bucket).into(),
        ..NodeConfig::default()
    }
}

/// The node is the only one.
struct Nobody;

impl Peers for Nobody {
    fn exchange_manifest(
        &self,
        _: &cluster::NodeAddress,
        _: &PeerLogin,
        ours: &str,
    ) -> anyhow::Result<String> {
        Ok(ours.to_owned())
    }

    fn copies(&self, _: &cluster::NodeAddress, _: &PeerLogin) -> anyhow::Result<Copies> {
        bail!("there is no other node")
    }
}

fn start(config: NodeConfig) -> anyhow::Result<Node> {
    let clock = Clock::real();
    let world = World {
        pool: ExecutorPool::start(clock.clone(), config.pool_options()).unwrap(),
        clock,
        files: Arc::new(RealFiles),
        network: Network::real(),
        entropy: Entropy::real(),
        peers: Arc::new(Nobody),
    };
    let node = Node::start(world, config, MANAGEMENT_PORT)?;
    assert!(node.wait_until_serving(PATIENCE));
    node.begin_serving();
    Ok(node)
}

fn client(node: &Node, bucket: &str) -> Result<ClusterClient, ClientError> {
    let mut options = ConnectionOptions::new("test");
    options.login = Some(Login::new("Administrator", PASSWORD));
    options.bucket = Some(bucket.to_owned());
    ClusterClient::connect(&ServerAddress::new("127.0.0.1", node.port()), options)
}

fn set(client: &mut ClusterClient, name: &[u8], value: &[u8]) {
    let extras = store_extras(StoreExtras { flags: [0; 4], expiry: 0 });
    let request = Request { extras: &extras, value, ..Request::new(Opcode::Set) };
    assert_eq!(client.call(name, &request).unwrap().status(), Some(Status::Success));
}

fn get(client: &mut ClusterClient, name: &[u8]) -> Option<Vec<u8>> {
    let response = client.call(name, &Request::new(Opcode::Get)).unwrap();
    response.is_success().then(|| response.value().to_vec())
}

#[test]
fn two_buckets_of_a_node_are_apart_over_restarts_too() {
    let directory = tempfile::tempdir().unwrap();
    let names: Vec<Vec<u8>> = (0..50_u8).map(|number| vec![b'k', number]).collect();
    for round in 0..3_u8 {
        let node = start(config(directory.path())).unwrap();
        assert_eq!(node.buckets().default_bucket().unwrap().name(), "travel");
        assert!(client(&node, "third").is_err(), "there is no such bucket");
        for (bucket, vbuckets) in BUCKETS {
            let mut client = client(&node, bucket).unwrap();
            assert_eq!(client.routing().vbucket_count(), vbuckets, "each has a map of its own");
            for name in &names {
                let before = (round > 0).then(|| [bucket.as_bytes(), &[round - 1]].concat());
                assert_eq!(get(&mut client, name), before);
                set(&mut client, name, &[bucket.as_bytes(), &[round]].concat());
            }
            set(&mut client, bucket.as_bytes(), b"");
        }
        for (bucket, own, other) in [("travel", "travel", "orders"), ("orders", "orders", "travel")]
        {
            let mut client = client(&node, bucket).unwrap();
            assert!(get(&mut client, own.as_bytes()).is_some());
            assert!(get(&mut client, other.as_bytes()).is_none());
        }
        node.stop().unwrap();
    }
}

#[test]
fn memcached_clients_get_the_first_bucket() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(config(directory.path())).unwrap();
    for (bucket, _) in BUCKETS {
        set(&mut client(&node, bucket).unwrap(), b"k", bucket.as_bytes());
    }
    let address = ServerAddress::new("127.0.0.1", node.memcached_port().unwrap());
    let mut connection = Connection::open(&address, &ConnectionOptions::new("test")).unwrap();
    let statistics = connection.statistics("config").unwrap();
    let name = statistics.iter().find(|(name, _)| name == "ep_couch_bucket");
    assert_eq!(name.unwrap().1, "travel");
    drop(connection);
    node.stop().unwrap();
}

#[test]
fn a_map_is_carried_out_for_each_bucket_and_remembered() {
    let directory = tempfile::tempdir().unwrap();
    let node = start(config(directory.path())).unwrap();
    let mut plan = node.membership().plan();
    assert_eq!(plan.buckets.keys().collect::<Vec<_>>(), ["orders", "travel"]);
    plan.revision.revision += 1;
    for (bucket, vbuckets) in BUCKETS {
        // Half of it is nowhere.
        let mut planned = BucketPlan::balanced(1, 0, vbuckets);
        planned.chains.iter_mut().step_by(2).for_each(|chain| chain[0] = None);
        plan = plan.with_bucket(bucket, planned);
    }
    node.carry_out(&plan).unwrap();
    let check = |node: &Node| {
        for (bucket, vbuckets) in BUCKETS {
            let map = node.membership().bucket_map(bucket).unwrap();
            assert_eq!(map.chains, plan.buckets[bucket].chains);
            let mut here = 0;
            node.buckets().get(bucket).unwrap().bucket().for_each_vbucket(|_, _| here += 1);
            assert_eq!(here, vbuckets / 2, "{bucket}");
            assert!(node.membership().pending(bucket).is_empty());
        }
    };
    check(&node);
    let mut without = ClusterPlan { buckets: [].into(), ..plan.clone() };
    without.revision.revision += 1;
    assert!(node.carry_out(&without).unwrap_err().contains("the node has a bucket"));
    node.stop().unwrap();
    let node = start(config(directory.path())).unwrap();
    check(&node);
    node.stop().unwrap();
}

#[test]
fn a_bucket_that_is_left_out_is_not_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    start(config(directory.path())).unwrap().stop().unwrap();
    let mut renamed = config(directory.path());
    renamed.buckets[1].name = "oders".to_owned();
    let error = start(renamed).err().unwrap().to_string();
    assert!(error.contains("no bucket `oders`, but `orders`"), "{error}");
    let mut one_more = config(directory.path());
    one_more
        .buckets
        .push(BucketSettings { name: "third".to_owned(), ..one_more.buckets[0].clone() });
    let node = start(one_more).unwrap();
    assert_eq!(node.buckets().all().len(), 3, "a new one beside all that there are");
    node.stop().unwrap();
}
