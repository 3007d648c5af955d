//! Which node owns a document. Source: docs/specification/clients.md, section 5.

use std::collections::BTreeSet;

use document::Vbid;
use serde::Deserialize;

use crate::options::ServerAddress;

/// What a client knows of a bucket's map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    /// Never empty.
    nodes: Vec<ServerAddress>,
    /// For each vBucket the index of its node; `None` where no node is active. Invariant: the
    /// length is a power of two, the indices are below `nodes.len()`.
    owners: Vec<Option<usize>>,
    /// Epoch and revision.
    revision: (i64, i64),
}

/// Which of a node's data ports clients use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// Bytes as they are.
    Plain,
    /// The one behind TLS.
    Encrypted,
}

/// Where a document goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its vBucket.
    pub vbucket: Vbid,
    /// The index of its node in [`Routing::nodes`].
    pub node: usize,
}

impl Routing {
    /// One node that owns everything as vBucket 0: a server without Couchbase's extensions.
    pub fn single(node: ServerAddress) -> Self {
        Self { nodes: vec![node], owners: vec![Some(0)], revision: (0, 0) }
    }

    /// Reads a bucket's configuration as `asked`, the node that was asked, sent it. `None` when it
    /// is none, says nothing about vBuckets, or names no ports of this kind.
    pub fn parse(config: &[u8], asked: &ServerAddress, kind: PortKind) -> Option<Self> {
        let config: Config = serde_json::from_slice(config).ok()?;
        let map = config.server_map?;
        let nodes = match config.nodes_ext {
            Some(nodes) => nodes_of(&nodes, &asked.host, kind)?,
            None if kind == PortKind::Encrypted => return None,
            None => parse_server_list(&map.server_list, &asked.host)?,
        };
        let count = u16::try_from(map.chains.len()).ok()?;
        if nodes.is_empty()
            || !count.is_power_of_two()
            || count > document::limits::VBUCKET_COUNT_MAX
        {
            return None;
        }
        let owner = |chain: &Vec<i64>| {
            usize::try_from(*chain.first()?).ok().filter(|owner| *owner < nodes.len())
        };
        let owners = map.chains.iter().map(owner).collect();
        Some(Self { nodes, owners, revision: (config.epoch, config.revision) })
    }

    /// The nodes.
    pub fn nodes(&self) -> &[ServerAddress] {
        &self.nodes
    }

    /// Whether this map came after `other`.
    pub fn is_newer_than(&self, other: &Self) -> bool {
        self.revision > other.revision
    }

    /// How many vBuckets there are.
    pub fn vbucket_count(&self) -> u16 {
        u16::try_from(self.owners.len()).unwrap_or(1)
    }

    /// The indices of the nodes that own vBuckets, in order.
    pub fn owning_nodes(&self) -> BTreeSet<usize> {
        self.owners.iter().copied().flatten().collect()
    }

    /// The node that owns a vBucket. When nobody does that is node 0, which answers what there is
    /// to say.
    pub fn owner(&self, vbucket: Vbid) -> &ServerAddress {
        let owner = self.owners.get(usize::from(vbucket.0)).copied().flatten().unwrap_or(0);
        self.nodes.get(owner).expect("a map has nodes, and owners are among them")
    }

    /// Where the document of this name goes. When nobody owns its vBucket that is node 0, which
    /// answers what there is to say.
    pub fn route(&self, name: &[u8]) -> Route {
        let vbucket = Vbid::of_name(name, self.vbucket_count());
        let node = self.owners.get(usize::from(vbucket.0)).copied().flatten().unwrap_or(0);
        Route { vbucket, node }
    }
}

#[derive(Deserialize)]
struct Config {
    #[serde(rename = "rev", default)]
    revision: i64,
    #[serde(rename = "revEpoch", default)]
    epoch: i64,
    #[serde(rename = "nodesExt")]
    nodes_ext: Option<Vec<ExtendedNode>>,
    #[serde(rename = "vBucketServerMap")]
    server_map: Option<ServerMap>,
}

#[derive(Deserialize)]
struct ExtendedNode {
    hostname: Option<String>,
    #[serde(default)]
    services: Services,
}

#[derive(Deserialize, Default)]
struct Services {
    kv: Option<u16>,
    #[serde(rename = "kvSSL")]
    kv_encrypted: Option<u16>,
}

#[derive(Deserialize)]
struct ServerMap {
    #[serde(rename = "serverList", default)]
    server_list: Vec<String>,
    #[serde(rename = "vBucketMap")]
    chains: Vec<Vec<i64>>,
}

