//! A client of a bucket: each request goes to the node that owns its document.

use document::{CollectionId, Vbid};
use protocol::client::Request;
use protocol::{Feature, FeatureSet, Opcode, Status};

use crate::connection::Connection;
use crate::error::ClientError;
use crate::options::{ConnectionOptions, ServerAddress};
use crate::response::OwnedResponse;
use crate::routing::Routing;

/// How often a request follows a document that moves before the answer is what it is.
const MOVES_MAX: u32 = 10;

/// Connections to the nodes of one bucket, opened when they are first needed.
#[derive(Debug)]
pub struct ClusterClient {
    options: ConnectionOptions,
    /// What the first node granted.
    features: FeatureSet,
    routing: Routing,
    /// By address, because a new map may number the nodes anew.
    connections: Vec<(ServerAddress, Connection)>,
}

impl ClusterClient {
    /// Connects to one node and asks it about the others. A server that knows no map is used as
    /// the only node.
    pub fn connect(node: &ServerAddress, options: ConnectionOptions) -> Result<Self, ClientError> {
        let mut connection = Connection::open(node, &options)?;
        let routing = fetch_routing(&mut connection, node)?;
        let routing = routing.unwrap_or_else(|| Routing::single(node.clone()));
        let features = connection.features();
        let connections = vec![(node.clone(), connection)];
        Ok(Self { options, features, routing, connections })
    }

    /// What the first node granted; the others are asked for the same.
    pub fn features(&self) -> FeatureSet {
        self.features
    }

    /// The map.
    pub fn routing(&self) -> &Routing {
        &self.routing
    }

    /// Sends a request about the document `name` of the default collection to its node and follows
    /// the document when it has moved. Key and vBucket of `request` are filled in.
    pub fn call(
        &mut self,
        name: &[u8],
        request: &Request<'_>,
    ) -> Result<OwnedResponse, ClientError> {
        self.call_in(CollectionId::DEFAULT, name, request)
    }

    /// The same about a document of any collection.
    pub fn call_in(
        &mut self,
        collection: CollectionId,
        name: &[u8],
        request: &Request<'_>,
    ) -> Result<OwnedResponse, ClientError> {
        let mut moves = 0;
        loop {
            let route = self.routing.route(name);
            let node = self.routing.nodes().get(route.node).cloned();
            let node = node.expect("a route leads to a node of the map");
            let request = Request { vbucket: route.vbucket.0, ..*request };
            let response = self.call_at(&node, collection, name, &request)?;
            if response.status() != Some(Status::NotMyVbucket) || moves == MOVES_MAX {
                return Ok(response);
            }
            moves += 1;
            self.refresh(&node, response.value())?;
        }
    }

    /// The connection to the node that owns a vBucket, for requests that are about no document.
    /// Callers that leave an answer unread open another client.
    pub fn connection_of(&mut self, vbucket: Vbid) -> Result<&mut Connection, ClientError> {
        let node = self.routing.owner(vbucket).clone();
        self.connection(&node)
    }

    /// The id of a collection, by its scope and name with a point between them.
    pub fn collection_id(&mut self, path: &str) -> Result<CollectionId, ClientError> {
        // Every node knows it: one that is connected already answers, whoever else hangs.
        let node = match self.connections.first() {
            Some((node, _)) => node.clone(),
            None => self.routing.owner(Vbid(0)).clone(),
        };
        let connection = self.connection(&node)?;
        let opcode = Opcode::CollectionsGetCollectionId;
        let answer =
            connection.call(&Request { value: path.as_bytes(), ..Request::new(opcode) })?;
        match answer.view().manifest_and_id() {
            Some((_, id)) if answer.is_success() => Ok(CollectionId(id)),
            _ if answer.is_success() => Err(connection.nonsense("a collection has an id")),
            _ => Err(connection.refused("COLLECTIONS_GET_COLLECTION_ID", &answer)),
        }
    }

    fn call_at(
        &mut self,
        node: &ServerAddress,
        collection: CollectionId,
        name: &[u8],
        request: &Request<'_>,
    ) -> Result<OwnedResponse, ClientError> {
        let connection = self.connection(node)?;
        let mut key = Vec::new();
        connection.encode_name(collection, name, &mut key);
        let answer = connection.call(&Request { key: &key, ..*request });
        if answer.is_err() {
            // A connection that has failed is of no further use: the next request opens another.
            self.connections.retain(|(address, _)| address != node);
        }
        answer
    }

    /// Takes the map out of a NOT_MY_VBUCKET response, or asks the node for it.
    fn refresh(&mut self, node: &ServerAddress, config: &[u8]) -> Result<(), ClientError> {
        let kind = self.connection(node)?.port_kind();
        let routing = match Routing::parse(config, node, kind) {
            Some(routing) => Some(routing),
            None => fetch_routing(self.connection(node)?, node)?,
        };
        if let Some(routing) = routing
            // A node that is behind tells an older map, which is not gone back to.
            && routing.is_newer_than(&self.routing)
        {
            self.connections.retain(|(address, _)| routing.nodes().contains(address));
            self.routing = routing;
        }
        Ok(())
    }

    fn connection(&mut self, node: &ServerAddress) -> Result<&mut Connection, ClientError> {
        let found = self.connections.iter().position(|(address, _)| address == node);
        let index = match found {
            Some(index) => index,
            None => {
                let connection = Connection::open(node, &self.options)?;
                self.connections.push((node.clone(), connection));
                self.connections.len() - 1
            }
        };
        let (_, connection) = self.connections.get_mut(index).expect("the index was just found");
        Ok(connection)
    }
}

/// Asks for the bucket's map. `None` when the server has none to give.
pub fn fetch_routing(
    connection: &mut Connection,
    node: &ServerAddress,
) -> Result<Option<Routing>, ClientError> {
    if !connection.features().contains(Feature::SelectBucket) {
        return Ok(None);
    }
    let response = connection.call(&Request::new(Opcode::GetClusterConfig))?;
    let kind = connection.port_kind();
    let parse = || Routing::parse(response.value(), node, kind);
    Ok(if response.is_success() { parse() } else { None })
}
