//! The node: its parts in the order in which they start, and the other way round when they stop.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use bucket::{ApplyConfig, Bucket, BucketConfig, EvictionConfig, Surroundings};
use cluster::{ClusterPlan, NodeAddress};
use executor::ExecutorPool;
use management::ManagementServer;
use platform::files::RealFiles;
use platform::{Clock, Files, Random};
use replication::{Credentials, Hub, Replicator};
use server::{Doors, Mailboxes, Parts, Server, ServerOptions};

use crate::administrator;
use crate::client_limits;
use crate::config::NodeConfig;
use crate::data_directory::DataDirectory;
use crate::membership::{CarriedOut, Identity, Membership, RetryThread};
use crate::node_view::View;
use crate::peer_copies;
use crate::temporary_directory::TemporaryDirectory;

/// The version that clients are told. They parse it and expect one of the original's.
pub(crate) const VERSION: &str = concat!("7.6.0-settee-", env!("CARGO_PKG_VERSION"));
/// How often a node that loads before it serves says so.
const LOADING_STEP: Duration = Duration::from_secs(2);

/// A running node.
pub struct Node {
    config: NodeConfig,
    pool: ExecutorPool,
    bucket: Bucket,
    membership: Arc<Membership>,
    retries: RetryThread,
    server: Arc<Server>,
    replicator: Arc<Replicator>,
    management: management::Handle,
    management_port: u16,
    /// Released last: until then no other node may open the directory.
    directory: DataDirectory,
    /// Removed behind that.
    temporary: Option<TemporaryDirectory>,
    port: u16,
    memcached_port: Option<u16>,
    /// The password, if it was said or generated at this start.
    password: Option<String>,
    password_is_new: bool,
}

impl Node {
    /// Starts a node. It accepts connections at once; documents are served as they are loaded.
    pub fn start(config: NodeConfig) -> anyhow::Result<Self> {
        let open_files_limit = platform::process::raise_open_files_limit();
        let clock = Clock::real();
        let files: Arc<dyn Files> = Arc::new(RealFiles);
        let temporary =
            config.is_temporary.then(|| TemporaryDirectory::new(&*files, &config.data_dir));
        let directory = DataDirectory::open(&*files, &config.data_dir, &config.bucket)?;
        let plan = read_plan(&*files, &config)?;
        directory.check_bucket(&*files, &config.bucket)?;
        directory.make_users_private();
        let (users, password) = administrator::open_users(&*files, &directory.users(), &config)?;
        let (data, port) = open_door(&config, config.port, "--port")?;
        let memcached = config
            .memcached_port
            .map(|port| open_door(&config, port, "--memcached-port"))
            .transpose()?;
        let (rest, management_port) = open_management_door(&config)?;
        let pool = ExecutorPool::start(clock.clone(), config.pool.clone())?;
        let mailboxes = Mailboxes::for_workers(config.threads);
        let surroundings = Surroundings {
            clock: clock.clone(),
            files: Arc::clone(&files),
            pool: pool.clone(),
            completions: Arc::new(mailboxes.clone()),
            random_seed: Random::from_system().next_u64(),
        };
        let defaults = BucketConfig::named(&config.bucket);
        let bucket_config = BucketConfig {
            vbucket_count: config.vbucket_count.unwrap_or(defaults.vbucket_count),
            demands_vbucket_count: config.vbucket_count.is_some(),
            memory_quota_bytes: config.memory_quota_bytes,
            bucket_type: config.bucket_type,
            persistence: config.persistence,
            accepts_lost_journal: config.accepts_lost_journal,
            durability: config.durability,
            flush_interval: config.flush_interval.unwrap_or(defaults.flush_interval),
            apply: ApplyConfig {
                cycle: config.apply_cycle.unwrap_or(defaults.apply.cycle),
                ..defaults.apply
            },
            ephemeral_full_policy: config.ephemeral_full_policy,
            compression: config.compression,
            eviction: EvictionConfig {
                policy: config.eviction_policy,
                ..EvictionConfig::default()
            },
            open_files_max: client_limits::open_files_max(open_files_limit),
            ..defaults
        };
        let bucket_directory = directory.bucket(&*files, &config.bucket)?;
        let bucket = Bucket::open(surroundings, bucket_config, &bucket_directory)
            .with_context(|| format!("the bucket `{}`", config.bucket))?;
        let hub = Hub::new(&bucket);
        bucket.observe_streams(hub.clone());
        let users = Arc::new(users);
        let identity = Identity {
            name: config.node_name.clone(),
            address: NodeAddress {
                host: config.advertised_host.clone(),
                data_port: port,
                management_port,
            },
            cluster_uuid: directory.cluster_uuid,
        };
        let membership = Arc::new(Membership::new(identity, bucket.clone())?);
        if let Some(plan) = &plan {
            // What the files say about roles may be older than the map: nobody is to read it.
            while !bucket.wait_until_serving(LOADING_STEP) {
                tracing::info!("loading documents before the cluster map is carried out");
            }
            match membership.carry_out(plan) {
                CarriedOut::Done => {}
                CarriedOut::Older(_) => bail!("the cluster map is older than this node's"),
                CarriedOut::Refused(reason) => bail!("the cluster map cannot be used: {reason}"),
            }
        }
        let parts = Parts {
            clock: clock.clone(),
            users: Arc::clone(&users),
            bucket: bucket.clone(),
            hub: Arc::clone(&hub),
            cluster: membership.view(),
            pool: pool.clone(),
            mailboxes,
        };
        let options = ServerOptions {
            limits: client_limits::server_limits(&config, open_files_limit),
            version: VERSION.to_owned(),
            flush_enabled: config.flush_enabled,
        };
        let (memcached, memcached_port) = memcached.unzip();
        let server = Arc::new(Server::start(parts, options, Doors { data, memcached })?);
        membership.serve_with(Arc::clone(&server));
        let replicator = start_replicator(&bucket, hub, &config, password.0.as_deref(), &pool)?;
        membership.replicate_with(Arc::clone(&replicator));
        membership.ask_with(peer_copies::asking(&config, password.0.as_deref()));
        let retries = RetryThread::start(&membership)?;
        let view = View::new(
            clock,
            Arc::clone(&membership),
            bucket.clone(),
            Arc::clone(&server),
            config.flush_enabled,
        );
        let management = ManagementServer::start(rest, Arc::new(view), users)?;
        let (password, password_is_new) = password;
        Ok(Self {
            config,
            pool,
            bucket,
            membership,
            retries,
            server,
            replicator,
            management,
            management_port,
            directory,
            temporary,
            port,
            memcached_port,
            password,
            password_is_new,
        })
    }

