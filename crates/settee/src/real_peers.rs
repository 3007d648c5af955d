//! Other nodes, asked over their data ports.

use std::time::Duration;

use bucket::manifest_json;
use client::{Connection, ConnectionOptions, Login};
use cluster::NodeAddress;
use node::{Copies, PeerLogin, Peers};
use protocol::Opcode;
use protocol::client::Request;

/// The nodes that the network leads to.
pub(crate) struct RealPeers {
    /// How long an answer may take.
    pub(crate) patience: Duration,
}

impl Peers for RealPeers {
    fn copies(&self, node: &NodeAddress, login: &PeerLogin) -> anyhow::Result<Copies> {
        Ok(copies(&self.statistics(node, login, "vbucket-details")?))
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
            connection.call(&Request { value: ours.as_bytes(), ..Request::new(opcode) })?;
        }
        Ok(theirs)
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

/// From lines like `vb_17:high_seqno 5`.
fn copies(statistics: &[(String, String)]) -> Copies {
    let mut copies = Copies::new();
    for (name, value) in statistics {
        let Some((vbid, name)) = name.strip_prefix("vb_").and_then(|name| name.split_once(':'))
        else {
            continue;
        };
        let Ok(vbid) = vbid.parse() else { continue };
        match (name, value.parse()) {
            ("high_prepared_seqno", Ok(seqno)) => {
                copies.entry(vbid).or_default().prepared_seqno = seqno;
            }
            ("high_seqno", Ok(seqno)) => copies.entry(vbid).or_default().high_seqno = seqno,
            ("whole", _) => copies.entry(vbid).or_default().is_whole = value == "true",
            _ => {}
        }
    }
    copies
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use node::Held;

    use super::*;

    #[test]
    fn copies_are_found_among_the_statistics() {
        let lines = [
            ("vb_17", "active"),
            ("vb_17:high_seqno", "7"),
            ("vb_17:high_prepared_seqno", "5"),
            ("vb_17:whole", "true"),
            ("vb_3:whole", "false"),
            ("vb_3:high_seqno", "2"),
            ("x", "5"),
        ];
        let lines = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let held =
            |is_whole, prepared_seqno, high_seqno| Held { is_whole, prepared_seqno, high_seqno };
        let expected = [(17, held(true, 5, 7)), (3, held(false, 0, 2))];
        assert_eq!(copies(&lines), BTreeMap::from(expected));
        assert!(held(true, 5, 7) > held(true, 4, 9) && held(true, 5, 8) > held(true, 5, 7));
        assert!(held(true, 0, 1) > held(false, 4, 9));
    }
}
