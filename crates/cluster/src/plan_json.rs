//! Plans as JSON documents: the file that a node starts with, and the body of a REST request.
//!
//! A plan of one bucket says its chains beside the nodes, as plans did before there were several,
//! perhaps without a name; one of several says them by name. The first form is written wherever
//! it will do, for programs that read it.

use std::collections::BTreeMap;
use std::iter;

use document::limits::BUCKET_NAME_SIZE_MAX;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::bucket_plan::BucketPlan;
use crate::cluster_map::{ExternalAddress, NodeAddress, Revision, TlsPorts};
use crate::cluster_name::{CLUSTER_NAME_RULE, is_cluster_name};
use crate::host::HOST_BYTES_MAX;
use crate::plan::{ClusterPlan, DeletedBucket, PlannedNode};
use crate::uuid::Uuid;

/// More replicas than this no chain of the protocol has.
const REPLICA_COUNT_MAX: usize = 3;
/// Epochs, revisions and changes, at most. Plans are made that follow what is handed out: the upper
/// half of what an `i64` holds is left to them.
const NUMBER_MAX: u64 = u64::MAX / 4;
/// Bytes of a node's name, as streams are named after nodes.
const NAME_BYTES_MAX: usize = 100;

/// What is wrong with a plan, in words for whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPlan(String);

/// For each vBucket its holders, as in [`BucketPlan::chains`].
type Chains = Vec<Vec<Option<usize>>>;

/// As in [`BucketPlan::settings`].
type Settings = BTreeMap<String, String>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    rev: (i64, i64),
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster_uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster_name: Option<String>,
    /// The only bucket's name; older documents have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bucket: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bucket_uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bucket_settings: Option<Settings>,
    nodes: Vec<Node>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replicas: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vbuckets: Option<Chains>,
    /// Several buckets, instead of the fields that say one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    buckets: Option<BTreeMap<String, Bucket>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    deleted: Vec<Deleted>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changes: Option<u64>,
    /// What a node adds when it shows its plan, which may be handed to others as it is.
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "it is read to be left out")]
    pending: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    #[expect(dead_code, reason = "it is read to be left out")]
    incomplete: Option<IgnoredAny>,
}

/// One of several buckets.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Bucket {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uuid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settings: Option<Settings>,
    replicas: usize,
    vbuckets: Chains,
}

/// A bucket that was deleted.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Deleted {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    uuid: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Node {
    name: String,
    host: String,
    kv: u16,
    mgmt: u16,
    /// Its ports behind TLS: both, or none.
    #[serde(default, rename = "kvSSL", skip_serializing_if = "Option::is_none")]
    kv_tls: Option<u16>,
    #[serde(default, rename = "mgmtSSL", skip_serializing_if = "Option::is_none")]
    mgmt_tls: Option<u16>,
    /// Where it is reached from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external: Option<ExternalAddress>,
}

impl Document {
    /// The buckets by name; one that has none is called `unnamed`.
    fn take_buckets(&mut self, unnamed: &str) -> Result<BTreeMap<String, BucketPlan>, InvalidPlan> {
        let only = (self.replicas.take(), self.vbuckets.take());
        let (name, uuid) = (self.bucket.take(), self.bucket_uuid.take());
        let settings = self.bucket_settings.take();
        let is_said = name.is_some() || uuid.is_some() || settings.is_some();
        let missing = |field| Err(InvalidPlan(format!("missing field `{field}`")));
        match (self.buckets.take(), only) {
            (None, (Some(replicas), Some(vbuckets))) => {
                let name = name.unwrap_or_else(|| unnamed.to_owned());
                let uuid = parse_uuid("bucket_uuid", uuid)?;
                let (replica_count, chains) = (replicas, vbuckets);
                let bucket = BucketPlan { uuid, settings, replica_count, chains };
                Ok(BTreeMap::from([(name, bucket)]))
            }
            (None, (None, _)) => missing("replicas"),
            (None, (_, None)) => missing("vbuckets"),
            (Some(buckets), (None, None)) if !is_said => {
                buckets.into_iter().map(|(name, bucket)| bucket.into_plan(name)).collect()
            }
            (Some(_), _) => Err(InvalidPlan(
                "buckets: they say uuid, replicas and vbuckets themselves, and nothing beside them \
                 does"
                .to_owned(),
            )),
        }
    }
}

