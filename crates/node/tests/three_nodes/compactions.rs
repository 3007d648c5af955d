//! Compactions of a bucket on several nodes.

use std::sync::{Arc, Mutex};

use cluster::NodeAddress;
use node::{CompactionChange, Copies, PeerLogin, Peers};

use crate::{BUCKET, host, start_three};

/// The nodes, by host.
#[derive(Default)]
struct Answering {
    told: Vec<(String, CompactionChange)>,
    silent: Option<String>,
}

#[derive(Clone, Default)]
struct Others(Arc<Mutex<Answering>>);

impl Peers for Others {
    fn copies(&self, _: &NodeAddress, _: &PeerLogin) -> anyhow::Result<Copies> {
        anyhow::bail!("nobody asks for copies")
    }

    fn exchange_manifest(&self, _: &NodeAddress, _: &PeerLogin, _: &str) -> anyhow::Result<String> {
        anyhow::bail!("nobody asks for manifests")
    }

    fn order_compaction(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
        order: CompactionChange,
    ) -> anyhow::Result<()> {
        let mut world = self.0.lock().unwrap();
        anyhow::ensure!(world.silent.as_ref() != Some(&node.host), "no answer");
        assert_eq!((login.bucket.as_str(), login.password.as_str()), (BUCKET, "password"));
        world.told.push((node.host.clone(), order));
        Ok(())
    }
}

#[test]
fn all_other_nodes_hear_of_a_compaction_and_those_that_do_not_are_named() {
    let others = Others::default();
    let peers: Arc<dyn Peers> = Arc::new(others.clone());
    let nodes = start_three(&peers, |_, _| {});
    let order = |order| nodes[1].0.membership().order_compaction_elsewhere(BUCKET, order);
    let told = || std::mem::take(&mut others.0.lock().unwrap().told);
    let (first, third) = (host(1).to_string(), host(3).to_string());
    for what in [CompactionChange::Begin, CompactionChange::Cancel] {
        assert_eq!(order(what), Ok(()));
        assert_eq!(told(), [(first.clone(), what), (third.clone(), what)]);
    }
    others.0.lock().unwrap().silent = Some(first);
    let why = order(CompactionChange::Begin).unwrap_err();
    assert!(why.contains("n1 does not: no answer") && !why.contains("n3"), "{why}");
    assert_eq!(told(), [(third, CompactionChange::Begin)], "nobody else is left out");
}
