//! Plans as JSON documents: the file that a node starts with, and the body of a REST request.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::cluster_map::{NodeAddress, Revision};
use crate::plan::{ClusterPlan, PlannedNode};
use crate::uuid::Uuid;

/// More replicas than this no chain of the protocol has.
const REPLICA_COUNT_MAX: usize = 3;
/// Bytes of a node's name, as streams are named after nodes.
const NAME_BYTES_MAX: usize = 100;

/// What is wrong with a plan, in words for whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPlan(String);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    rev: (i64, i64),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster_uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bucket_uuid: Option<String>,
    nodes: Vec<Node>,
    replicas: usize,
    vbuckets: Vec<Vec<Option<usize>>>,
    /// What a node adds when it shows its plan, which may be handed to others as it is.
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "it is read to be left out")]
    pending: Option<IgnoredAny>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    name: String,
    host: String,
    kv: u16,
    mgmt: u16,
}

impl ClusterPlan {
    /// Reads `{"rev": [epoch, revision], "nodes": [{"name", "host", "kv", "mgmt"}], "replicas": 1,
    /// "vbuckets": [[0, 1], ...]}`, where a chain has node indices, and null for a missing copy.
    pub fn parse(text: &str) -> Result<Self, InvalidPlan> {
        let document: Document = serde_json::from_str(text)
            .map_err(|error| InvalidPlan(format!("the cluster map cannot be read: {error}")))?;
        let (epoch, revision) = document.rev;
        let node = |node: Node| PlannedNode {
            name: node.name,
            address: NodeAddress {
                host: node.host,
                data_port: node.kv,
                management_port: node.mgmt,
            },
        };
        let plan = Self {
            revision: Revision { epoch, revision },
            cluster_uuid: parse_uuid("cluster_uuid", document.cluster_uuid)?,
            bucket_uuid: parse_uuid("bucket_uuid", document.bucket_uuid)?,
            nodes: document.nodes.into_iter().map(node).collect(),
            replica_count: document.replicas,
            chains: document.vbuckets,
        };
        plan.check()?;
        Ok(plan)
    }

    /// The plan as [`ClusterPlan::parse`] reads it.
    pub fn to_json(&self) -> String {
        let node = |node: &PlannedNode| Node {
            name: node.name.clone(),
            host: node.address.host.clone(),
            kv: node.address.data_port,
            mgmt: node.address.management_port,
        };
        let document = Document {
            rev: (self.revision.epoch, self.revision.revision),
            cluster_uuid: self.cluster_uuid.map(|uuid| uuid.to_string()),
            bucket_uuid: self.bucket_uuid.map(|uuid| uuid.to_string()),
            nodes: self.nodes.iter().map(node).collect(),
            replicas: self.replica_count,
            vbuckets: self.chains.clone(),
            pending: None,
        };
        serde_json::to_string(&document).expect("a plan is JSON")
    }

    /// Whether the plan can be carried out.
    pub(crate) fn check(&self) -> Result<(), InvalidPlan> {
        let Revision { epoch, revision } = self.revision;
        if epoch < 1 || revision < 1 {
            return Err(InvalidPlan(format!("rev [{epoch}, {revision}]: both begin with 1")));
        }
        self.check_nodes()?;
        if self.replica_count > REPLICA_COUNT_MAX {
            let count = self.replica_count;
            return Err(InvalidPlan(format!("replicas {count}: at most {REPLICA_COUNT_MAX}")));
        }
        let count = self.chains.len();
        let count_max = usize::from(document::limits::VBUCKET_COUNT_MAX);
        if !count.is_power_of_two() || count > count_max {
            let message = format!("vbuckets: {count} chains; clients need a power of two");
            return Err(InvalidPlan(message));
        }
        let mut chains = self.chains.iter().enumerate();
        chains.try_for_each(|(vbid, chain)| self.check_chain(vbid, chain))
    }

