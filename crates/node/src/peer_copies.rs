//! What other nodes say of their copies of vBuckets, and how they are asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use cluster::{NodeAddress, StorageFigures, Uuid};
use document::{FailoverEntry, Seqno, VbUuid};
use tls::Connector;

/// How far a copy is, and in which history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Whether it has what the active copy held when it began to follow that.
    pub is_whole: bool,
    /// The end of the last snapshot that it has whole. The durable writes that it has acknowledged
    /// are not behind that.
    pub whole_seqno: u64,
    /// The last thing that has come.
    pub high_seqno: u64,
    /// The branches of its history, newest first.
    pub branches: Vec<FailoverEntry>,
}

impl Held {
    /// Names the history that it is of.
    pub fn uuid(&self) -> Option<VbUuid> {
        self.branches.first().map(|newest| newest.uuid)
    }
}

/// The group of STAT in which a node says how far its copies of a bucket are.
pub const COPIES_GROUP: &str = "vbucket-details";

/// The copies that a node has, by vBucket.
pub type Copies = BTreeMap<u16, Held>;

/// As whom a node is asked, and about which bucket.
pub struct PeerLogin {
    /// A user that the node knows: nodes of a cluster share them.
    pub user: String,
    /// The user's password.
    pub password: String,
    /// The bucket's name.
    pub bucket: String,
    /// Its identity, where a bucket of another one is not meant: the node may have one of that name
    /// which was deleted.
    pub bucket_uuid: Option<Uuid>,
    /// What begins sessions with the node, if it is not asked without TLS.
    pub connector: Option<Arc<Connector>>,
}

/// As whom this node speaks to others, which have its user and password.
#[derive(Clone)]
pub(crate) struct NodeLogin {
    pub(crate) user: String,
    pub(crate) password: String,
    /// What begins sessions with others, if none of them is spoken to without TLS.
    pub(crate) connector: Option<Arc<Connector>>,
}

impl NodeLogin {
    fn of_bucket(&self, bucket: &str) -> PeerLogin {
        let Self { user, password, connector } = self.clone();
        PeerLogin { user, password, bucket: bucket.to_owned(), bucket_uuid: None, connector }
    }
}

/// The other nodes, as far as a node asks them.
pub trait Peers: Send + Sync {
    /// The copies that a node has of the vBuckets of a bucket. Returns once it has answered, or
    /// when that takes too long; in a world without threads, at once.
    ///
    /// # Errors
    /// There is no answer, which the caller may ask for again; or the node has another bucket than
    /// the one of [`PeerLogin::bucket_uuid`].
    fn copies(&self, node: &NodeAddress, login: &PeerLogin) -> anyhow::Result<Copies>;

    /// Gives a node `ours`, the manifest of the bucket as JSON, if it has an older one. Returns
    /// what it had, in one of the forms of a manifest.
    ///
    /// # Errors
    /// As [`Peers::copies`]; or the node has another manifest of that uid.
    fn exchange_manifest(
        &self,
        node: &NodeAddress,
        login: &PeerLogin,
        ours: &str,
    ) -> anyhow::Result<String>;

    /// Gives a node all users. Returns those that it has behind that, as JSON.
    ///
    /// # Errors
    /// As [`Peers::copies`]. A world may have no way to do it.
    fn exchange_users(
        &self,
        _node: &NodeAddress,
        _login: &PeerLogin,
        _offer: UsersOffer<'_>,
    ) -> anyhow::Result<String> {
        anyhow::bail!("users are not exchanged in this world")
    }

    /// Offers a node a plan. Returns the plan that it has behind that, as JSON: a newer one than it
    /// is offered stays.
    ///
    /// # Errors
    /// As [`Peers::copies`], or a [`PeerRefusal`]: it cannot carry the plan out. A world may have
    /// no way to do it.
    fn exchange_plan(
        &self,
        _node: &NodeAddress,
        _login: &PeerLogin,
        _offer: PlanOffer<'_>,
    ) -> anyhow::Result<String> {
        anyhow::bail!("plans are not exchanged in this world")
    }

    /// Who a node is, and what it has.
    ///
    /// # Errors
    /// As [`Peers::copies`]. A world may have no way to do it.
    fn introduction(
        &self,
        _node: &NodeAddress,
        _login: &PeerLogin,
    ) -> anyhow::Result<Introduction> {
        anyhow::bail!("nodes do not say who they are in this world")
    }

