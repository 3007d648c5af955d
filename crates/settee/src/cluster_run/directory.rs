//! The directory of a development cluster.
//!
//! ```text
//! cluster.json   what the cluster is, and how the running one is told what to do
//! map.json       the map that counts; nodes read it when they start
//! lock           held while the cluster runs
//! certificates/  the cluster's authority, and what it has signed: n_<i>.pem; clients trust ca.pem
//! n_<i>/         data of a node
//! n_<i>.log      what it prints
//! n_<i>.ready    written by it once it serves
//! ```

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use cluster::{BucketPlan, ClusterPlan, NodeAddress, PlannedNode, TlsPorts, Uuid};
use platform::files::RealFiles;
use platform::process::FileLock;
use platform::{Clock, Entropy, FileErrorKind, Files};
use serde::{Deserialize, Serialize};
use tls::{AuthorityDirectory, Connector, Material};

use super::arguments::ClusterRunArguments;
use crate::setting_values::{BucketNames, Switch};
use node::is_bucket_name;

/// The host of all nodes.
const HOST: &str = "127.0.0.1";
/// More nodes than this no machine is asked to run for play.
const NODES_MAX: u16 = 32;

/// What the cluster is. It has secrets, and is not shown.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Description {
    /// Where the running cluster listens for commands.
    pub(super) control: Option<SocketAddr>,
    /// What a command has to know.
    pub(super) secret: String,
    pub(super) user: String,
    pub(super) password: String,
    /// The default one; the map has all.
    pub(super) bucket: String,
    /// All nodes that were ever started, in order.
    pub(super) nodes: Vec<Member>,
    /// Whether they speak TLS with each other. Those of older clusters do not.
    #[serde(default)]
    pub(super) tls_between_nodes: bool,
    /// What begins sessions with them, if they are spoken to by TLS.
    #[serde(skip)]
    pub(super) connector: Option<Arc<Connector>>,
}

/// One node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) kv: u16,
    pub(super) mgmt: u16,
    /// Its ports behind TLS. Clusters that were made before there was TLS do without.
    #[serde(default)]
    pub(super) tls: Option<MemberTls>,
}

/// Where a node is reached by TLS.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct MemberTls {
    pub(super) kv: u16,
    pub(super) mgmt: u16,
}

/// What a node keeps of the plan that it has carried out last.
#[derive(Deserialize)]
struct Kept {
    map: serde_json::Value,
}

/// A cluster's directory.
pub(super) struct Directory {
    path: PathBuf,
}

impl Directory {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Makes the directory and takes it for this process.
    pub(super) fn lock(&self) -> anyhow::Result<FileLock> {
        RealFiles.create_directories(&self.path)?;
        let lock = FileLock::try_acquire(&self.path.join("lock"))?;
        let shown = self.path.display();
        lock.with_context(|| {
            format!("a cluster runs in {shown} already; stop it, or give another --dir")
        })
    }

    /// The cluster that is in the directory, or a new one.
    pub(super) fn open_or_create(
        &self,
        arguments: &ClusterRunArguments,
    ) -> anyhow::Result<(Description, ClusterPlan)> {
        let Some(mut description) = self.description()? else { return self.create(arguments) };
        let shown = self.path.display();
        let mut plan = self.plan(&description.bucket)?;
        if let Some(newer) = self.with_bucket_changes(&plan, &description) {
            self.write_plan(&newer)?;
            plan = newer;
        }
        let mut facts =
            vec![("--nodes", arguments.nodes.map(usize::from), description.nodes.len())];
        // It may have been deleted meanwhile.
        if let Some(bucket) = plan.buckets.get(&description.bucket) {
            facts.push(("--replicas", arguments.replicas, bucket.replica_count));
            let vbuckets = arguments.vbuckets.map(usize::from);
            facts.push(("--vbuckets", vbuckets, bucket.chains.len()));
        }
        for (flag, wanted, is) in facts {
            if wanted.is_some_and(|wanted| wanted != is) {
                bail!(
                    "the cluster in {shown} was made with {flag} {is}; leave {flag} out to go on \
                     with it, or give another --dir"
                );
            }
        }
        let is_tls = description.tls_between_nodes;
        if arguments.tls_between_nodes.is_some_and(|wanted| (wanted.0 == Switch::On) != is_tls) {
            let is = if is_tls { "on" } else { "off" };
            bail!(
                "the cluster in {shown} was made with --tls-between-nodes {is}; leave it out to go \
                 on with it, or give another --dir"
            );
        }
        if let Some(wanted) = &arguments.bucket {
            // Those that were made, changed or deleted while nodes ran need not be named.
            let named = plan.buckets.iter().filter(|(_, bucket)| bucket.settings.is_none());
            let named: BTreeSet<&str> = named.map(|(name, _)| name.as_str()).collect();
            let others = plan.buckets.keys().chain(plan.deleted.iter().map(|it| &it.name));
            let all: BTreeSet<&str> = others.map(String::as_str).collect();
            let wanted: BTreeSet<&str> = wanted.names().iter().map(String::as_str).collect();
            ensure!(
                named.is_subset(&wanted) && wanted.is_subset(&all),
                "the cluster in {shown} was made with --bucket {}; leave --bucket out to go on \
                 with it, or give another --dir",
                description.bucket_names(&plan).join(",")
            );
        }
        description.user.clone_from(&arguments.user);
        description.password = arguments.password.to_string();
        self.certify(&mut description)?;
        Ok((description, plan))
    }

