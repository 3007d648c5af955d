//! What a node is to be, and what that comes to for its parts.

use std::net::IpAddr;
use std::path::PathBuf;

use executor::{PoolOptions, TaskKind, ThreadCounts, ThreadSetting};
use platform::redaction::Secret;
use server::ServerLimits;

use crate::bucket_settings::BucketSettings;

/// A configuration that a node can start with. Whoever makes one has checked that its values are
/// right and go together.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Where everything is kept; created when it is missing.
    pub data_dir: PathBuf,
    /// Whether the data directory goes with the node.
    pub is_temporary: bool,
    /// The address to listen on, and the one that clients are told.
    pub host: IpAddr,
    /// The host name that clients are told, if it is another.
    pub advertise: Option<String>,
    /// The data port; 0 for any free one.
    pub port: u16,
    /// A port for memcached clients, open to everybody; 0 for any free one.
    pub memcached_port: Option<u16>,
    /// How it speaks TLS, if it does.
    pub tls: Option<TlsConfig>,
    /// Its name in a cluster map, if it is not made from the host.
    pub node_name: Option<String>,
    /// The file with the map of its cluster.
    pub cluster_map: Option<PathBuf>,
    /// Whether it forgets the map that it has carried out last, and is alone.
    pub leave_cluster: bool,
    /// The administrator's name.
    pub user: String,
    /// The administrator's password; without it the data directory's is kept, or one is generated.
    pub password: Option<Secret>,
    /// Whether an administrator that the data directory knows may be given another password, or
    /// another one be added.
    pub set_password: bool,
    /// Logins that may fail in a minute from one address before others from there are refused for
    /// the rest of it; `None` for any number.
    pub failed_logins_per_minute_max: Option<u32>,
    /// Connections to the data port without a login from one address, at most.
    pub strangers_of_address_max: usize,
    /// Front-end threads.
    pub threads: usize,
    /// Threads that read for clients.
    pub reader_threads: ThreadSetting,
    /// Threads that write behind them.
    pub writer_threads: ThreadSetting,
    /// Threads for other work with files.
    pub auxio_threads: ThreadSetting,
    /// Threads for tasks that only compute.
    pub nonio_threads: ThreadSetting,
    /// Its buckets, with different names, beside those that are there. The first is that of clients
    /// that select none, and what a cluster map means that names no bucket.
    pub buckets: Vec<BucketSettings>,
    /// When these are made, if they are not there.
    pub makes_buckets: MakesBuckets,
    /// Memory for documents of each bucket that is there beside these and of which none is kept;
    /// without it they have a part of the rest.
    pub bucket_quota_bytes: Option<u64>,
    /// Memory for documents of all buckets, at most.
    pub buckets_bytes_max: u64,
}

/// When a node makes the buckets that it is started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MakesBuckets {
    /// At every start.
    AtEachStart,
    /// Where there has never been any.
    Once,
    /// They are made while it runs: what is said of them is what new ones have.
    Never,
}

/// How a node speaks TLS.
#[derive(Clone, Debug, Default)]
pub struct TlsConfig {
    /// Its data port; 0 for any free one.
    pub port: u16,
    /// Its management port, which is open already.
    pub management_port: u16,
    /// The file with its certificate, if it is not to make one itself.
    pub certificate: Option<PathBuf>,
    /// The file with the key of that.
    pub key: Option<PathBuf>,
    /// The file with the authorities that sign clients' certificates.
    pub client_authorities: Option<PathBuf>,
    /// The file with the authorities that sign nodes' certificates: with it, the node speaks with
    /// others by TLS alone.
    pub node_authorities: Option<PathBuf>,
}

/// What a node is when nobody says anything.
impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::from("settee-data"),
            is_temporary: false,
            host: IpAddr::from([127, 0, 0, 1]),
            advertise: None,
            port: 11210,
            memcached_port: None,
            tls: None,
            node_name: None,
            cluster_map: None,
            leave_cluster: false,
            user: "Administrator".to_owned(),
            password: None,
            set_password: false,
            failed_logins_per_minute_max: None,
            strangers_of_address_max: ServerLimits::default().strangers_of_address_max,
            threads: (platform::threads::available_cpus() * 3 / 4).max(1),
            reader_threads: ThreadSetting::default(),
            writer_threads: ThreadSetting::default(),
            auxio_threads: ThreadSetting::default(),
            nonio_threads: ThreadSetting::default(),
            buckets: vec![BucketSettings::default()],
            makes_buckets: MakesBuckets::AtEachStart,
            bucket_quota_bytes: None,
            buckets_bytes_max: BucketSettings::default().memory_quota_bytes,
        }
    }
}

impl NodeConfig {
    /// The host that clients are told.
    pub fn advertised_host(&self) -> String {
        self.advertise.clone().unwrap_or_else(|| self.host.to_string())
    }

    /// Threads of background tasks.
    pub fn pool_options(&self) -> PoolOptions {
        let cpus = platform::threads::available_cpus();
        let mut options = PoolOptions::for_cpus(cpus);
        for (kind, threads) in [
            (TaskKind::Reader, self.reader_threads),
            (TaskKind::Writer, self.writer_threads),
            (TaskKind::AuxIo, self.auxio_threads),
            (TaskKind::NonIo, self.nonio_threads),
        ] {
            let normal = threads.normal_threads(kind, cpus);
            options.set_threads(kind, ThreadCounts { normal, ..options.threads(kind) });
        }
        options.gives_memory_back = true;
        options
    }

    /// The name of the first bucket.
    pub fn default_bucket(&self) -> &str {
        self.buckets.first().map_or("default", |bucket| &bucket.name)
    }

    /// What is not said of a bucket that is not among these.
    pub(crate) fn template(&self) -> BucketSettings {
        self.buckets.first().cloned().unwrap_or_default()
    }

    /// What a start says of a bucket that it finds and that is not among these.
    pub(crate) fn found_bucket(&self, name: &str) -> BucketSettings {
        BucketSettings {
            name: name.to_owned(),
            vbuckets: None,
            bucket_type: None,
            conflict_resolution: None,
            memory_quota_bytes: self.bucket_quota_bytes.unwrap_or_default(),
            has_part_of_rest: self.bucket_quota_bytes.is_none(),
            ..self.template()
        }
    }
}
