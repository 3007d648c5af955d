//! Three whole nodes in one thread, which exchange manifests and users, and give each other orders,
//! as a test lets them.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail their tests")]

mod compactions;
mod manifests;
mod plans;
mod users;

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;

use cluster::{BucketPlan, ClusterPlan, NodeAddress, PlannedNode, Revision};
use executor::DeterministicPool;
use node::{BucketSettings, Node, NodeConfig, Peers, World};
use platform::simulated::{SimulatedFiles, SimulatedNetwork};
use platform::{Clock, Entropy, WallTime};

const BUCKET: &str = "default";
const VBUCKETS: u16 = 4;
const PORT: u16 = 11210;
const MANAGEMENT_PORT: u16 = 8091;

fn host(index: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, 0, index))
}

/// Starts nodes 1 to 3 of one cluster, each of which reaches the others by `peers`. `meet` gets
/// each with its host, before they have their map.
fn start_three(
    peers: &Arc<dyn Peers>,
    meet: impl Fn(String, &Node),
) -> Vec<(Node, DeterministicPool)> {
    let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
    let network = SimulatedNetwork::new(clock.clone(), 1);
    let start = |index| {
        let pool = DeterministicPool::new(clock.clone(), u64::from(index));
        let world = World {
            clock: clock.clone(),
            files: Arc::new(SimulatedFiles::new()),
            network: network.host(host(index)).into(),
            entropy: Entropy::simulated(u64::from(index)),
            pool: pool.pool().clone(),
            peers: Arc::clone(peers),
        };
        let node = Node::start(world, config(index), MANAGEMENT_PORT).unwrap();
        meet(host(index).to_string(), &node);
        (node, pool)
    };
    let nodes: Vec<_> = (1..=3).map(start).collect();
    let plan = plan();
    nodes.iter().for_each(|(node, _)| node.carry_out(&plan).unwrap());
    nodes
}

fn config(index: u8) -> NodeConfig {
    NodeConfig {
        data_dir: PathBuf::from("/data"),
        host: host(index),
        port: PORT,
        password: Some("password".into()),
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
    }
}

fn plan() -> ClusterPlan {
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
    plan.with_bucket(BUCKET, BucketPlan::balanced(3, 1, VBUCKETS))
}