    fn create(
        &self,
        arguments: &ClusterRunArguments,
    ) -> anyhow::Result<(Description, ClusterPlan)> {
        let count = arguments.nodes.unwrap_or(2);
        let replicas = arguments.replicas.unwrap_or_else(|| usize::from(count > 1));
        ensure!((1..=NODES_MAX).contains(&count), "--nodes {count}: give 1 to {NODES_MAX}");
        ensure!(replicas <= 3, "--replicas {replicas}: give 0 to 3");
        ensure!(
            replicas < usize::from(count),
            "--replicas {replicas} needs {} nodes: the copies of a vBucket are on different nodes",
            replicas + 1
        );
        let vbuckets = arguments.vbuckets.unwrap_or(1024);
        ensure!(vbuckets.is_power_of_two(), "--vbuckets {vbuckets}: give a power of two");
        let nodes = members(
            count,
            arguments.port_base.unwrap_or(12000),
            arguments.management_port_base.unwrap_or(9000),
        )?;
        let planned = nodes.iter().map(Member::planned).collect();
        let default = BucketNames::one("default".to_owned());
        let names = arguments.bucket.as_ref().unwrap_or(&default).names();
        let mut plan = ClusterPlan::of_nodes(planned);
        for name in names {
            ensure!(is_bucket_name(name), "--bucket `{name}`: a bucket is not called so");
            let mut bucket = BucketPlan::balanced(nodes.len(), replicas, vbuckets);
            bucket.uuid = Some(Uuid::random(&Entropy::real()));
            plan = plan.with_bucket(name, bucket);
        }
        plan.cluster_uuid = Some(Uuid::random(&Entropy::real()));
        let mut description = Description {
            control: None,
            secret: Uuid::random(&Entropy::real()).to_string(),
            user: arguments.user.clone(),
            password: arguments.password.to_string(),
            bucket: names.first().cloned().expect("a cluster has a bucket"),
            nodes,
            tls_between_nodes: arguments.tls_between_nodes.is_none_or(|mode| mode.0 == Switch::On),
            connector: None,
        };
        self.certify(&mut description)?;
        self.write_plan(&plan)?;
        self.write_description(&description)?;
        Ok((description, plan))
    }

    /// Gives every node a certificate of the cluster's authority, new ones where they would end
    /// soon, if nodes speak TLS with each other.
    fn certify(&self, description: &mut Description) -> anyhow::Result<()> {
        if !description.tls_between_nodes {
            return Ok(());
        }
        let (clock, path) = (Clock::real(), self.certificates());
        let directory = AuthorityDirectory::new(&clock, &RealFiles, &path);
        for (index, member) in description.nodes.iter().enumerate() {
            directory.issue_to(&certificate_name(index), &member.host, "Settee cluster")?;
        }
        let node_authorities = RealFiles.read_all(&directory.certificate_path())?;
        let material = Material { node_authorities, ..Material::default() };
        description.connector = Some(Arc::new(Connector::new(clock.clone(), &material)?));
        Ok(())
    }

    fn certificates(&self) -> PathBuf {
        self.path.join("certificates")
    }

    /// What clients and nodes trust.
    pub(super) fn authority(&self) -> PathBuf {
        self.certificates().join(AuthorityDirectory::CERTIFICATE_NAME)
    }

