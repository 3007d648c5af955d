//! The maps as JSON documents, in the one form that all SDKs accept. Source:
//! docs/specification/clients.md, section 5.

use document::uri::escaped;
use serde_json::{Value, json};

use crate::cluster_map::{BucketMap, ClusterMap, NodeAddress};

/// What a bucket of this server can do, in the words that clients look for. A capability is listed
/// when it works, not before: clients take it as a promise.
const BUCKET_CAPABILITIES: [&str; 14] = [
    "collections",
    "durableWrite",
    "tombstonedUserXAttrs",
    "touch",
    "cbhello",
    "cccp",
    "dcp",
    "nodesExt",
    "xattr",
    "preserveExpiry",
    "subdoc.ReplaceBodyWithXattr",
    "subdoc.DocumentMacroSupport",
    "subdoc.ReviveDocument",
    "subdoc.ReplicaRead",
];
/// What a bucket with a disk has beside them. Clients that miss `couchapi` take the bucket for an
/// ephemeral one, and do not wait for documents to be on disk.
const DISK_CAPABILITIES: [&str; 2] = ["couchapi", "rangeScan"];

/// The group that all nodes are in. There are clients that read copies of a group alone.
pub const SERVER_GROUP: &str = "Group 1";

impl ClusterMap {
    /// The global configuration: what a client may know that has not selected a bucket.
    pub fn global_config(&self) -> String {
        Value::Object(self.common_fields()).to_string()
    }

    /// The terse configuration of `bucket`: how to route its documents.
    pub fn bucket_config(&self, bucket: &BucketMap) -> String {
        match self.with_an_active_node_last(bucket) {
            Some((map, bucket)) => map.config_in_order(&bucket),
            None => self.config_in_order(bucket),
        }
    }

    /// The same in an order of nodes in which the last one has something active in the bucket;
    /// `None` if that is so already, or no node has. There are clients that take nodes behind the
    /// last active one for none of the bucket's (docs/specification/clients.md, section 5.1).
    fn with_an_active_node_last(&self, bucket: &BucketMap) -> Option<(Self, BucketMap)> {
        let active = bucket.chains.iter().filter_map(|chain| *chain.first()?).max()?;
        let last = self.nodes.len().checked_sub(1).filter(|&last| active < last)?;
        let (mut map, mut bucket) = (self.clone(), bucket.clone());
        map.nodes.swap(active, last);
        let holders = bucket.chains.iter_mut().flatten().flatten();
        for index in holders.chain(&mut map.this_node) {
            *index = match *index {
                index if index == active => last,
                index if index == last => active,
                index => index,
            };
        }
        Some((map, bucket))
    }

    /// The configuration with the nodes as they come.
    fn config_in_order(&self, bucket: &BucketMap) -> String {
        let mut fields = self.common_fields();
        let Value::Object(bucket_fields) = self.bucket_fields(bucket) else {
            unreachable!("bucket_fields is an object");
        };
        fields.extend(bucket_fields);
        Value::Object(fields).to_string()
    }

    fn common_fields(&self) -> serde_json::Map<String, Value> {
        let nodes: Vec<Value> = self
            .nodes
            .iter()
            .enumerate()
            .map(|(index, node)| extended_node(node, self.this_node == Some(index)))
            .collect();
        let fields = json!({
            "rev": self.revision.revision,
            "revEpoch": self.revision.epoch,
            "nodesExt": nodes,
            "clusterCapabilitiesVer": [1, 0],
            "clusterCapabilities": {"n1ql": []},
            "clusterUUID": self.uuid.to_string(),
            "clusterName": self.name,
        });
        match fields {
            Value::Object(fields) => fields,
            _ => unreachable!("the fields are an object"),
        }
    }