    /// Has a node compact the files that it has of the bucket, or stop that. Does not wait for the
    /// end.
    ///
    /// # Errors
    /// As [`Peers::copies`]; or it does not. A world may have no way to do it.
    fn order_compaction(
        &self,
        _node: &NodeAddress,
        _login: &PeerLogin,
        _order: CompactionChange,
    ) -> anyhow::Result<()> {
        anyhow::bail!("files of other nodes are not compacted in this world")
    }

    /// Has a node empty what it holds of a bucket.
    ///
    /// # Errors
    /// As [`Peers::copies`]; or it does not, and may be asked again.
    fn flush(&self, _node: &NodeAddress, _login: &PeerLogin) -> anyhow::Result<()> {
        anyhow::bail!("buckets of other nodes are not emptied in this world")
    }
}

/// What a node says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Introduction {
    /// Its identity.
    pub uuid: Uuid,
    /// What it has, and uses of that.
    pub storage: StorageFigures,
}

/// What becomes of the compactions of a bucket's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionChange {
    /// They begin.
    Begin,
    /// Those that are under way or wait end.
    Cancel,
}

/// A plan that a node is offered.
#[derive(Clone, Copy, Debug)]
pub struct PlanOffer<'a> {
    /// As JSON.
    pub plan: &'a str,
    /// What it is to do with it.
    pub purpose: OfferPurpose,
}

/// What a node is to do with a plan that it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferPurpose {
    /// Say whether it could carry it out.
    Trial,
    /// Carry it out.
    Order,
    /// Carry it out, and answer when buckets that it takes away are gone, within some seconds.
    AwaitedOrder,
}

/// A node has answered that it does not, and why.
#[derive(Clone, Debug)]
pub struct PeerRefusal(pub String);

impl std::fmt::Display for PeerRefusal {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for PeerRefusal {}

/// The others, which have the node's user and password, as it gives them plans.
pub(crate) struct PlanPeers {
    peers: Arc<dyn Peers>,
    login: NodeLogin,
}

impl PlanPeers {
    pub(crate) fn new(peers: Arc<dyn Peers>, login: NodeLogin) -> Self {
        Self { peers, login }
    }

    /// See [`Peers::exchange_plan`].
    pub(crate) fn exchange(
        &self,
        node: &NodeAddress,
        offer: PlanOffer<'_>,
    ) -> anyhow::Result<String> {
        self.peers.exchange_plan(node, &self.login.of_bucket(""), offer)
    }

    /// See [`Peers::order_compaction`].
    pub(crate) fn order_compaction(
        &self,
        node: &NodeAddress,
        bucket: &str,
        order: CompactionChange,
    ) -> anyhow::Result<()> {
        self.peers.order_compaction(node, &self.login.of_bucket(bucket), order)
    }

    /// See [`Peers::flush`].
    pub(crate) fn flush(&self, node: &NodeAddress, bucket: &str) -> anyhow::Result<()> {
        self.peers.flush(node, &self.login.of_bucket(bucket))
    }
}

/// Users that a node is given.
#[derive(Clone, Copy, Debug)]
pub struct UsersOffer<'a> {
    /// As JSON.
    pub registry: &'a str,
    /// The revision that they follow, if the node is to take them only behind that one; otherwise
    /// it takes them if they count more than its own.
    pub follows: Option<u64>,
}

