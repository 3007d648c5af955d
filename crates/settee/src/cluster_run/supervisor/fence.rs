//! The order in which a failover speaks to members: nobody may follow the node that is given up
//! when it is decided who takes its place.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::ensure;
use cluster::ClusterPlan;

use super::super::standing::Standing;

/// The members of a cluster, by their index in its plan.
pub(super) trait Members {
    /// Has the node that is given up stop serving, if it can be told.
    fn say_farewell(&self, plan: &ClusterPlan);

    /// Has a member carry out a map, if it runs.
    fn hand_over(&self, plan: &ClusterPlan, member: usize) -> anyhow::Result<()>;

    /// How far the copies of these members are.
    fn standing(&self, members: &BTreeSet<usize>) -> anyhow::Result<Standing>;
}

/// How far replicas are once none of them follows the node that is given up: `fence` is the map
/// without it. Until then it may serve, and what it acknowledges may be held by a replica that has
/// said before how far it is. `is_forced` goes past those who do not answer.
pub(super) fn standing_behind(
    fence: &ClusterPlan,
    replicas: &BTreeMap<u16, Vec<usize>>,
    is_forced: bool,
    members: &impl Members,
) -> anyhow::Result<Standing> {
    let candidates: BTreeSet<usize> = replicas.values().flatten().copied().collect();
    assert!(!candidates.is_empty() || replicas.is_empty(), "a vBucket with replicas has members");
    // Whoever serves on unheard writes nothing durable once no candidate follows it any more.
    members.say_farewell(fence);
    for &candidate in &candidates {
        let told = members.hand_over(fence, candidate);
        ensure!(told.is_ok() || is_forced, "{:#}", told.expect_err("it has failed"));
    }
    members.standing(&candidates)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use node::Held;
    use platform::Random;
    use platform::seeds::seeds;

    use super::*;

    const VBID: u16 = 0;
    const REPLICAS: [usize; 2] = [1, 2];

    /// Node 0, which is given up and writes durably as long as it can, and its two replicas. Of two
    /// replicas either makes a majority.
    struct Model {
        random: Random,
        can_be_told: bool,
        serves: bool,
        acknowledged_seqno: u64,
        follows: BTreeMap<usize, bool>,
        held_seqnos: BTreeMap<usize, u64>,
    }

    impl Model {
        fn new(seed: u64) -> Self {
            let mut random = Random::from_seed(seed);
            Self {
                can_be_told: random.below(2) == 0,
                random,
                serves: true,
                acknowledged_seqno: 0,
                follows: REPLICAS.map(|replica| (replica, true)).into(),
                held_seqnos: REPLICAS.map(|replica| (replica, 0)).into(),
            }
        }

        /// Time passes: node 0 writes, and a replica that follows it holds that or lags behind.
        fn pass(&mut self) {
            for _ in 0..self.random.below(4) {
                let written = self.acknowledged_seqno + 1;
                for replica in REPLICAS {
                    if self.serves && self.follows[&replica] && self.random.below(2) == 0 {
                        self.held_seqnos.insert(replica, written);
                        self.acknowledged_seqno = written;
                    }
                }
            }
        }
    }

    impl Members for RefCell<Model> {
        fn say_farewell(&self, _: &ClusterPlan) {
            let mut model = self.borrow_mut();
            model.pass();
            model.serves &= !model.can_be_told;
        }

        fn hand_over(&self, _: &ClusterPlan, member: usize) -> anyhow::Result<()> {
            let mut model = self.borrow_mut();
            model.pass();
            model.follows.insert(member, false);
            Ok(())
        }

        fn standing(&self, members: &BTreeSet<usize>) -> anyhow::Result<Standing> {
            let mut standing = Standing::default();
            for &member in members {
                let mut model = self.borrow_mut();
                model.pass();
                let seqno = model.held_seqnos[&member];
                let held = Held { is_whole: true, prepared_seqno: seqno, high_seqno: seqno };
                standing.add(member, BTreeMap::from([(VBID, held)]));
            }
            Ok(standing)
        }
    }

    fn plan() -> ClusterPlan {
        let node = |index: u16| cluster::PlannedNode {
            name: format!("n_{index}"),
            address: cluster::NodeAddress {
                host: "h".to_owned(),
                data_port: index + 1,
                management_port: index + 11,
            },
        };
        let bucket = cluster::BucketPlan::balanced(3, 2, 1);
        ClusterPlan::of_nodes((0..3).map(node).collect()).with_bucket("b", bucket)
    }

    #[test]
    fn who_is_chosen_holds_all_that_was_acknowledged_until_it_is() {
        let replicas = BTreeMap::from([(VBID, REPLICAS.to_vec())]);
        for seed in seeds(500) {
            let members = RefCell::new(Model::new(seed));
            let standing = standing_behind(&plan(), &replicas, false, &members).unwrap();
            let chosen = standing.furthest(VBID, &REPLICAS).unwrap();
            let mut model = members.into_inner();
            model.pass();
            let held_seqno = model.held_seqnos[&chosen];
            assert!(held_seqno >= model.acknowledged_seqno, "seed {seed}");
        }
    }
}
