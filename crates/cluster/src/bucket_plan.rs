//! What every node of a cluster is to do for one bucket: who holds which vBucket.

use std::collections::BTreeMap;

use crate::uuid::Uuid;

/// Who holds what of one bucket. Nodes are indices of the plan's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketPlan {
    /// The bucket's identity, if it is said; otherwise each node tells its own.
    pub uuid: Option<Uuid>,
    /// What the bucket is, by the names of its settings, for nodes that do not have it yet or have
    /// it otherwise. `None` if every node was started with it.
    pub settings: Option<BTreeMap<String, String>>,
    /// Copies beside the active one.
    pub replica_count: usize,
    /// For each vBucket the node index of the active copy, then those of `replica_count` replicas,
    /// all different; `None` where no node holds that copy.
    pub chains: Vec<Vec<Option<usize>>>,
}

impl BucketPlan {
    /// The first plan of a bucket: every node is active for the same number of vBuckets, and the
    /// replicas of these are spread over all others. Needs more nodes than replicas.
    pub fn balanced(node_count: usize, replica_count: usize, vbucket_count: u16) -> Self {
        assert!(node_count > replica_count, "the copies of a vBucket are on different nodes");
        let chain = |vbid: usize| {
            let active = vbid % node_count;
            let replica = |number| {
                let distance = 1 + (vbid / node_count + number) % (node_count - 1);
                Some((active + distance) % node_count)
            };
            std::iter::once(Some(active)).chain((0..replica_count).map(replica)).collect()
        };
        let chains = (0..usize::from(vbucket_count)).map(chain).collect();
        Self { uuid: None, settings: None, replica_count, chains }
    }

    /// The holders of a vBucket's copies, the active one first; nobody where there is no such
    /// vBucket.
    pub fn chain(&self, vbid: u16) -> &[Option<usize>] {
        self.chains.get(usize::from(vbid)).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balanced_plan_gives_every_node_its_share_of_both_roles() {
        for (node_count, replica_count) in [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (5, 2), (6, 3)]
        {
            let plan = BucketPlan::balanced(node_count, replica_count, 1024);
            let mut copies = vec![vec![0_usize; replica_count + 1]; node_count];
            for chain in &plan.chains {
                let mut holders: Vec<usize> = chain.iter().map(|holder| holder.unwrap()).collect();
                holders.iter().enumerate().for_each(|(place, &node)| copies[node][place] += 1);
                holders.sort_unstable();
                holders.dedup();
                assert_eq!(holders.len(), replica_count + 1, "copies are on different nodes");
            }
            let places = copies.iter().flatten();
            let (fewest, most) = (places.clone().min().unwrap(), places.max().unwrap());
            assert!(most - fewest <= node_count, "{node_count} nodes: {copies:?}");
        }
    }
}
