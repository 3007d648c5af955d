//! Other nodes, asked over their data ports.

use std::time::Duration;

use client::{Connection, ConnectionOptions, Login};
use cluster::NodeAddress;
use node::{COPIES_GROUP, Copies, PeerLogin, Peers, copies_of};

/// The nodes that the network leads to.
pub(crate) struct RealPeers {
    /// How long an answer may take.
    pub(crate) patience: Duration,
}

impl Peers for RealPeers {
    fn copies(&self, node: &NodeAddress, login: &PeerLogin) -> anyhow::Result<Copies> {
        Ok(copies_of(&self.statistics(node, login, COPIES_GROUP)?))
    }
}

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
        let mut options = ConnectionOptions::new("settee");
        options.login = Some(Login::new(login.user.clone(), login.password.clone()));
        options.bucket = Some(login.bucket.clone());
        options.timeout = self.patience;
        let address = client::ServerAddress::new(node.host.clone(), node.data_port);
        Ok(Connection::open(&address, &options)?.statistics(group)?)
    }
}
