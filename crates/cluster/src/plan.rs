//! What every node of a cluster is to do: its nodes, and the plan of each bucket.

use std::collections::BTreeMap;

use crate::bucket_plan::BucketPlan;
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
    /// The cluster's name, for people, if it was given one.
    pub cluster_name: Option<String>,
    /// The nodes, at least one, with different names.
    pub nodes: Vec<PlannedNode>,
    /// Who holds what of each bucket, by its name.
    pub buckets: BTreeMap<String, BucketPlan>,
    /// Buckets that were deleted, in this order: whoever has one deletes it, too.
    pub deleted: Vec<DeletedBucket>,
    /// How often buckets were made, changed or deleted, or the cluster was named.
    pub changes: u64,
}

/// A bucket that is to be nowhere any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedBucket {
    /// Its name, which another one may have by now.
    pub name: String,
    /// Its identity, if the plans in which it was said one.
    pub uuid: Option<Uuid>,
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
    /// The first plan of a cluster, which has no bucket yet.
    pub fn of_nodes(nodes: Vec<PlannedNode>) -> Self {
        Self {
            revision: Revision { epoch: 1, revision: 1 },
            cluster_uuid: None,
            cluster_name: None,
            nodes,
            buckets: BTreeMap::new(),
            deleted: Vec::new(),
            changes: 0,
        }
    }

    /// The same plan with a bucket of that name, instead of what it had under it.
    #[must_use]
    pub fn with_bucket(mut self, name: &str, bucket: BucketPlan) -> Self {
        self.buckets.insert(name.to_owned(), bucket);
        self
    }

    /// The index of the node called `name`.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// What the node with this index is to do with a vBucket of a bucket.
    pub fn role(&self, bucket: &str, vbid: u16, node: usize) -> VbucketRole {
        let chain = self.buckets.get(bucket).map_or(&[][..], |bucket| bucket.chain(vbid));
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
            name: self.cluster_name.clone().unwrap_or_else(|| "settee".to_owned()),
            nodes: self.nodes.iter().map(|node| node.address.clone()).collect(),
            this_node: self.index_of(name),
            this_address,
        }
    }

    /// Where the documents of a bucket are, if it is in the plan. `own_uuid` is its identity where
    /// the plan says none.
    pub fn bucket_map(&self, name: &str, own_uuid: Uuid, is_ephemeral: bool) -> Option<BucketMap> {
        let BucketPlan { uuid, replica_count, chains, .. } = self.buckets.get(name)?.clone();
        let uuid = uuid.unwrap_or(own_uuid);
        let name = name.to_owned();
        Some(BucketMap { name, uuid, is_ephemeral, manifest_uid: 0, replica_count, chains })
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
            tls: None,
            external: None,
        };
        PlannedNode { name: format!("n_{index}@127.0.0.1"), address }
    }

    pub(crate) fn nodes(count: u16) -> Vec<PlannedNode> {
        (0..count).map(node).collect()
    }

    #[test]
    fn a_node_reads_its_roles_from_the_plan() {
        let mut bucket = BucketPlan::balanced(3, 1, 4);
        bucket.chains[1] = vec![Some(2), None];
        let plan = ClusterPlan::of_nodes(nodes(3))
            .with_bucket("small", BucketPlan::balanced(3, 0, 1))
            .with_bucket("b", bucket);
        let names = |names: [Option<&str>; 2]| {
            VbucketRole::Active(names.map(|name| name.map(str::to_owned)).to_vec())
        };
        let (zero, one, two) = ("n_0@127.0.0.1", "n_1@127.0.0.1", "n_2@127.0.0.1");
        assert_eq!(plan.role("b", 0, 0), names([Some(zero), Some(one)]));
        assert_eq!(plan.role("b", 0, 1), VbucketRole::Replica(Some(0)));
        assert_eq!(plan.role("b", 0, 2), VbucketRole::None);
        assert_eq!(plan.role("b", 1, 2), names([Some(two), None]));
        assert_eq!(plan.role("b", 4, 0), VbucketRole::None, "there is no such vBucket");
        let alone = VbucketRole::Active(vec![Some(zero.to_owned())]);
        assert_eq!(plan.role("small", 0, 0), alone, "each bucket has chains of its own");
        assert_eq!(plan.role("small", 0, 1), VbucketRole::None);
        assert_eq!(plan.role("other", 0, 0), VbucketRole::None, "there is no such bucket");
    }

    #[test]
    fn without_an_active_copy_there_is_nobody_to_follow() {
        let mut bucket = BucketPlan::balanced(3, 1, 4);
        bucket.chains[0][0] = None;
        let plan = ClusterPlan::of_nodes(nodes(3)).with_bucket("b", bucket);
        assert_eq!(plan.role("b", 0, 1), VbucketRole::Replica(None));
    }
}
