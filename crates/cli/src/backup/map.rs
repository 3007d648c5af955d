//! The map of a bucket, as the tool reads it over REST: which node has which vBucket active.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use anyhow::{Context, ensure};
use document::limits::VBUCKET_COUNT_MAX;
use document::uri::escaped;
use serde::Deserialize;
use serde_json::Value;

use crate::node_port::NodePort;

/// Which version of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Revision {
    #[serde(rename = "revEpoch")]
    epoch: i64,
    #[serde(rename = "rev")]
    revision: i64,
}

/// Where a bucket's vBuckets are active.
#[derive(Clone, Debug)]
pub(super) struct BucketMap {
    pub(super) revision: Revision,
    /// The URL of each node's REST port; `None` of one that tells none of the kind that is wanted.
    nodes: Vec<Option<String>>,
    /// For each vBucket the node on which it is active, if one is.
    owners: Vec<Option<usize>>,
}

#[derive(Deserialize)]
struct Config {
    #[serde(flatten)]
    revision: Revision,
    #[serde(rename = "nodesExt")]
    nodes: Vec<Node>,
    #[serde(rename = "vBucketServerMap")]
    server_map: ServerMap,
}

#[derive(Deserialize)]
struct Node {
    hostname: Option<String>,
    services: Services,
    #[serde(rename = "thisNode", default)]
    is_this: bool,
}

#[derive(Deserialize)]
struct Services {
    mgmt: Option<u16>,
    #[serde(rename = "mgmtSSL")]
    mgmt_encrypted: Option<u16>,
}

#[derive(Deserialize)]
struct ServerMap {
    #[serde(rename = "vBucketMap")]
    chains: Vec<Vec<i64>>,
}

impl BucketMap {
    /// The map that a node has; one that hangs is not waited for any longer than `patience`.
    pub(super) fn ask(port: &NodePort, bucket: &str, patience: Duration) -> anyhow::Result<Self> {
        let config = port.get_soon(&format!("/pools/default/b/{}", escaped(bucket)), patience)?;
        let map = Self::of(config, &port.url);
        map.with_context(|| format!("{} gives no backups; is it a settee node?", port.url))
    }

    /// Reads a configuration as the node at `asked` sent it.
    fn of(config: Value, asked: &str) -> anyhow::Result<Self> {
        let Config { revision, nodes, server_map } = serde_json::from_value(config)?;
        let count = server_map.chains.len();
        ensure!(count.is_power_of_two() && count <= usize::from(VBUCKET_COUNT_MAX), "no vBuckets");
        let owner = |chain: &Vec<i64>| {
            let first = chain.first().copied().and_then(|first| usize::try_from(first).ok());
            first.filter(|owner| *owner < nodes.len())
        };
        let owners = server_map.chains.iter().map(owner).collect();
        let nodes = nodes.iter().map(|node| node.url(asked)).collect();
        Ok(Self { revision, nodes, owners })
    }

    pub(super) fn vbucket_count(&self) -> usize {
        self.owners.len()
    }

    pub(super) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The URL of a node.
    pub(super) fn url(&self, node: usize) -> anyhow::Result<&str> {
        let url = self.nodes.get(node).and_then(Option::as_deref);
        url.with_context(|| {
            format!("the map tells no REST port of node {node}, or none behind TLS as it was asked")
        })
    }

    /// The node on which a vBucket is active.
    pub(super) fn owner(&self, vbid: usize) -> Option<usize> {
        self.owners.get(vbid).copied().flatten()
    }

    /// The nodes on which vBuckets are active, in order.
    pub(super) fn owning_nodes(&self) -> BTreeSet<usize> {
        self.owners.iter().copied().flatten().collect()
    }
}

impl Node {
    /// The node that was asked is reached as it was, whatever it says of itself.
    fn url(&self, asked: &str) -> Option<String> {
        if self.is_this {
            return Some(asked.to_owned());
        }
        let (scheme, rest) = asked.split_once("://")?;
        let Services { mgmt, mgmt_encrypted } = self.services;
        let port = if scheme == "https" { mgmt_encrypted } else { mgmt }?;
        let host = match self.hostname.as_deref() {
            // As clients take a node that says nothing of its host.
            None | Some("$HOST") => host_of(rest).to_owned(),
            Some(host) if host.contains(':') => format!("[{host}]"),
            Some(host) => host.to_owned(),
        };
        Some(format!("{scheme}://{host}:{port}"))
    }
}

/// The host of `host:port/path`, with the brackets of an address of IPv6.
fn host_of(rest: &str) -> &str {
    let place = rest.split('/').next().unwrap_or_default();
    match place.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => host,
        _ => place,
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.epoch, self.revision)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(in super::super) fn revision(revision: i64) -> Revision {
        Revision { epoch: 1, revision }
    }

    /// Of two nodes, of which the first was asked.
    pub(in super::super) fn map(chains: &[&[i64]], asked: &str) -> BucketMap {
        let config = json!({
            "rev": 7, "revEpoch": 1,
            "nodesExt": [
                {"hostname": "a", "services": {"kv": 1, "mgmt": 2}, "thisNode": true},
                {"hostname": "b", "services": {"kv": 3, "mgmt": 4, "mgmtSSL": 5}},
            ],
            "vBucketServerMap": {"vBucketMap": chains},
        });
        BucketMap::of(config, asked).unwrap()
    }

    #[test]
    fn a_map_says_where_vbuckets_are_and_nodes_are_reached_as_the_first_one_is() {
        let chains: &[&[i64]] = &[&[0, 1], &[1, 0], &[-1, 0], &[5]];
        let plain = map(chains, "http://127.0.0.1:99");
        assert_eq!((plain.vbucket_count(), plain.node_count()), (4, 2));
        assert_eq!(
            [0, 1, 2, 3, 4].map(|vbid| plain.owner(vbid)),
            [Some(0), Some(1), None, None, None]
        );
        assert_eq!(plain.owning_nodes(), BTreeSet::from([0, 1]));
        assert_eq!(
            (plain.url(0).unwrap(), plain.url(1).unwrap()),
            ("http://127.0.0.1:99", "http://b:4")
        );
        assert_eq!(map(chains, "https://x").url(1).unwrap(), "https://b:5");
        assert_eq!(plain.revision.to_string(), "1.7");
    }

    #[test]
    fn a_node_without_a_name_is_at_the_host_that_was_asked() {
        let services = || Services { mgmt: Some(4), mgmt_encrypted: None };
        let node = |hostname: Option<&str>| Node {
            hostname: hostname.map(str::to_owned),
            services: services(),
            is_this: false,
        };
        for (hostname, asked, url) in [
            (None, "http://h:1", Some("http://h:4")),
            (Some("$HOST"), "http://[::1]:1/", Some("http://[::1]:4")),
            (Some("$HOST"), "http://[::1]", Some("http://[::1]:4")),
            (Some("::2"), "http://h:1", Some("http://[::2]:4")),
            (Some("c"), "https://h:1", None),
        ] {
            assert_eq!(node(hostname).url(asked).as_deref(), url, "{hostname:?} {asked}");
        }
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for config in [
            json!(null),
            json!({}),
            json!({"rev": 1, "revEpoch": 1, "nodesExt": [], "vBucketServerMap": {}}),
            json!({
                "rev": 1, "revEpoch": 1, "nodesExt": [], "vBucketServerMap": {"vBucketMap": []}
            }),
        ] {
            assert!(BucketMap::of(config.clone(), "http://h").is_err(), "{config}");
        }
    }
}
