//! Other nodes, asked over their data ports.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bucket::manifest_json;
use client::{Connection, ConnectionOptions, Login};
use cluster::NodeAddress;
use node::{COPIES_GROUP, Copies, PeerLogin, Peers, UsersOffer, copies_of};
use protocol::Opcode;
use protocol::client::Request;
use ureq::Agent;

/// The nodes that the network leads to.
pub(crate) struct RealPeers {
    /// How long an answer may take.
    pub(crate) patience: Duration,
}

impl Peers for RealPeers {
    fn copies(&self, node: &NodeAddress, login: &PeerLogin) -> anyhow::Result<Copies> {
        Ok(copies_of(&self.statistics(node, login, COPIES_GROUP)?))
    }

    fn exchange_manifest(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
        ours: &str,
    ) -> anyhow::Result<String> {
        let mut connection = self.connect(node, login)?;
        let theirs = connection.call(&Request::new(Opcode::CollectionsGetManifest))?;
        let theirs = String::from_utf8(theirs.value().to_vec())?;
        if uid_of(&theirs)? < uid_of(ours)? {
            let opcode = Opcode::CollectionsSetManifest;
            let set = Request { value: ours.as_bytes(), ..Request::new(opcode) };
            let taken = connection.call(&set)?;
            if !taken.is_success() {
                let status = client::status_name(taken.status_code());
                anyhow::bail!("the node does not take the manifest: {status}");
            }
        }
        Ok(theirs)
    }

    fn exchange_users(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
        offer: UsersOffer<'_>,
    ) -> anyhow::Result<String> {
        let agent: Agent = Agent::config_builder()
            .proxy(None)
            .timeout_connect(Some(self.patience))
            .timeout_global(Some(self.patience))
            .build()
            .into();
        let follows =
            offer.follows.map_or_else(String::new, |revision| format!("?follows={revision}"));
        let (host, port) = (&node.host, node.management_port);
        let url = format!("http://{host}:{port}/settee/users{follows}");
        let credentials = STANDARD.encode(format!("{}:{}", login.user, login.password));
        let request = agent.post(url).content_type("application/json");
        let request = request.header("Authorization", format!("Basic {credentials}"));
        let mut answer = request.send(offer.registry)?;
        let reader = answer.body_mut().with_config().limit(USERS_BYTES_MAX);
        Ok(reader.read_to_string()?)
    }
}

/// Bytes of all users and groups.
const USERS_BYTES_MAX: u64 = 64 << 20;

impl RealPeers {
    /// Whether the bucket of a node is in memory alone.
    pub(crate) fn is_ephemeral(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
    ) -> anyhow::Result<bool> {
        let statistics = self.statistics(node, login, "config")?;
        Ok(statistics.iter().any(|(name, kind)| name == "ep_bucket_type" && kind == "ephemeral"))
    }

    fn statistics(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
        group: &str,
    ) -> anyhow::Result<Vec<(String, String)>> {
        Ok(self.connect(node, login)?.statistics(group)?)
    }

    fn connect(&self, node: &NodeAddress, login: &PeerLogin) -> anyhow::Result<Connection> {
        let mut options = ConnectionOptions::new("settee");
        options.login = Some(Login::new(login.user.clone(), login.password.clone()));
        options.bucket = Some(login.bucket.clone());
        options.timeout = self.patience;
        let address = client::ServerAddress::new(node.host.clone(), node.data_port);
        Ok(Connection::open(&address, &options)?)
    }
}

/// The uid of a manifest.
fn uid_of(manifest: &str) -> anyhow::Result<u64> {
    let manifest = manifest_json::decode(manifest.as_bytes()).map_err(anyhow::Error::msg)?;
    Ok(manifest.uid)
}
