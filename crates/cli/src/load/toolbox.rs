//! What all clients of one worker share.

use std::sync::Arc;
use std::time::Duration;

use client::{ClientError, ConnectionOptions, PortKind, Routing, ServerAddress};
use platform::network::{Registry, Token};
use platform::{Clock, Random};

use super::counters::Counters;
use super::encoder::Encoder;
use super::keys::NameWriter;
use super::link::Link;
use super::values::ValueSource;

/// Nodes that one client may be connected to.
const NODES_MAX: usize = 1024;

/// The tools of a worker.
pub(super) struct Toolbox {
    pub(super) clock: Clock,
    pub(super) random: Random,
    pub(super) names: NameWriter,
    pub(super) values: ValueSource,
    pub(super) encoder: Encoder,
    pub(super) map: NodeMap,
    pub(super) counters: Arc<Counters>,
    /// Percentage of writes.
    pub(super) set_pct: u64,
    pub(super) batch_size: u32,
    /// How long a temporary failure is taken for one.
    pub(super) retry_for: Duration,
    pub(super) registry: Registry,
    pub(super) options: ConnectionOptions,
}

/// The bucket's map, and a number for each node that stays the same when the map changes.
#[derive(Clone, Debug)]
pub(super) struct NodeMap {
    routing: Routing,
    /// Every node that any map named. Only grows.
    nodes: Vec<ServerAddress>,
    /// For each node of the map its index in `nodes`.
    places: Vec<usize>,
    /// A node said that the map is wrong, and did not send a better one.
    pub(super) is_stale: bool,
}

impl Toolbox {
    /// Opens a client's connection to a node. Blocks.
    pub(super) fn open_link(&self, client: usize, node: usize) -> Result<Link, ClientError> {
        let address = self.map.node(node);
        let (link, features) =
            Link::open(address, &self.options, &self.registry, token(client, node))?;
        if features != self.encoder.features() {
            let reason = "it grants other features than the node before".to_owned();
            return Err(ClientError::Nonsense { address: address.to_string(), reason });
        }
        Ok(link)
    }
}

/// Names a connection to the system; see [`client_and_node`].
pub(super) fn token(client: usize, node: usize) -> Token {
    assert!(node < NODES_MAX, "a cluster has fewer than {NODES_MAX} nodes");
    Token(client * NODES_MAX + node)
}

/// The client and the node of a token.
pub(super) fn client_and_node(token: Token) -> (usize, usize) {
    (token.0 / NODES_MAX, token.0 % NODES_MAX)
}

impl NodeMap {
    pub(super) fn new(routing: Routing) -> Self {
        let nodes = routing.nodes().to_vec();
        let places = (0..nodes.len()).collect();
        Self { routing, nodes, places, is_stale: false }
    }

    /// The vBucket of a name, and the number of its node.
    pub(super) fn route(&self, name: &[u8]) -> (u16, usize) {
        let route = self.routing.route(name);
        (route.vbucket.0, self.places.get(route.node).copied().unwrap_or(0))
    }

    /// Takes a map if it is newer; what the number of a node means stays.
    pub(super) fn learn(&mut self, routing: Routing) {
        self.is_stale = false;
        if !routing.is_newer_than(&self.routing) {
            return;
        }
        self.places = routing.nodes().iter().map(|node| place(&mut self.nodes, node)).collect();
        self.routing = routing;
    }

    /// Takes the map out of a NOT_MY_VBUCKET response of node number `from`.
    pub(super) fn learn_from(&mut self, config: &[u8], from: usize) {
        match Routing::parse(config, self.node(from), PortKind::Plain) {
            Some(routing) => self.learn(routing),
            None => self.is_stale = true,
        }
    }

    /// The numbers of the nodes that documents go to.
    pub(super) fn nodes_in_use(&self) -> Vec<usize> {
        let in_use = self.routing.owning_nodes().into_iter();
        in_use.filter_map(|index| self.places.get(index).copied()).collect()
    }

    pub(super) fn node(&self, node: usize) -> &ServerAddress {
        self.nodes.get(node).expect("numbers of nodes are handed out here")
    }
}

fn place(nodes: &mut Vec<ServerAddress>, wanted: &ServerAddress) -> usize {
    nodes.iter().position(|node| node == wanted).unwrap_or_else(|| {
        nodes.push(wanted.clone());
        nodes.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routing(revision: i64, hosts: &[&str]) -> Routing {
        let node = |host| serde_json::json!({"hostname": host, "services": {"kv": 1}});
        let nodes: Vec<_> = hosts.iter().map(node).collect();
        let last = hosts.len() - 1;
        let config = serde_json::json!({
            "rev": revision, "nodesExt": nodes,
            "vBucketServerMap": {"vBucketMap": [[last], [last]]},
        });
        let asked = ServerAddress::new("asked", 1);
        let config = config.to_string();
        Routing::parse(config.as_bytes(), &asked, PortKind::Plain).expect("it is a map")
    }

    #[test]
    fn nodes_keep_their_numbers_when_the_map_changes() {
        let mut map = NodeMap::new(routing(1, &["a", "b"]));
        assert_eq!(map.route(b"x").1, 1);
        map.learn(routing(2, &["b", "c", "a"]));
        assert_eq!((map.route(b"x").1, map.node(2).host.as_str()), (0, "c"));
        map.learn(routing(3, &["d"]));
        assert_eq!((map.route(b"x").1, map.node(3).host.as_str()), (3, "d"));
        map.learn(routing(2, &["a"]));
        assert_eq!(map.route(b"x").1, 3, "an older map is not taken");
        map.learn_from(b"", 0);
        assert!(map.is_stale);
        assert_eq!(client_and_node(token(7, 3)), (7, 3));
    }
}