    fn check_nodes(&self) -> Result<(), InvalidPlan> {
        if self.nodes.is_empty() {
            return Err(InvalidPlan("nodes: there is none".to_owned()));
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let PlannedNode { name, address } = node;
            let is_name = |text: &str| {
                (1..=NAME_BYTES_MAX).contains(&text.len())
                    && text.bytes().all(|b| b.is_ascii_graphic())
            };
            if !is_name(name) || !is_name(&address.host) {
                return Err(InvalidPlan(format!(
                    "nodes[{index}]: name and host have 1 to {NAME_BYTES_MAX} visible characters"
                )));
            }
            for other in &self.nodes[..index] {
                let (host, port) = (&address.host, address.data_port);
                if other.name == *name {
                    return Err(InvalidPlan(format!("nodes: two are called `{name}`")));
                }
                if other.address.host == *host && other.address.data_port == port {
                    return Err(InvalidPlan(format!("nodes: two have the address {host}:{port}")));
                }
            }
        }
        Ok(())
    }

    fn check_chain(&self, vbid: usize, chain: &[Option<usize>]) -> Result<(), InvalidPlan> {
        let length = self.replica_count + 1;
        if chain.len() != length {
            let message = format!(
                "vbuckets[{vbid}]: {} entries; the active node and {} replicas make {length}, \
                 with null for a missing one",
                chain.len(),
                self.replica_count
            );
            return Err(InvalidPlan(message));
        }
        for (place, node) in chain.iter().enumerate() {
            let Some(node) = node else { continue };
            if *node >= self.nodes.len() {
                return Err(InvalidPlan(format!("vbuckets[{vbid}]: there is no node {node}")));
            }
            if chain[..place].contains(&Some(*node)) {
                let message = format!("vbuckets[{vbid}]: node {node} holds two copies");
                return Err(InvalidPlan(message));
            }
        }
        Ok(())
    }
}

fn parse_uuid(name: &str, text: Option<String>) -> Result<Option<Uuid>, InvalidPlan> {
    let Some(text) = text else { return Ok(None) };
    let uuid = Uuid::parse(&text);
    uuid.map(Some).ok_or_else(|| InvalidPlan(format!("{name}: 32 hexadecimal digits")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::nodes;

    #[test]
    fn a_plan_survives_writing_and_reading() {
        let mut plan = ClusterPlan::balanced(nodes(3), 2, 16);
        assert_eq!(ClusterPlan::parse(&plan.to_json()), Ok(plan.clone()));
        plan.cluster_uuid = Some(Uuid::random());
        plan.bucket_uuid = Some(Uuid::random());
        plan.revision = Revision { epoch: 2, revision: 7 };
        plan.chains[3] = vec![None, None, Some(1)];
        assert_eq!(ClusterPlan::parse(&plan.to_json()), Ok(plan));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let good = r#"{"rev":[1,1],"nodes":[{"name":"a","host":"h","kv":1,"mgmt":2},
            {"name":"b","host":"h","kv":3,"mgmt":4}],"replicas":1,"vbuckets":[[0,1],[1,null]]}"#;
        assert!(ClusterPlan::parse(good).is_ok());
        for (from, to, advice) in [
            ("[1,1]", "[1,0]", "begin with 1"),
            ("\"rev\":[1,1],", "", "missing field `rev`"),
            ("\"rev\"", "\"x\":1,\"rev\"", "unknown field `x`"),
            ("\"b\"", "\"a\"", "two are called `a`"),
            ("\"b\"", "\"\"", "visible characters"),
            ("\"kv\":3", "\"kv\":1", "two have the address h:1"),
            ("\"replicas\":1", "\"replicas\":4", "at most 3"),
            ("[1,null]", "[1]", "vbuckets[1]: 1 entries"),
            ("[1,null]", "[1,2]", "vbuckets[1]: there is no node 2"),
            ("[1,null]", "[1,1]", "node 1 holds two copies"),
            ("[1,null]]", "[1,null],[1,0]]", "power of two"),
        ] {
            let text = good.replacen(from, to, 1);
            let InvalidPlan(message) = ClusterPlan::parse(&text).unwrap_err();
            assert!(message.contains(advice), "{message}");
        }
    }
}