impl Bucket {
    fn into_plan(self, name: String) -> Result<(String, BucketPlan), InvalidPlan> {
        let uuid = parse_uuid(&format!("buckets.{name}.uuid"), self.uuid)?;
        let Self { settings, replicas: replica_count, vbuckets: chains, .. } = self;
        Ok((name, BucketPlan { uuid, settings, replica_count, chains }))
    }

    fn of(plan: &BucketPlan) -> Self {
        Self {
            uuid: plan.uuid.map(|uuid| uuid.to_string()),
            settings: plan.settings.clone(),
            replicas: plan.replica_count,
            vbuckets: plan.chains.clone(),
        }
    }
}

impl Deleted {
    fn into_deleted(self) -> Result<DeletedBucket, InvalidPlan> {
        let uuid = parse_uuid("deleted.uuid", self.uuid)?;
        Ok(DeletedBucket { name: self.name, uuid })
    }

    fn of(deleted: &DeletedBucket) -> Self {
        Self { name: deleted.name.clone(), uuid: deleted.uuid.map(|uuid| uuid.to_string()) }
    }
}

impl ClusterPlan {
    /// Reads `{"rev": [epoch, revision], "nodes": [{"name", "host", "kv", "mgmt", "kvSSL",
    /// "mgmtSSL"}], "bucket": "default", "replicas": 1, "vbuckets": [[0, 1], ...]}`, where a chain
    /// has node indices, and null for a missing copy; or, instead of the last three, `"buckets":
    /// {"default": {"replicas": 1, "vbuckets": [[0, 1], ...]}}`. A bucket without a name is called
    /// `unnamed`; a node that speaks no TLS has no `kvSSL` and `mgmtSSL`. A node that is reached
    /// from elsewhere may say where: `"external": {"hostname": "h", "ports": {"kv": 31210}}`. Plans
    /// of buckets that were made or changed while nodes ran have `settings`, `deleted` and
    /// `changes`, too, and that of a cluster that was given a name `cluster_name`.
    pub fn parse(text: &str, unnamed: &str) -> Result<Self, InvalidPlan> {
        let mut document: Document = serde_json::from_str(text)
            .map_err(|error| InvalidPlan(format!("the cluster map cannot be read: {error}")))?;
        let buckets = document.take_buckets(unnamed)?;
        let (epoch, revision) = document.rev;
        if let Some(node) =
            document.nodes.iter().find(|node| node.kv_tls.xor(node.mgmt_tls).is_some())
        {
            let message = format!("nodes: `{}` has kvSSL and mgmtSSL, or none of them", node.name);
            return Err(InvalidPlan(message));
        }
        let node = |node: Node| PlannedNode {
            name: node.name,
            address: NodeAddress {
                host: node.host,
                data_port: node.kv,
                management_port: node.mgmt,
                tls: node.kv_tls.zip(node.mgmt_tls).map(tls_ports),
                external: node.external,
            },
        };
        let plan = Self {
            revision: Revision { epoch, revision },
            cluster_uuid: parse_uuid("cluster_uuid", document.cluster_uuid)?,
            cluster_name: document.cluster_name,
            nodes: document.nodes.into_iter().map(node).collect(),
            buckets,
            deleted: document
                .deleted
                .into_iter()
                .map(Deleted::into_deleted)
                .collect::<Result<_, _>>()?,
            changes: document.changes.unwrap_or_default(),
        };
        plan.check()?;
        Ok(plan)
    }