impl ExtendedNode {
    /// A node without a name is the one that was asked.
    fn address(&self, asked: &str, kind: PortKind) -> Option<ServerAddress> {
        let port = match kind {
            PortKind::Plain => self.services.kv?,
            PortKind::Encrypted => self.services.kv_encrypted?,
        };
        let host = self.hostname.as_deref().unwrap_or("$HOST");
        Some(ServerAddress::new(host.replace("$HOST", asked), port))
    }
}

/// The nodes with data, in the order in which a map numbers them. `None` when one of them has no
/// port of this kind.
fn nodes_of(nodes: &[ExtendedNode], asked: &str, kind: PortKind) -> Option<Vec<ServerAddress>> {
    let has_data =
        |node: &&ExtendedNode| node.services.kv.is_some() || node.services.kv_encrypted.is_some();
    nodes.iter().filter(has_data).map(|node| node.address(asked, kind)).collect()
}

fn parse_server_list(servers: &[String], asked: &str) -> Option<Vec<ServerAddress>> {
    let parse = |server: &String| {
        let (host, port) = server.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Some(ServerAddress::new(host.replace("$HOST", asked), port.parse().ok()?))
    };
    servers.iter().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = r#"{"rev":7,"revEpoch":1,
        "nodesExt":[{"hostname":"a","services":{"kv":1}},{"services":{"mgmt":9}},
                    {"services":{"kv":2,"kvSSL":3}}],
        "vBucketServerMap":{"serverList":["a:1","$HOST:2"],
                            "vBucketMap":[[0,1],[1,0],[-1,0],[5]]}}"#;

    fn asked() -> ServerAddress {
        ServerAddress::new("asked", 9)
    }

    #[test]
    fn a_map_routes_each_document_to_its_node() {
        let routing = Routing::parse(CONFIG.as_bytes(), &asked(), PortKind::Plain).unwrap();
        let expected = [ServerAddress::new("a", 1), ServerAddress::new("asked", 2)];
        assert_eq!(routing.nodes(), expected);
        assert_eq!(routing.vbucket_count(), 4);
        for name in ["hello", "foo", "a", "b", "c", "d", "e"] {
            let vbucket = Vbid::of_name(name.as_bytes(), 4);
            let node = usize::from(vbucket.0 == 1);
            assert_eq!(routing.route(name.as_bytes()), Route { vbucket, node }, "{name}");
            assert_eq!(routing.owner(vbucket), &routing.nodes()[node], "{name}");
        }
        assert!(routing.is_newer_than(&Routing::single(asked())));
    }

    #[test]
    fn the_only_vbucket_may_be_any_nodes() {
        let one = CONFIG.replace("[[0,1],[1,0],[-1,0],[5]]", "[[1,0]]");
        let routing = Routing::parse(one.as_bytes(), &asked(), PortKind::Plain).unwrap();
        assert_eq!(routing.route(b"hello"), Route { vbucket: Vbid(0), node: 1 });
    }

    #[test]
    fn an_older_server_has_only_a_server_list() {
        let config = CONFIG.replace("nodesExt", "other");
        let routing = Routing::parse(config.as_bytes(), &asked(), PortKind::Plain).unwrap();
        assert_eq!(routing.nodes(), [ServerAddress::new("a", 1), ServerAddress::new("asked", 2)]);
    }

    #[test]
    fn what_is_no_map_of_a_bucket_is_refused() {
        let three = CONFIG.replace(",[5]", "");
        let nobody = CONFIG.replace("kv", "index");
        for config in ["", "{}", "[]", r#"{"rev":1,"nodesExt":[]}"#, &three, &nobody] {
            let parsed = Routing::parse(config.as_bytes(), &asked(), PortKind::Plain);
            assert_eq!(parsed, None, "{config}");
        }
    }

    #[test]
    fn behind_tls_nodes_have_other_ports_and_a_map_without_one_is_none() {
        let map = CONFIG.replace("\"kv\":1", "\"kvSSL\":4");
        let routing = Routing::parse(map.as_bytes(), &asked(), PortKind::Encrypted).unwrap();
        assert_eq!(routing.nodes(), [ServerAddress::new("a", 4), ServerAddress::new("asked", 3)]);
        assert_eq!(Routing::parse(CONFIG.as_bytes(), &asked(), PortKind::Encrypted), None);
        let older = CONFIG.replace("nodesExt", "other");
        assert_eq!(Routing::parse(older.as_bytes(), &asked(), PortKind::Encrypted), None);
    }

    #[test]
    fn a_single_node_owns_everything_as_vbucket_zero() {
        let routing = Routing::single(asked());
        assert_eq!(routing.route(b"hello"), Route { vbucket: Vbid(0), node: 0 });
    }
}