    /// What a node shows.
    pub(super) fn certificate_of(&self, index: usize) -> PathBuf {
        self.certificates().join(certificate_name(index))
    }

    /// What `cluster.json` says, if there is one.
    pub(super) fn description(&self) -> anyhow::Result<Option<Description>> {
        let path = self.path.join("cluster.json");
        match RealFiles.read_all(&path) {
            Ok(content) => {
                let damaged = || format!("{} is damaged; remove the directory", path.display());
                serde_json::from_slice(&content).with_context(damaged).map(Some)
            }
            Err(error) if error.kind == FileErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn write_description(&self, description: &Description) -> anyhow::Result<()> {
        let content = serde_json::to_vec_pretty(description)?;
        Ok(RealFiles.replace_all(&self.path.join("cluster.json"), &content)?)
    }

    /// The map, which is about `bucket` if it names none.
    fn plan(&self, bucket: &str) -> anyhow::Result<ClusterPlan> {
        let path = self.plan_path();
        let text = String::from_utf8(RealFiles.read_all(&path)?)?;
        ClusterPlan::parse(&text, bucket).with_context(|| path.display().to_string())
    }

    /// The plan with what clients have changed of the buckets since it was written, if they have:
    /// the nodes keep the plans that they carry out.
    pub(super) fn with_bucket_changes(
        &self,
        plan: &ClusterPlan,
        cluster: &Description,
    ) -> Option<ClusterPlan> {
        let kept = (0..cluster.nodes.len()).filter_map(|index| {
            let path = self.of_node(index, "").join("cluster-map.json");
            let kept: Kept = serde_json::from_slice(&RealFiles.read_all(&path).ok()?).ok()?;
            ClusterPlan::parse(&kept.map.to_string(), &cluster.bucket).ok()
        });
        let newest = kept.max_by_key(|kept| (kept.changes, kept.revision))?;
        plan.with_bucket_changes_of(&newest)
    }

    pub(super) fn write_plan(&self, plan: &ClusterPlan) -> anyhow::Result<()> {
        let text = plan.to_json();
        let bucket = plan.buckets.keys().next().map_or("", String::as_str);
        let read_back = ClusterPlan::parse(&text, bucket);
        assert!(read_back.is_ok_and(|read| read == *plan), "nodes read the map that was written");
        Ok(RealFiles.replace_all(&self.plan_path(), text.as_bytes())?)
    }

    /// The map that counts.
    pub(super) fn plan_path(&self) -> PathBuf {
        self.path.join("map.json")
    }

    /// A node's data, log or ready file.
    pub(super) fn of_node(&self, index: usize, suffix: &str) -> PathBuf {
        self.path.join(format!("n_{index}{suffix}"))
    }
}

fn certificate_name(index: usize) -> String {
    format!("n_{index}.pem")
}

impl Description {
    /// What begins sessions with its nodes, if they are spoken to by TLS.
    pub(super) fn connector(&self) -> Option<&Connector> {
        self.connector.as_deref()
    }

    /// The buckets of the map, the default one first.
    pub(super) fn bucket_names(&self, plan: &ClusterPlan) -> Vec<String> {
        let (mut names, others): (Vec<String>, Vec<String>) =
            plan.buckets.keys().cloned().partition(|name| *name == self.bucket);
        names.extend(others);
        names
    }
}

impl Member {
    pub(super) fn planned(&self) -> PlannedNode {
        let address = NodeAddress {
            host: self.host.clone(),
            data_port: self.kv,
            management_port: self.mgmt,
            tls: self.tls.map(|MemberTls { kv, mgmt }| TlsPorts { data: kv, management: mgmt }),
            external: None,
        };
        PlannedNode { name: self.name.clone(), address }
    }
}

fn members(count: u16, port_base: u16, management_base: u16) -> anyhow::Result<Vec<Member>> {
    let member = |index: u16| {
        let too_high = || "the ports do not go that far; give a lower --port-base".to_owned();
        Ok(Member {
            name: format!("n_{index}@{HOST}"),
            host: HOST.to_owned(),
            kv: port_base.checked_add(2 * index).with_context(too_high)?,
            mgmt: management_base.checked_add(index).with_context(too_high)?,
            tls: Some(MemberTls {
                kv: port_base.checked_add(2 * index + 1).with_context(too_high)?,
                mgmt: management_base.checked_add(count + index).with_context(too_high)?,
            }),
        })
    };
    (0..count).map(member).collect()
}
