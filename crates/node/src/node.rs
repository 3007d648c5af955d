//! The node: its parts in the order in which they start, and the other way round when they stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use auth::{Users, UsersConfig};
use bucket::{ApplyConfig, Bucket, BucketConfig, EvictionConfig, Surroundings};
use cluster::{ClusterPlan, NodeAddress};
use executor::ExecutorPool;
use management::ManagementServer;
use platform::files::RealFiles;
use platform::{Clock, FileErrorKind, Files, Random};
use replication::{Credentials, Hub, Replicator};
use server::{Doors, Mailboxes, Parts, Server, ServerLimits, ServerOptions};

use crate::config::NodeConfig;
use crate::data_directory::DataDirectory;
use crate::membership::{CarriedOut, Identity, Membership};
use crate::node_view::View;

/// The version that clients are told. They parse it and expect one of the original's.
pub(crate) const VERSION: &str = concat!("7.6.0-settee-", env!("CARGO_PKG_VERSION"));
/// Descriptors left to connections when files take their share.
const FILES_SHARE: u64 = 4;
/// Descriptors that neither connections nor a bucket's files take: logs, the journal, REST,
/// replication, backups.
const FILES_RESERVED: u64 = 160;
/// Connections that are let in however few descriptors there are.
const CONNECTIONS_MIN: usize = 16;
/// The part of the quota that clients may have the node hold beside documents, and the least.
const CLIENT_MEMORY_SHARE: u64 = 4;
const CLIENT_MEMORY_MIN_BYTES: usize = 64 << 20;
/// Passwords that are remembered as verified.
const VERIFIED_MAX: usize = 1024;

/// How often a node that loads before it serves says so.
const LOADING_STEP: Duration = Duration::from_secs(2);

/// A running node.
pub struct Node {
    config: NodeConfig,
    pool: ExecutorPool,
    bucket: Bucket,
    membership: Arc<Membership>,
    server: Arc<Server>,
    replicator: Arc<Replicator>,
    management: management::Handle,
    management_port: u16,
    /// Released last: until then no other node may open the directory.
    directory: DataDirectory,
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
        let directory = DataDirectory::open(&*files, &config.data_dir, &config.bucket)?;
        let plan = read_plan(&*files, &config)?;
        let (users, password) = open_users(&*files, &directory, &config)?;
        let (data, port) = open_door(&config, config.port)?;
        let memcached = config.memcached_port.map(|port| open_door(&config, port)).transpose()?;
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
            vbucket_count: config.vbucket_count,
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
            open_files_max: usize::try_from(open_files_limit / FILES_SHARE).unwrap_or(1024).max(16),
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
            match membership.carry_out(plan)? {
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
            limits: server_limits(&config, open_files_limit),
            version: VERSION.to_owned(),
            flush_enabled: config.flush_enabled,
        };
        let (memcached, memcached_port) = memcached.unzip();
        let server = Arc::new(Server::start(parts, options, Doors { data, memcached })?);
        membership.serve_with(Arc::clone(&server));
        let replicator = start_replicator(&bucket, hub, &config, password.0.as_deref(), &pool)?;
        membership.replicate_with(Arc::clone(&replicator));
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
            server,
            replicator,
            management,
            management_port,
            directory,
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
        self.replicator.stop();
        self.server.stop();
        let flushed = self.bucket.shut_down();
        self.pool.shutdown();
        drop(self.directory);
        if self.config.is_temporary {
            platform::files::remove_tree(&self.config.data_dir)?;
        }
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
) -> anyhow::Result<(platform::network::TcpListener, u16)> {
    let address = SocketAddr::new(config.host, port);
    server::open_door(address).with_context(|| {
        format!("cannot listen on {address}; is another node running? --port 0 takes any free port")
    })
}

/// What clients may take of this node: descriptors that its files leave, and a part of its memory.
fn server_limits(config: &NodeConfig, open_files_limit: u64) -> ServerLimits {
    let defaults = ServerLimits::default();
    let files = open_files_limit / FILES_SHARE + FILES_RESERVED;
    let left = usize::try_from(open_files_limit.saturating_sub(files)).unwrap_or(usize::MAX);
    let memory = usize::try_from(config.memory_quota_bytes / CLIENT_MEMORY_SHARE);
    ServerLimits {
        connections_max: left.clamp(CONNECTIONS_MIN, defaults.connections_max),
        client_bytes_max: memory.unwrap_or(usize::MAX).max(CLIENT_MEMORY_MIN_BYTES),
        ..defaults
    }
}

/// The users of the directory, and the administrator's password with whether it is a new one.
fn open_users(
    files: &dyn Files,
    directory: &DataDirectory,
    config: &NodeConfig,
) -> anyhow::Result<(Users, (Option<String>, bool))> {
    let users = Users::new(UsersConfig { verified_max: VERIFIED_MAX, ..UsersConfig::default() });
    let path = directory.users();
    match files.read_all(&path) {
        Ok(content) => {
            let text = String::from_utf8(content).context("users.json is not text")?;
            users.add_from_json(&text).with_context(|| format!("{}", path.display()))?;
        }
        Err(error) if error.kind == FileErrorKind::NotFound => {}
        Err(error) => return Err(error.into()),
    }
    let is_known = users.credentials(&config.user).is_some();
    let (password, is_new) = match (&config.password, is_known) {
        (Some(password), _) => (password.clone(), false),
        (None, true) => return Ok((users, (None, false))),
        (None, false) => (auth::generate_password(), true),
    };
    let is_unchanged = is_known && users.check_password(&config.user, password.as_bytes());
    if !is_unchanged {
        users.set_password(&config.user, password.as_bytes());
        files.replace_all(&path, users.to_json().as_bytes())?;
    }
    Ok((users, (Some(password), is_new)))
}

fn open_management_door(config: &NodeConfig) -> anyhow::Result<(std::net::TcpListener, u16)> {
    let address = SocketAddr::new(config.host, config.management_port);
    let listener = platform::network::listen_standard(address).with_context(|| {
        format!(
            "cannot listen on {address}; is another node running? --management-port 0 takes any \
             free port"
        )
    })?;
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