    /// The plan as [`ClusterPlan::parse`] reads it.
    pub fn to_json(&self) -> String {
        let node = |node: &PlannedNode| Node {
            name: node.name.clone(),
            host: node.address.host.clone(),
            kv: node.address.data_port,
            mgmt: node.address.management_port,
            kv_tls: node.address.tls.map(|ports| ports.data),
            mgmt_tls: node.address.tls.map(|ports| ports.management),
            external: node.address.external.clone(),
        };
        let mut document = Document {
            rev: (self.revision.epoch, self.revision.revision),
            cluster_uuid: self.cluster_uuid.map(|uuid| uuid.to_string()),
            cluster_name: self.cluster_name.clone(),
            bucket: None,
            bucket_uuid: None,
            bucket_settings: None,
            nodes: self.nodes.iter().map(node).collect(),
            replicas: None,
            vbuckets: None,
            buckets: None,
            deleted: self.deleted.iter().map(Deleted::of).collect(),
            changes: (self.changes > 0).then_some(self.changes),
            pending: None,
            incomplete: None,
        };
        let mut buckets: BTreeMap<String, Bucket> =
            self.buckets.iter().map(|(name, plan)| (name.clone(), Bucket::of(plan))).collect();
        if buckets.len() != 1 {
            document.buckets = Some(buckets);
        } else if let Some((name, bucket)) = buckets.pop_first() {
            let Bucket { uuid, settings, replicas, vbuckets } = bucket;
            document.bucket = Some(name);
            document.bucket_uuid = uuid;
            document.bucket_settings = settings;
            document.replicas = Some(replicas);
            document.vbuckets = Some(vbuckets);
        }
        serde_json::to_string(&document).expect("a plan is JSON")
    }

    /// Whether the plan can be carried out.
    pub(crate) fn check(&self) -> Result<(), InvalidPlan> {
        let Revision { epoch, revision } = self.revision;
        if epoch < 1 || revision < 1 {
            return Err(InvalidPlan(format!("rev [{epoch}, {revision}]: both begin with 1")));
        }
        self.check_numbers()?;
        if !self.cluster_name.iter().all(|name| is_cluster_name(name)) {
            return Err(InvalidPlan(format!("cluster_name: it has {CLUSTER_NAME_RULE}")));
        }
        self.check_nodes()?;
        // Otherwise a plan that merely lacks the bucket would come to say that it is deleted.
        let mut deleted = self.deleted.iter();
        if let Some(DeletedBucket { name, .. }) = deleted.find(|deleted| self.has_still(deleted)) {
            return Err(InvalidPlan(format!("deleted: `{name}` is among the buckets")));
        }
        let mut buckets = self.buckets.iter();
        buckets.try_for_each(|(name, bucket)| self.check_bucket(name, bucket))
    }

    pub(crate) fn check_numbers(&self) -> Result<(), InvalidPlan> {
        let Revision { epoch, revision } = self.revision;
        let changes = self.changes;
        let numbers = [epoch.unsigned_abs(), revision.unsigned_abs(), changes];
        if numbers.iter().all(|number| *number <= NUMBER_MAX) {
            return Ok(());
        }
        Err(InvalidPlan(format!(
            "rev [{epoch}, {revision}], changes {changes}: none is above {NUMBER_MAX}, as the next \
             maps have higher ones"
        )))
    }

    /// Whether a plan can follow this one that others take.
    pub fn has_next(&self) -> bool {
        self.revision.revision.unsigned_abs() < NUMBER_MAX && self.changes < NUMBER_MAX
    }

    fn has_still(&self, deleted: &DeletedBucket) -> bool {
        self.buckets.get(&deleted.name).is_some_and(|bucket| bucket.uuid == deleted.uuid)
    }

    fn check_bucket(&self, name: &str, bucket: &BucketPlan) -> Result<(), InvalidPlan> {
        if !is_bucket_name(name) {
            return Err(InvalidPlan(format!(
                "bucket `{name}`: a name has 1 to {BUCKET_NAME_SIZE_MAX} letters, digits and . _ % \
                 -, and does not begin with a dot"
            )));
        }
        let BucketPlan { replica_count, chains, .. } = bucket;
        if *replica_count > REPLICA_COUNT_MAX {
            return Err(InvalidPlan(format!(
                "replicas {replica_count}: at most {REPLICA_COUNT_MAX}"
            )));
        }
        let count = chains.len();
        let count_max = usize::from(document::limits::VBUCKET_COUNT_MAX);
        if !count.is_power_of_two() || count > count_max {
            let message = format!("vbuckets: {count} chains; clients need a power of two");
            return Err(InvalidPlan(message));
        }
        let mut chains = chains.iter().enumerate();
        chains.try_for_each(|(vbid, chain)| self.check_chain(vbid, chain, *replica_count))
    }