    /// The configuration that it runs with.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// The data port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The memcached port, if there is one.
    pub fn memcached_port(&self) -> Option<u16> {
        self.memcached_port
    }

    /// The management port.
    pub fn management_port(&self) -> u16 {
        self.management_port
    }

    /// The administrator's password, if this start was told it or made it.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// Whether the password was generated at this start, and has to be printed.
    pub fn password_is_new(&self) -> bool {
        self.password_is_new
    }

    /// The bucket.
    pub fn bucket(&self) -> &Bucket {
        &self.bucket
    }

    /// Blocks until every vBucket serves, at most for `patience`.
    pub fn wait_until_serving(&self, patience: Duration) -> bool {
        self.bucket.wait_until_serving(patience)
    }

    /// To be called once every vBucket serves.
    pub fn begin_serving(&self) {
        if self.config.cluster_map.is_none() {
            self.membership.serve_alone();
        }
    }

    /// Answers what was executed, flushes everything, ends all threads.
    pub fn stop(self) -> anyhow::Result<()> {
        self.management.shutdown();
        self.retries.stop();
        self.replicator.stop();
        self.server.stop();
        let flushed = self.bucket.shut_down();
        self.pool.shutdown();
        drop(self.directory);
        drop(self.temporary);
        if let Err(unflushed_count) = flushed {
            bail!(
                "{unflushed_count} vBuckets have documents that could not be written to {}; what \
                 was reported as persisted is there",
                self.config.data_dir.display()
            );
        }
        Ok(())
    }
}

fn open_door(
    config: &NodeConfig,
    port: u16,
    flag: &str,
) -> anyhow::Result<(platform::network::TcpListener, u16)> {
    let address = SocketAddr::new(config.host, port);
    server::open_door(address).map_err(|error| cannot_listen(address, flag, error))
}

/// What to do about it depends on the error.
fn cannot_listen(address: SocketAddr, flag: &str, error: io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        ErrorKind::AddrInUse => format!("is another node running? {flag} 0 takes any free port"),
        ErrorKind::AddrNotAvailable => {
            "this machine has no such address; --host says one that it has".to_owned()
        }
        ErrorKind::PermissionDenied => {
            format!("ports below 1024 take rights; {flag} says another")
        }
        _ => format!("{flag} and --host say another"),
    };
    anyhow::Error::new(error).context(format!("cannot listen on {address}; {hint}"))
}

fn open_management_door(config: &NodeConfig) -> anyhow::Result<(std::net::TcpListener, u16)> {
    let address = SocketAddr::new(config.host, config.management_port);
    let listener = platform::network::listen_standard(address);
    let listener = listener.map_err(|error| cannot_listen(address, "--management-port", error))?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// The thread that follows other nodes, as the administrator: nodes share users.
fn start_replicator(
    bucket: &Bucket,
    hub: Arc<Hub>,
    config: &NodeConfig,
    password: Option<&str>,
    pool: &ExecutorPool,
) -> anyhow::Result<Arc<Replicator>> {
    let credentials = Credentials {
        node: config.node_name.clone(),
        user: config.user.clone(),
        password: password.unwrap_or_default().to_owned(),
    };
    Ok(Arc::new(Replicator::start(bucket.clone(), hub, credentials, pool.clone())?))
}

/// The plan that the node starts with, if it is one of several.
fn read_plan(files: &dyn Files, config: &NodeConfig) -> anyhow::Result<Option<ClusterPlan>> {
    let Some(path) = &config.cluster_map else { return Ok(None) };
    let shown = path.display();
    let content = files.read_all(path);
    let content = content.with_context(|| format!("the cluster map {shown}"))?;
    let text = String::from_utf8(content).with_context(|| format!("{shown} is not text"))?;
    ClusterPlan::parse(&text).with_context(|| format!("{shown}")).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics;
    use crate::setting_values::MemorySize;
    use crate::settings::Settings;

    #[test]
    fn metrics_keep_the_rules_of_prometheus() {
        let directory = tempfile::tempdir().unwrap();
        let settings = Settings {
            data_dir: Some(directory.path().join("data")),
            port: Some(0),
            management_port: Some(0),
            vbuckets: Some(4),
            threads: Some(1),
            memory_quota: Some(MemorySize(64 << 20)),
            ..Settings::default()
        };
        let node = Node::start(settings.resolve().unwrap()).unwrap();
        let metrics = metrics::all(&node.bucket, &node.server, 0, Duration::from_secs(1));
        assert!(metrics.len() > 60);
        for metric in &metrics {
            assert_eq!(metric.broken_rule(), None, "{}", metric.name);
        }
        node.stop().unwrap();
    }
}
