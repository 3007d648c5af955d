//! Changes of the buckets on several nodes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cluster::NodeAddress;
use node::{Copies, OfferPurpose, PeerLogin, Peers, PlanOffer};
use platform::Clock;
use server::BucketWords;

use crate::{BUCKET, host, start_three};

/// Nodes that have the plan that they were told last, but for one that hangs.
#[derive(Default)]
struct Answering {
    clock: Option<Clock>,
    plan: String,
    hanging: String,
    asked: Vec<String>,
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

    fn exchange_plan(
        &self,
        node: &NodeAddress,
        _: &PeerLogin,
        offer: PlanOffer<'_>,
    ) -> anyhow::Result<String> {
        let mut world = self.0.lock().unwrap();
        world.asked.push(node.host.clone());
        if node.host == world.hanging {
            world.clock.iter().for_each(|clock| clock.advance(Duration::from_secs(2)));
            anyhow::bail!("no answer in time");
        }
        if offer.purpose != OfferPurpose::Trial {
            offer.plan.clone_into(&mut world.plan);
        }
        Ok(world.plan.clone())
    }
}

#[test]
fn a_change_waits_once_for_a_node_that_hangs() {
    let others = Others::default();
    let peers: Arc<dyn Peers> = Arc::new(others.clone());
    let nodes = start_three(&peers, |_, _| {});
    let node = &nodes[0].0;
    let (hanging, answering) = (host(2).to_string(), host(3).to_string());
    *others.0.lock().unwrap() = Answering {
        clock: Some(node.clock().clone()),
        plan: node.membership().plan().to_json(),
        hanging: hanging.clone(),
        asked: Vec::new(),
    };
    let words: BucketWords = vec![("max_ttl".to_owned(), "60".to_owned())];
    let unreached = node.bucket_changes().change(BUCKET, &words, false).unwrap();
    assert_eq!(unreached, ["n2"]);
    let asked = std::mem::take(&mut others.0.lock().unwrap().asked);
    assert_eq!(asked, [hanging, answering.clone(), answering]);
}