    fn check_nodes(&self) -> Result<(), InvalidPlan> {
        if self.nodes.is_empty() {
            return Err(InvalidPlan("nodes: there is none".to_owned()));
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let PlannedNode { name, address } = node;
            let is_visible = |text: &str, bytes_max: usize| {
                (1..=bytes_max).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
            };
            if !is_visible(name, NAME_BYTES_MAX) {
                return Err(InvalidPlan(format!(
                    "nodes[{index}]: a name has 1 to {NAME_BYTES_MAX} visible characters"
                )));
            }
            let external = address.external.as_ref().map(|external| &external.hostname);
            let mut hosts = iter::once(("host", &address.host))
                .chain(external.map(|hostname| ("external.hostname", hostname)));
            // Maps are kept and told by other nodes: what was taken once is read for ever.
            if let Some((field, _)) = hosts.find(|(_, host)| !is_visible(host, HOST_BYTES_MAX)) {
                return Err(InvalidPlan(format!(
                    "nodes[{index}]: {field} has 1 to {HOST_BYTES_MAX} visible characters"
                )));
            }
            for other in &self.nodes[..index] {
                let (host, port) = (&address.host, address.data_port);
                if other.name == *name {
                    return Err(InvalidPlan(format!("nodes: two are called `{name}`")));
                }
                if other.address.host == *host && other.address.data_port == port {
                    return Err(InvalidPlan(format!("nodes: two have the address {host}:{port}")));
                }
            }
        }
        Ok(())
    }

    fn check_chain(
        &self,
        vbid: usize,
        chain: &[Option<usize>],
        replica_count: usize,
    ) -> Result<(), InvalidPlan> {
        let length = replica_count + 1;
        if chain.len() != length {
            let message = format!(
                "vbuckets[{vbid}]: {} entries; the active node and {replica_count} replicas make \
                 {length}, with null for a missing one",
                chain.len(),
            );
            return Err(InvalidPlan(message));
        }
        for (place, node) in chain.iter().enumerate() {
            let Some(node) = node else { continue };
            if *node >= self.nodes.len() {
                return Err(InvalidPlan(format!("vbuckets[{vbid}]: there is no node {node}")));
            }
            if chain[..place].contains(&Some(*node)) {
                let message = format!("vbuckets[{vbid}]: node {node} holds two copies");
                return Err(InvalidPlan(message));
            }
        }
        Ok(())
    }
}

fn tls_ports((data, management): (u16, u16)) -> TlsPorts {
    TlsPorts { data, management }
}

/// Names of directories, too: one that begins with a dot is not a bucket's.
fn is_bucket_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._%-".contains(&byte);
    (1..=BUCKET_NAME_SIZE_MAX).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.starts_with('.')
}

fn parse_uuid(name: &str, text: Option<String>) -> Result<Option<Uuid>, InvalidPlan> {
    let Some(text) = text else { return Ok(None) };
    let uuid = Uuid::parse(&text);
    uuid.map(Some).ok_or_else(|| InvalidPlan(format!("{name}: 32 hexadecimal digits")))
}

#[cfg(test)]
mod tests {
    use platform::{Entropy, Random, seeds};

    use super::*;
    use crate::plan::tests::nodes;