/// Exchanges all users with a node: gives it what is said, as [`UsersOffer`] has it, and tells what
/// it has behind that.
pub(crate) type ExchangeUsers =
    Box<dyn Fn(&NodeAddress, UsersOffer<'_>) -> anyhow::Result<String> + Send + Sync>;

/// How a node exchanges users with the others.
pub(crate) fn exchanging_users(peers: Arc<dyn Peers>, login: NodeLogin) -> ExchangeUsers {
    Box::new(move |node, offer| peers.exchange_users(node, &login.of_bucket(""), offer))
}

/// Asks a node who it is.
pub(crate) type AskIdentity =
    Box<dyn Fn(&NodeAddress) -> anyhow::Result<Introduction> + Send + Sync>;

/// How a node asks the others who they are.
pub(crate) fn asking_identities(peers: Arc<dyn Peers>, login: NodeLogin) -> AskIdentity {
    Box::new(move |node| peers.introduction(node, &login.of_bucket("")))
}

/// Exchanges the manifest of the bucket of that name, and of that identity if there is one, with a
/// node.
pub(crate) type ExchangeManifest =
    Box<dyn Fn(&NodeAddress, (&str, Option<Uuid>), &str) -> anyhow::Result<String> + Send + Sync>;

/// How a node exchanges manifests with the others.
pub(crate) fn exchanging(peers: Arc<dyn Peers>, login: NodeLogin) -> ExchangeManifest {
    Box::new(move |node, (bucket, bucket_uuid), ours| {
        let login = PeerLogin { bucket_uuid, ..login.of_bucket(bucket) };
        peers.exchange_manifest(node, &login, ours)
    })
}

/// Asks a node for its copies of the bucket of that name, and of that identity if there is one.
pub(crate) type AskPeer =
    Box<dyn Fn(&NodeAddress, (&str, Option<Uuid>)) -> anyhow::Result<Copies> + Send + Sync>;

/// How a node asks the others.
pub(crate) fn asking(peers: Arc<dyn Peers>, login: NodeLogin) -> AskPeer {
    Box::new(move |node, (bucket, bucket_uuid)| {
        peers.copies(node, &PeerLogin { bucket_uuid, ..login.of_bucket(bucket) })
    })
}

/// The copies that a node tells in [`COPIES_GROUP`], in lines like `vb_17:high_seqno 5`.
pub fn copies_of(statistics: &[(String, String)]) -> Copies {
    let mut copies = Copies::new();
    let mut older: BTreeMap<u16, (Option<VbUuid>, u64)> = BTreeMap::new();
    for (name, value) in statistics {
        let Some((vbid, name)) = name.strip_prefix("vb_").and_then(|name| name.split_once(':'))
        else {
            continue;
        };
        let Ok(vbid) = vbid.parse() else { continue };
        match (name, value.parse()) {
            ("whole_seqno", Ok(seqno)) => copies.entry(vbid).or_default().whole_seqno = seqno,
            ("branches", _) => copies.entry(vbid).or_default().branches = branches_of(value),
            ("high_seqno", Ok(seqno)) => copies.entry(vbid).or_default().high_seqno = seqno,
            ("whole", _) => copies.entry(vbid).or_default().is_whole = value == "true",
            // A node of the version before says its newest branch alone, and no seqno up to which
            // the copy is consistent: the durable writes that it has acknowledged are up to this.
            ("uuid", Ok(uuid)) => drop(older.entry(vbid).or_default().0.replace(VbUuid(uuid))),
            ("high_prepared_seqno", Ok(seqno)) => older.entry(vbid).or_default().1 = seqno,
            _ => {}
        }
    }
    for (vbid, (uuid, prepared_seqno)) in older {
        let Some(held) = copies.get_mut(&vbid).filter(|held| held.branches.is_empty()) else {
            continue;
        };
        held.branches.extend(uuid.map(|uuid| FailoverEntry { uuid, seqno: Seqno(0) }));
        held.whole_seqno = held.whole_seqno.max(prepared_seqno);
    }
    copies
}

/// Branches as `uuid:seqno`, with commas between.
fn branches_of(text: &str) -> Vec<FailoverEntry> {
    let branch = |text: &str| {
        let (uuid, seqno) = text.split_once(':')?;
        let (uuid, seqno) = (VbUuid(uuid.parse().ok()?), Seqno(seqno.parse().ok()?));
        Some(FailoverEntry { uuid, seqno })
    };
    text.split(',').filter_map(branch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_found_among_the_statistics() {
        let lines = [
            ("vb_17", "active"),
            ("vb_17:high_seqno", "7"),
            ("vb_17:whole_seqno", "5"),
            ("vb_17:whole", "true"),
            ("vb_17:branches", "9:4,18446744073709551615:0"),
            ("vb_17:uuid", "9"),
            ("vb_17:high_prepared_seqno", "6"),
            ("vb_4:uuid", "11"),
            ("vb_4:whole", "true"),
            ("vb_4:high_seqno", "8"),
            ("vb_4:high_prepared_seqno", "6"),
            ("vb_3:whole", "false"),
            ("vb_3:high_seqno", "2"),
            ("vb_3:branches", "9,x:1,"),
            ("x", "5"),
        ];
        let lines = lines.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let branch = |uuid, seqno| FailoverEntry { uuid: VbUuid(uuid), seqno: Seqno(seqno) };
        let branches = vec![branch(9, 4), branch(u64::MAX, 0)];
        let first = Held { is_whole: true, whole_seqno: 5, high_seqno: 7, branches };
        let second = Held { high_seqno: 2, ..Held::default() };
        let older = Held { whole_seqno: 6, high_seqno: 8, branches: vec![branch(11, 0)], ..first };
        assert_eq!(older.uuid(), Some(VbUuid(11)), "so says the version before");
        assert_eq!((first.uuid(), second.uuid()), (Some(VbUuid(9)), None));
        assert_eq!(copies_of(&lines), BTreeMap::from([(17, first), (3, second), (4, older)]));
    }
}
