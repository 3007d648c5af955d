//! The map: nodes, and for each vBucket the nodes that hold it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::uuid::Uuid;

/// The version of a map. Clients take a map only if its revision is higher than the one they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision {
    /// Counts how often revisions have started over.
    pub epoch: i64,
    /// Counts changes.
    pub revision: i64,
}

/// Where a node is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    /// Host name or address that clients use.
    pub host: String,
    /// The data port.
    pub data_port: u16,
    /// The management port.
    pub management_port: u16,
    /// The same behind TLS, if the node speaks it.
    pub tls: Option<TlsPorts>,
    /// Where it is reached from elsewhere, if somebody has said it.
    pub external: Option<ExternalAddress>,
}

/// Where a node is reached from another network: clients take it when they have come that way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalAddress {
    /// Host name or address.
    pub hostname: String,
    /// The port of each service, by the service's name; none at all where they are the node's own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ports: BTreeMap<String, u16>,
}

/// Where a node is reached by TLS. Clients need both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TlsPorts {
    /// The data port.
    pub data: u16,
    /// The management port.
    pub management: u16,
}

/// Which node holds what of one bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketMap {
    /// The bucket's name.
    pub name: String,
    /// The bucket's identity: another bucket of the same name has another one.
    pub uuid: Uuid,
    /// Whether it keeps its documents in memory alone.
    pub is_ephemeral: bool,
    /// The uid of its manifest of scopes and collections.
    pub manifest_uid: u64,
    /// Copies beside the active one.
    pub replica_count: usize,
    /// For each vBucket the node index of the active copy, then of each replica; `None` where no
    /// node holds that copy.
    pub chains: Vec<Vec<Option<usize>>>,
}

/// A cluster of nodes, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterMap {
    /// The version of this map.
    pub revision: Revision,
    /// The cluster's identity.
    pub uuid: Uuid,
    /// The cluster's name, for people.
    pub name: String,
    /// All nodes. Invariant: at least one.
    pub nodes: Vec<NodeAddress>,
    /// Which of the nodes this one is; `None` when it is no part of the cluster any more.
    pub this_node: Option<usize>,
    /// Where this node is reached, whether or not it is a part of the cluster.
    pub this_address: NodeAddress,
}

impl BucketMap {
    /// All vBuckets active on node 0, no replicas.
    pub fn on_one_node(name: &str, uuid: Uuid, vbucket_count: u16) -> Self {
        assert!(vbucket_count.is_power_of_two(), "clients need a power of two");
        let chains = vec![vec![Some(0)]; usize::from(vbucket_count)];
        Self {
            name: name.to_owned(),
            uuid,
            is_ephemeral: false,
            manifest_uid: 0,
            replica_count: 0,
            chains,
        }
    }

    /// The map of a bucket that keeps its documents in memory alone.
    #[must_use]
    pub fn ephemeral(self) -> Self {
        Self { is_ephemeral: true, ..self }
    }
}