    /// The form before buckets had names.
    const UNNAMED: &str = r#"{"rev":[1,1],"nodes":[{"name":"a","host":"h","kv":1,"mgmt":2},
        {"name":"b","host":"h","kv":3,"mgmt":4}],"replicas":1,"vbuckets":[[0,1],[1,null]]}"#;
    const NAMED: &str = r#"{"rev":[1,1],"nodes":[{"name":"a","host":"h","kv":1,"mgmt":2},
        {"name":"b","host":"h","kv":3,"mgmt":4}],"buckets":{
        "x":{"replicas":1,"vbuckets":[[0,1],[1,null]]},
        "y":{"uuid":"0123456789abcdef0123456789abcdef","replicas":0,"vbuckets":[[1]]}}}"#;

    fn parse(text: &str) -> Result<ClusterPlan, InvalidPlan> {
        ClusterPlan::parse(text, "default")
    }

    /// A plan of so many buckets, some of them with copies that nobody holds.
    fn random_plan(random: &mut Random, bucket_count: u64) -> ClusterPlan {
        let node_count = 1 + random.below(4);
        let count = u16::try_from(node_count).unwrap();
        let mut plan = ClusterPlan::of_nodes(nodes(count));
        plan.revision = Revision { epoch: 2, revision: 7 };
        for number in 0..bucket_count {
            let replica_count = usize::try_from(random.below(node_count)).unwrap();
            let mut bucket = BucketPlan::balanced(count.into(), replica_count, 1 << number);
            for chain in &mut bucket.chains {
                let place = usize::try_from(random.below(4)).unwrap();
                if let Some(holder) = chain.get_mut(place) {
                    *holder = None;
                }
            }
            let has_uuid = random.below(2) == 0;
            bucket.uuid = has_uuid.then(|| Uuid::random(&Entropy::simulated(number)));
            plan = plan.with_bucket(&format!("bucket-{number}"), bucket);
        }
        plan
    }

    #[test]
    fn a_node_has_both_ports_behind_tls_or_none() {
        let with = |ports: &str| UNNAMED.replacen(r#""mgmt":2"#, &format!(r#""mgmt":2{ports}"#), 1);
        let plan = parse(&with(r#","kvSSL":5,"mgmtSSL":6"#)).unwrap();
        assert_eq!(plan.nodes[0].address.tls, Some(TlsPorts { data: 5, management: 6 }));
        assert_eq!(plan.nodes[1].address.tls, None, "plans had none before there was TLS");
        assert_eq!(parse(&plan.to_json()).unwrap(), plan);
        for ports in [r#","kvSSL":5"#, r#","mgmtSSL":6"#] {
            assert!(parse(&with(ports)).unwrap_err().to_string().contains("kvSSL"));
        }
    }

    #[test]
    fn a_node_may_say_where_it_is_reached_from_elsewhere() {
        let with = |host: &str| {
            let external = format!(r#"{{"hostname":"{host}","ports":{{"kv":5}}}}"#);
            UNNAMED.replacen(r#""mgmt":2"#, &format!(r#""mgmt":2,"external":{external}"#), 1)
        };
        let plan = parse(&with("outside")).unwrap();
        let external = plan.nodes[0].address.external.as_ref().unwrap();
        assert_eq!((external.hostname.as_str(), external.ports["kv"]), ("outside", 5));
        assert_eq!(plan.nodes[1].address.external, None);
        assert_eq!(parse(&plan.to_json()).unwrap(), plan);
        assert!(parse(&with("")).unwrap_err().to_string().contains("external.hostname"));
    }

    #[test]
    fn a_plan_survives_writing_and_reading() {
        for seed in seeds::seeds(100) {
            let mut random = Random::from_seed(seed);
            for bucket_count in 0..5 {
                let mut plan = random_plan(&mut random, bucket_count);
                assert_eq!(parse(&plan.to_json()), Ok(plan.clone()), "seed {seed}");
                plan.cluster_uuid = Some(Uuid::random(&Entropy::simulated(seed)));
                assert_eq!(parse(&plan.to_json()), Ok(plan), "seed {seed}");
            }
        }
    }

    #[test]
    fn a_bucket_without_a_name_has_the_one_that_the_reader_says() {
        let plan = ClusterPlan::parse(UNNAMED, "mine").unwrap();
        let chains = vec![vec![Some(0), Some(1)], vec![Some(1), None]];
        let bucket = BucketPlan { uuid: None, settings: None, replica_count: 1, chains };
        assert_eq!(plan.buckets, BTreeMap::from([("mine".to_owned(), bucket)]));
        let written = plan.to_json();
        assert_eq!(ClusterPlan::parse(&written, "other"), Ok(plan), "it has a name from then on");
        // Programs go on finding the chains where they were.
        for field in [r#""bucket":"mine""#, r#""replicas":1"#, r#""vbuckets":[[0,1],[1,null]]"#] {
            assert!(written.contains(field), "{written}");
        }
    }

    #[test]
    fn several_buckets_have_names() {
        let plan = parse(NAMED).unwrap();
        assert_eq!(plan.buckets.keys().collect::<Vec<_>>(), ["x", "y"]);
        assert_eq!(plan.buckets["x"].replica_count, 1);
        assert_eq!(plan.buckets["y"].chains, [[Some(1)]]);
        assert!(plan.buckets["x"].uuid.is_none() && plan.buckets["y"].uuid.is_some());
        let shown = plan.to_json().replacen('{', r#"{"pending":[],"incomplete":{"x":[1]},"#, 1);
        assert_eq!(parse(&shown), Ok(plan), "what a node shows may be handed to others");
    }

    #[test]
    fn what_is_wrong_is_said() {
        assert!(parse(UNNAMED).is_ok() && parse(NAMED).is_ok());
        for (good, from, to, advice) in [
            (UNNAMED, "[1,1]", "[1,0]", "begin with 1"),
            (UNNAMED, "[1,1]", "[1,9223372036854775807]", "none is above"),
            (UNNAMED, "[1,1]", "[4611686018427387904,1]", "none is above"),
            (UNNAMED, r#""nodes""#, r#""changes":9223372036854775807,"nodes""#, "none is above"),
            (UNNAMED, "\"rev\":[1,1],", "", "missing field `rev`"),
            (UNNAMED, "\"replicas\":1,", "", "missing field `replicas`"),
            (UNNAMED, ",\"vbuckets\":[[0,1],[1,null]]", "", "missing field `vbuckets`"),
            (UNNAMED, "\"rev\"", "\"x\":1,\"rev\"", "unknown field `x`"),
            (UNNAMED, "\"b\"", "\"a\"", "two are called `a`"),
            (UNNAMED, "\"b\"", "\"\"", "visible characters"),
            (UNNAMED, "\"h\"", "\"h 1\"", "nodes[0]: host has 1 to 253 visible characters"),
            (UNNAMED, "\"kv\":3", "\"kv\":1", "two have the address h:1"),
            (UNNAMED, "\"replicas\":1", "\"replicas\":4", "at most 3"),
            (UNNAMED, "[1,null]", "[1]", "vbuckets[1]: 1 entries"),
            (UNNAMED, "[1,null]", "[1,2]", "vbuckets[1]: there is no node 2"),
            (UNNAMED, "[1,null]", "[1,1]", "node 1 holds two copies"),
            (UNNAMED, "[1,null]]", "[1,null],[1,0]]", "power of two"),
            (UNNAMED, "\"rev\"", "\"bucket\":\"a/b\",\"rev\"", "bucket `a/b`: a name has"),
            (NAMED, "\"x\"", "\".x\"", "bucket `.x`: a name has"),
            (NAMED, "[[1]]", "[[1],[1],[1]]", "power of two"),
            (NAMED, "[[1]]", "[[2]]", "there is no node 2"),
            (NAMED, "\"replicas\":0,", "", "missing field `replicas`"),
            (NAMED, "0123", "", "buckets.y.uuid: 32 hexadecimal digits"),
            (NAMED, "\"rev\"", "\"replicas\":1,\"rev\"", "nothing beside them does"),
            (NAMED, "\"rev\"", "\"bucket\":\"x\",\"rev\"", "nothing beside them does"),
            (
                NAMED,
                "\"rev\"",
                "\"deleted\":[{\"name\":\"x\"}],\"rev\"",
                "`x` is among the buckets",
            ),
        ] {
            let text = good.replacen(from, to, 1);
            assert_ne!(text, good, "{from}");
            let InvalidPlan(message) = parse(&text).unwrap_err();
            assert!(message.contains(advice), "{message}");
        }
    }
}