    fn bucket_fields(&self, bucket: &BucketMap) -> Value {
        let BucketMap { name, uuid, is_ephemeral, manifest_uid, replica_count, chains } = bucket;
        let disk = (!is_ephemeral).then_some(DISK_CAPABILITIES).into_iter().flatten();
        let capabilities: Vec<&str> = BUCKET_CAPABILITIES.into_iter().chain(disk).collect();
        let servers: Vec<String> = self.nodes.iter().map(|node| node.at(node.data_port)).collect();
        let nodes: Vec<Value> = self
            .nodes
            .iter()
            .map(|node| {
                json!({
                    "hostname": node.at(node.management_port),
                    "ports": node.ports_json(),
                })
            })
            .collect();
        let path = escaped(name);
        let map: Vec<Vec<i64>> = chains.iter().map(|chain| chain_numbers(chain)).collect();
        json!({
            "name": name,
            "uuid": uuid.to_string(),
            "nodeLocator": "vbucket",
            "uri": format!("/pools/default/buckets/{path}?bucket_uuid={uuid}"),
            "streamingUri": format!("/pools/default/bucketsStreaming/{path}?bucket_uuid={uuid}"),
            "bucketCapabilitiesVer": "",
            "bucketCapabilities": capabilities,
            "collectionsManifestUid": format!("{manifest_uid:x}"),
            "ddocs": {"uri": format!("/pools/default/buckets/{path}/ddocs")},
            "nodes": nodes,
            "vBucketServerMap": {
                "hashAlgorithm": "CRC",
                "numReplicas": replica_count,
                "serverList": servers,
                "vBucketMap": map,
            },
        })
    }
}

impl NodeAddress {
    /// Its host and one of its ports, as in a URL (RFC 3986, section 3.2.2).
    pub fn at(&self, port: u16) -> String {
        host_and_port(&self.host, port)
    }

    /// The ports that a node's host name does not say, as the cluster manager lists them.
    pub fn ports_json(&self) -> Value {
        let mut ports = json!({"direct": self.data_port});
        if let Some(tls) = self.tls {
            ports["httpsMgmt"] = tls.management.into();
        }
        ports
    }
}

/// `host:port`, an IPv6 address in brackets.
pub fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn extended_node(node: &NodeAddress, is_this: bool) -> Value {
    let mut fields = json!({
        "hostname": node.host,
        "services": {"kv": node.data_port, "mgmt": node.management_port},
        "serverGroup": SERVER_GROUP,
    });
    if let Some(tls) = node.tls {
        fields["services"]["kvSSL"] = tls.data.into();
        fields["services"]["mgmtSSL"] = tls.management.into();
    }
    if let Some(external) = &node.external {
        fields["alternateAddresses"] = json!({"external": external});
    }
    if is_this {
        fields["thisNode"] = Value::Bool(true);
    }
    fields
}

