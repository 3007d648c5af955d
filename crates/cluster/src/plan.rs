//! What every node of a cluster is to do: who holds which vBucket, and in which role.

use crate::cluster_map::{BucketMap, ClusterMap, NodeAddress, Revision};
use crate::uuid::Uuid;

/// A node of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedNode {
    /// Its name in topologies: what it calls itself when it replicates.
    pub name: String,
    /// Where it is reached, by clients and by the other nodes.
    pub address: NodeAddress,
}

/// What a cluster's nodes are to do. The same for all of them, and what they tell to clients
/// follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterPlan {
    /// The version. A node carries out a plan that is not older than the one it has.
    pub revision: Revision,
    /// The cluster's identity, if it is said; otherwise each node tells its own.
    pub cluster_uuid: Option<Uuid>,
    /// The bucket's identity, likewise.
    pub bucket_uuid: Option<Uuid>,
    /// The nodes, at least one, with different names.
    pub nodes: Vec<PlannedNode>,
    /// Copies beside the active one.
    pub replica_count: usize,
    /// For each vBucket the node index of the active copy, then those of `replica_count` replicas,
    /// all different; `None` where no node holds that copy.
    pub chains: Vec<Vec<Option<usize>>>,
}

/// What one node is to do with one vBucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VbucketRole {
    /// It serves clients. Durable writes need these nodes, itself first.
    Active(Vec<Option<String>>),
    /// It follows the active copy on this node, if there is one.
    Replica(Option<usize>),
    /// It has nothing to do with it.
    None,
}

impl ClusterPlan {
    /// The first plan of a cluster: every node is active for the same number of vBuckets, and the
    /// replicas of these are spread over all others. Needs more nodes than replicas.
    pub fn balanced(nodes: Vec<PlannedNode>, replica_count: usize, vbucket_count: u16) -> Self {
        let count = nodes.len();
        assert!(count > replica_count, "the copies of a vBucket are on different nodes");
        let chain = |vbid: usize| {
            let active = vbid % count;
            let replica = |number| {
                let distance = 1 + (vbid / count + number) % (count - 1);
                Some((active + distance) % count)
            };
            std::iter::once(Some(active)).chain((0..replica_count).map(replica)).collect()
        };
        Self {
            revision: Revision { epoch: 1, revision: 1 },
            cluster_uuid: None,
            bucket_uuid: None,
            nodes,
            replica_count,
            chains: (0..usize::from(vbucket_count)).map(chain).collect(),
        }
    }

    /// The index of the node called `name`.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// What the node with this index is to do with a vBucket.
    pub fn role(&self, vbid: u16, node: usize) -> VbucketRole {
        let Some(chain) = self.chains.get(usize::from(vbid)) else { return VbucketRole::None };
        match chain.iter().position(|&holder| holder == Some(node)) {
            Some(0) => VbucketRole::Active(self.names(chain)),
            Some(_) => VbucketRole::Replica(chain.first().copied().flatten()),
            None => VbucketRole::None,
        }
    }

    fn names(&self, chain: &[Option<usize>]) -> Vec<Option<String>> {
        let name = |index: usize| self.nodes.get(index).map(|node| node.name.clone());
        chain.iter().map(|holder| holder.and_then(name)).collect()
    }

    /// The cluster as the node called `name`, reached at `this_address`, tells it to clients.
    /// `own_uuid` is the cluster's identity where the plan says none.
    pub fn cluster_map(&self, name: &str, this_address: NodeAddress, own_uuid: Uuid) -> ClusterMap {
        ClusterMap {
            revision: self.revision,
            uuid: self.cluster_uuid.unwrap_or(own_uuid),
            name: "settee".to_owned(),
            nodes: self.nodes.iter().map(|node| node.address.clone()).collect(),
            this_node: self.index_of(name),
            this_address,
        }
    }

    /// Where the bucket's documents are. `own_uuid` is its identity where the plan says none.
    pub fn bucket_map(&self, name: &str, own_uuid: Uuid, is_ephemeral: bool) -> BucketMap {
        BucketMap {
            name: name.to_owned(),
            uuid: self.bucket_uuid.unwrap_or(own_uuid),
            is_ephemeral,
            replica_count: self.replica_count,
            chains: self.chains.clone(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn node(index: u16) -> PlannedNode {
        let address = NodeAddress {
            host: "127.0.0.1".to_owned(),
            data_port: 12000 + 2 * index,
            management_port: 9000 + index,
        };
        PlannedNode { name: format!("n_{index}@127.0.0.1"), address }
    }

    pub(crate) fn nodes(count: u16) -> Vec<PlannedNode> {
        (0..count).map(node).collect()
    }

    #[test]
    fn a_balanced_plan_gives_every_node_its_share_of_both_roles() {
        for (node_count, replica_count) in [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2), (5, 2), (6, 3)]
        {
            let plan = ClusterPlan::balanced(nodes(node_count), replica_count, 1024);
            let mut copies = vec![vec![0_usize; replica_count + 1]; usize::from(node_count)];
            for chain in &plan.chains {
                let mut holders: Vec<usize> = chain.iter().map(|holder| holder.unwrap()).collect();
                holders.iter().enumerate().for_each(|(place, &node)| copies[node][place] += 1);
                holders.sort_unstable();
                holders.dedup();
                assert_eq!(holders.len(), replica_count + 1, "copies are on different nodes");
            }
            let places = copies.iter().flatten();
            let (fewest, most) = (places.clone().min().unwrap(), places.max().unwrap());
            assert!(most - fewest <= usize::from(node_count), "{node_count} nodes: {copies:?}");
        }
    }

    #[test]
    fn a_node_reads_its_roles_from_the_plan() {
        let mut plan = ClusterPlan::balanced(nodes(3), 1, 4);
        plan.chains[1] = vec![Some(2), None];
        let names = |names: [Option<&str>; 2]| {
            VbucketRole::Active(names.map(|name| name.map(str::to_owned)).to_vec())
        };
        let (zero, one, two) = ("n_0@127.0.0.1", "n_1@127.0.0.1", "n_2@127.0.0.1");
        assert_eq!(plan.role(0, 0), names([Some(zero), Some(one)]));
        assert_eq!(plan.role(0, 1), VbucketRole::Replica(Some(0)));
        assert_eq!(plan.role(0, 2), VbucketRole::None);
        assert_eq!(plan.role(1, 2), names([Some(two), None]));
        assert_eq!(plan.role(4, 0), VbucketRole::None, "there is no such vBucket");
        plan.chains[0][0] = None;
        assert_eq!(plan.role(0, 1), VbucketRole::Replica(None), "nobody to follow");
    }
}
