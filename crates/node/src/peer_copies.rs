//! What another node says of its copies of vBuckets.

use std::collections::BTreeMap;
use std::time::Duration;

use client::{Connection, ConnectionOptions, Login};
use cluster::NodeAddress;

use crate::config::NodeConfig;

/// How far a copy is. Greater ones are to be promoted: what was acknowledged as durable counts
/// more than what else has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Held {
    /// All prepares up to here are held.
    pub(crate) prepared_seqno: u64,
    /// The last thing that has come.
    pub(crate) high_seqno: u64,
}

/// The copies that a node has, by vBucket.
pub(crate) type Copies = BTreeMap<u16, Held>;

/// Asks a node for its copies.
pub(crate) type AskPeer = Box<dyn Fn(&NodeAddress) -> anyhow::Result<Copies> + Send + Sync>;

/// How long another node may take to answer one that waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a node asks the others, which have its user and password.
pub(crate) fn asking(config: &NodeConfig, password: Option<&str>) -> AskPeer {
    let asker = Asker {
        user: config.user.clone(),
        password: password.unwrap_or_default().to_owned(),
        bucket: config.bucket.clone(),
        patience: PATIENCE,
    };
    Box::new(move |node| asker.copies(node))
}

/// Who asks, and of which bucket.
#[derive(Clone)]
pub(crate) struct Asker {
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) bucket: String,
    /// How long an answer may take.
    pub(crate) patience: Duration,
}

impl Asker {
    /// The copies that a node has, by vBucket.
    pub(crate) fn copies(&self, node: &NodeAddress) -> anyhow::Result<Copies> {
        Ok(copies(&self.statistics(node, "vbucket-details")?))
    }

    /// Whether its bucket is in memory alone.
    pub(crate) fn is_ephemeral(&self, node: &NodeAddress) -> anyhow::Result<bool> {
        let statistics = self.statistics(node, "config")?;
        Ok(statistics.iter().any(|(name, kind)| name == "ep_bucket_type" && kind == "ephemeral"))
    }

    fn statistics(&self, node: &NodeAddress, group: &str) -> anyhow::Result<Vec<(String, String)>> {
        let mut options = ConnectionOptions::new("settee");
        options.login = Some(Login::new(self.user.clone(), self.password.clone()));
        options.bucket = Some(self.bucket.clone());
        options.timeout = self.patience;
        let address = client::NodeAddress::new(node.host.clone(), node.data_port);
        Ok(Connection::open(&address, &options)?.statistics(group)?)
    }
}

/// From lines like `vb_17:high_seqno 5`.
fn copies(statistics: &[(String, String)]) -> Copies {
    let mut copies = Copies::new();
    for (name, value) in statistics {
        let Some((vbid, name)) = name.strip_prefix("vb_").and_then(|name| name.split_once(':'))
        else {
            continue;
        };
        let (Ok(vbid), Ok(seqno)) = (vbid.parse(), value.parse()) else { continue };
        match name {
            "high_prepared_seqno" => copies.entry(vbid).or_default().prepared_seqno = seqno,
            "high_seqno" => copies.entry(vbid).or_default().high_seqno = seqno,
            _ => {}
        }
    }
    copies
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_found_among_the_statistics() {
        let lines = [
            ("vb_17", "active"),
            ("vb_17:high_seqno", "7"),
            ("vb_17:high_prepared_seqno", "5"),
            ("vb_3:high_seqno", "2"),
            ("x", "5"),
        ];
        let lines = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let held = |prepared_seqno, high_seqno| Held { prepared_seqno, high_seqno };
        assert_eq!(copies(&lines), BTreeMap::from([(17, held(5, 7)), (3, held(0, 2))]));
        assert!(held(5, 7) > held(4, 9) && held(5, 8) > held(5, 7));
    }
}