/// The chain as clients read it: -1 where no node holds the copy.
fn chain_numbers(chain: &[Option<usize>]) -> Vec<i64> {
    let number =
        |node: &Option<usize>| node.and_then(|node| i64::try_from(node).ok()).unwrap_or(-1);
    chain.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::cluster_map::{ExternalAddress, Revision};
    use crate::uuid::Uuid;

    fn address(data_port: u16) -> NodeAddress {
        NodeAddress {
            host: "127.0.0.1".to_owned(),
            data_port,
            management_port: data_port + 1,
            tls: None,
            external: None,
        }
    }

    fn map() -> ClusterMap {
        ClusterMap {
            revision: Revision { epoch: 1, revision: 5 },
            uuid: Uuid::random(&platform::Entropy::real()),
            name: "test".to_owned(),
            nodes: vec![address(11210)],
            this_node: Some(0),
            this_address: address(11210),
        }
    }

    #[test]
    fn a_host_is_written_as_in_a_url() {
        let node = NodeAddress { host: "::1".to_owned(), ..address(11210) };
        assert_eq!(node.at(8091), "[::1]:8091");
        assert_eq!(address(11210).at(8091), "127.0.0.1:8091");
    }

    #[test]
    fn a_bucket_config_has_every_field_that_some_client_needs() {
        let bucket =
            BucketMap::on_one_node("default", Uuid::random(&platform::Entropy::real()), 16);
        let config: Value = serde_json::from_str(&map().bucket_config(&bucket)).unwrap();
        for pointer in [
            "/rev",
            "/revEpoch",
            "/name",
            "/uuid",
            "/nodeLocator",
            "/nodes/0/hostname",
            "/nodes/0/ports/direct",
            "/nodesExt/0/hostname",
            "/nodesExt/0/thisNode",
            "/nodesExt/0/services/kv",
            "/nodesExt/0/services/mgmt",
            "/vBucketServerMap/hashAlgorithm",
            "/vBucketServerMap/numReplicas",
            "/vBucketServerMap/serverList/0",
            "/vBucketServerMap/vBucketMap/15/0",
            "/bucketCapabilities/0",
            "/clusterCapabilities",
            "/clusterCapabilitiesVer/1",
        ] {
            assert!(config.pointer(pointer).is_some(), "{pointer}");
        }
    }

    #[test]
    fn only_a_bucket_with_a_disk_promises_what_needs_one() {
        let bucket =
            BucketMap::on_one_node("default", Uuid::random(&platform::Entropy::real()), 16);
        for (bucket, has_disk) in [(bucket.clone(), true), (bucket.ephemeral(), false)] {
            let config: Value = serde_json::from_str(&map().bucket_config(&bucket)).unwrap();
            let capabilities = config["bucketCapabilities"].as_array().unwrap();
            for capability in DISK_CAPABILITIES {
                assert_eq!(capabilities.contains(&json!(capability)), has_disk, "{capability}");
            }
            assert!(capabilities.contains(&json!("collections")));
        }
    }

    #[test]
    fn a_node_that_speaks_tls_says_both_ports_behind_it() {
        let tls = Some(crate::cluster_map::TlsPorts { data: 11207, management: 18091 });
        let map = ClusterMap { nodes: vec![NodeAddress { tls, ..address(11210) }], ..map() };
        let config: Value = serde_json::from_str(&map.global_config()).unwrap();
        let services = &config["nodesExt"][0]["services"];
        let expected = json!({"kv": 11210, "mgmt": 11211, "kvSSL": 11207, "mgmtSSL": 18091});
        assert_eq!(*services, expected);
    }

    #[test]
    fn a_node_that_is_reached_from_elsewhere_says_where() {
        let ports = [("kv".to_owned(), 31210), ("mgmt".to_owned(), 31091)];
        for (ports, expected) in [
            (ports.into(), json!({"hostname": "outside", "ports": {"kv": 31210, "mgmt": 31091}})),
            (BTreeMap::new(), json!({"hostname": "outside"})),
        ] {
            let external = Some(ExternalAddress { hostname: "outside".to_owned(), ports });
            let nodes = vec![NodeAddress { external, ..address(11210) }];
            let map = ClusterMap { nodes, ..map() };
            let config: Value = serde_json::from_str(&map.global_config()).unwrap();
            assert_eq!(config["nodesExt"][0]["alternateAddresses"]["external"], expected);
        }
    }

    #[test]
    fn a_global_config_names_no_bucket() {
        let config: Value = serde_json::from_str(&map().global_config()).unwrap();
        for field in ["name", "uuid", "nodeLocator", "vBucketServerMap"] {
            assert!(config.get(field).is_none(), "{field}");
        }
        assert_eq!(config["nodesExt"][0]["services"]["kv"], 11210);
    }

    #[test]
    fn the_config_of_two_nodes_is_this_document() {
        let uuid = Uuid::parse("0123456789abcdef0123456789abcdef").unwrap();
        let map = ClusterMap {
            uuid,
            nodes: vec![address(12000), address(12002)],
            this_node: Some(1),
            this_address: address(12002),
            ..map()
        };
        let bucket = BucketMap {
            manifest_uid: 0x1a,
            replica_count: 1,
            chains: vec![vec![Some(0), Some(1)], vec![Some(1), None]],
            ..BucketMap::on_one_node("default", uuid, 2)
        };
        let config: Value = serde_json::from_str(&map.bucket_config(&bucket)).unwrap();
        let golden = json!({
            "rev": 5,
            "revEpoch": 1,
            "name": "default",
            "uuid": "0123456789abcdef0123456789abcdef",
            "nodeLocator": "vbucket",
            "uri": "/pools/default/buckets/default?bucket_uuid=0123456789abcdef0123456789abcdef",
            "streamingUri": "/pools/default/bucketsStreaming/default?bucket_uuid=\
                             0123456789abcdef0123456789abcdef",
            "bucketCapabilitiesVer": "",
            "bucketCapabilities": config["bucketCapabilities"],
            "collectionsManifestUid": "1a",
            "ddocs": {"uri": "/pools/default/buckets/default/ddocs"},
            "nodes": [
                {"hostname": "127.0.0.1:12001", "ports": {"direct": 12000}},
                {"hostname": "127.0.0.1:12003", "ports": {"direct": 12002}},
            ],
            "nodesExt": [
                {"hostname": "127.0.0.1", "services": {"kv": 12000, "mgmt": 12001},
                 "serverGroup": "Group 1"},
                {"hostname": "127.0.0.1", "services": {"kv": 12002, "mgmt": 12003},
                 "serverGroup": "Group 1", "thisNode": true},
            ],
            "vBucketServerMap": {
                "hashAlgorithm": "CRC",
                "numReplicas": 1,
                "serverList": ["127.0.0.1:12000", "127.0.0.1:12002"],
                "vBucketMap": [[0, 1], [1, -1]],
            },
            "clusterCapabilitiesVer": [1, 0],
            "clusterCapabilities": {"n1ql": []},
            "clusterUUID": "0123456789abcdef0123456789abcdef",
            "clusterName": "test",
        });
        assert_eq!(config, golden);
        let outside = ClusterMap { this_node: None, ..map };
        assert!(!outside.bucket_config(&bucket).contains("thisNode"));
    }

    /// Servers, this one among them, and chains: what a client makes of a bucket's map.
    fn told(map: &ClusterMap, chains: &[&[Option<usize>]]) -> (Vec<u64>, Option<usize>, Value) {
        let chains = chains.iter().map(|chain| chain.to_vec()).collect();
        let bucket = BucketMap {
            chains,
            ..BucketMap::on_one_node("default", Uuid::random(&platform::Entropy::real()), 1)
        };
        let config: Value = serde_json::from_str(&map.bucket_config(&bucket)).unwrap();
        let nodes = config["nodesExt"].as_array().unwrap();
        let ports: Vec<_> =
            nodes.iter().map(|node| node["services"]["kv"].as_u64().unwrap()).collect();
        let servers: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        assert_eq!(config["vBucketServerMap"]["serverList"], json!(servers));
        for (port, node) in ports.iter().zip(config["nodes"].as_array().unwrap()) {
            assert_eq!(node["ports"]["direct"], *port);
        }
        let this = nodes.iter().position(|node| node.get("thisNode").is_some());
        (ports, this, config["vBucketServerMap"]["vBucketMap"].clone())
    }

    #[test]
    fn the_last_node_of_a_buckets_map_has_something_active() {
        let nodes = [1, 2, 3].map(address).to_vec();
        let map = ClusterMap { nodes, this_node: Some(1), ..map() };
        let (zero, one, two) = (Some(0), Some(1), Some(2));
        // As behind a node that has come back.
        let chains = told(&map, &[&[zero, two], &[one, two], &[zero, one], &[None, one]]);
        let expected = json!([[0, 1], [2, 1], [0, 2], [-1, 2]]);
        assert_eq!(chains, (vec![1, 3, 2], Some(2), expected));
        // The node of the map's end is another one.
        let told_to_last = ClusterMap { this_node: two, ..map.clone() };
        let chains = told(&told_to_last, &[&[zero, two], &[zero, one]]);
        assert_eq!(chains, (vec![3, 2, 1], zero, json!([[2, 0], [2, 1]])));
        // Nothing is to be changed.
        let chains = told(&map, &[&[zero, one], &[two, zero]]);
        assert_eq!(chains, (vec![1, 2, 3], one, json!([[0, 1], [2, 0]])));
        let chains = told(&map, &[&[None, one], &[None, None]]);
        assert_eq!(chains, (vec![1, 2, 3], one, json!([[-1, 1], [-1, -1]])));
    }

    #[test]
    fn a_missing_copy_is_minus_one() {
        assert_eq!(chain_numbers(&[Some(2), None]), [2, -1]);
    }
}
