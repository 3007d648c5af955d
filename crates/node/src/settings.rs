//! What an operator says: flags, environment and a TOML file say the same things under the same
//! names. A flag wins over the environment, the environment over the file, the file over the
//! default.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use bucket::{
    BucketType, CompressionMode, DurabilityMinLevel, EvictionPolicy, FullPolicy, PersistenceMode,
};
use clap::Args;
use serde::Deserialize;

use crate::setting_values::{Choice, MemorySize, Threads};

/// What an operator may say. Every field is optional: what nobody says has a default.
#[derive(Args, Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Settings {
    /// Where everything is kept; created when it is missing [default: ./settee-data]
    #[arg(long, value_name = "DIRECTORY", env = "SETTEE_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// The address to listen on, and the one that clients are told [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", env = "SETTEE_HOST")]
    pub host: Option<IpAddr>,
    /// The host name that clients are told, if it is another than the one listened on
    #[arg(long, value_name = "NAME", env = "SETTEE_ADVERTISE")]
    pub advertise: Option<String>,
    /// The data port; 0 for any free one [default: 11210]
    #[arg(long, env = "SETTEE_PORT")]
    pub port: Option<u16>,
    /// The management port; 0 for any free one [default: 8091]
    #[arg(long, value_name = "PORT", env = "SETTEE_MANAGEMENT_PORT")]
    pub management_port: Option<u16>,
    /// A port for memcached clients, open to everybody who reaches it; 0 for any free one
    /// [default: none]
    #[arg(long, value_name = "PORT", env = "SETTEE_MEMCACHED_PORT")]
    pub memcached_port: Option<u16>,
    /// A file that is written once the node serves: ports, credentials, bucket, pid, as JSON
    #[arg(long, value_name = "FILE", env = "SETTEE_READY_FILE")]
    pub ready_file: Option<PathBuf>,
    /// Memory for documents, as 1GiB or in bytes [default: 60 % of the machine's]
    #[arg(long, value_name = "SIZE", env = "SETTEE_MEMORY_QUOTA")]
    pub memory_quota: Option<MemorySize>,
    /// `journal`: a write is durable with one sync for all vBuckets, and their files follow;
    /// `files`: each flush commits each vBucket's file [default: journal]
    #[arg(long, value_name = "MODE", env = "SETTEE_PERSISTENCE")]
    pub persistence: Option<Choice<PersistenceMode>>,
    /// What the journal may take on the disk; a start after a crash reads it [default: 512MiB]
    #[arg(long, value_name = "SIZE", env = "SETTEE_JOURNAL_SIZE")]
    pub journal_size: Option<MemorySize>,
    /// Start although the journal that was in use when the node ended is gone: what only it held is
    /// lost. For one start
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip)]
    pub accept_lost_journal: Option<bool>,
    /// With a journal, milliseconds from one flush of writes that nobody waits for to the next, and
    /// so the age of what a crash may take of them; 0: at once [default: 50]
    #[arg(long, value_name = "MILLISECONDS", env = "SETTEE_FLUSH_INTERVAL_MS")]
    pub flush_interval_ms: Option<u64>,
    /// Milliseconds in which each file that is behind the journal is written once; 0: at once
    /// [default: 10000]
    #[arg(long, value_name = "MILLISECONDS", env = "SETTEE_APPLY_CYCLE_MS")]
    pub apply_cycle_ms: Option<u64>,
    /// How durable every write is at least: none, majority, majority_and_persist_on_master or
    /// persist_to_majority [default: none]
    #[arg(long, value_name = "LEVEL", env = "SETTEE_DURABILITY_MIN_LEVEL")]
    pub durability_min_level: Option<Choice<DurabilityMinLevel>>,
    /// Whether durable writes go by this node alone where fewer copies are placed than a majority;
    /// otherwise they are refused [default: false]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL",
          env = "SETTEE_DURABILITY_IMPOSSIBLE_FALLBACK")]
    pub durability_impossible_fallback: Option<bool>,
    /// This node's name in a cluster map; without it, ns_1@ and the host that clients are told
    #[arg(long, value_name = "NAME", env = "SETTEE_NODE_NAME")]
    pub node_name: Option<String>,
    /// The map of a cluster of several nodes, which share user and password; see docs/cluster.md
    #[arg(long, value_name = "FILE", env = "SETTEE_CLUSTER_MAP")]
    pub cluster_map: Option<PathBuf>,
    /// The bucket's name; a data directory has one bucket [default: default]
    #[arg(long, value_name = "NAME", env = "SETTEE_BUCKET")]
    pub bucket: Option<String>,
    /// vBuckets: a power of two, fixed when the bucket is made [default: 1024]
    #[arg(long, value_name = "COUNT", env = "SETTEE_VBUCKETS")]
    pub vbuckets: Option<u16>,
    /// `couchbase` keeps documents on disk, `ephemeral` in memory alone; fixed when the bucket is
    /// made [default: couchbase]
    #[arg(long, value_name = "TYPE", env = "SETTEE_BUCKET_TYPE")]
    pub bucket_type: Option<Choice<BucketType>>,
    /// What an ephemeral bucket does when its memory is full: `auto_delete` or `fail_new_data`
    /// [default: auto_delete]
    #[arg(long, value_name = "POLICY", env = "SETTEE_EPHEMERAL_FULL_POLICY")]
    pub ephemeral_full_policy: Option<Choice<FullPolicy>>,
    /// What leaves memory when it is full: `value`s alone, or documents in `full` with their keys
    /// [default: value]
    #[arg(long, value_name = "POLICY", env = "SETTEE_EVICTION_POLICY")]
    pub eviction_policy: Option<Choice<EvictionPolicy>>,
    /// What happens to compressed values: `off` inflates them, `passive` keeps them as they come,
    /// `active` compresses the others, too [default: passive]
    #[arg(long, value_name = "MODE", env = "SETTEE_COMPRESSION")]
    pub compression: Option<Choice<CompressionMode>>,
    /// The administrator's name [default: Administrator]
    #[arg(long, env = "SETTEE_USER")]
    pub user: Option<String>,
    /// The administrator's password; of a new data directory generated and printed once when nobody
    /// says it
    #[arg(long, env = "SETTEE_PASSWORD", hide_env_values = true)]
    pub password: Option<String>,
    /// Give the administrator of an existing data directory this password, or a generated one, or
    /// add another administrator; without it both are refused. For one start
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip)]
    pub set_password: Option<bool>,
    /// Front-end threads [default: three quarters of the CPUs]
    #[arg(long, value_name = "COUNT", env = "SETTEE_THREADS")]
    pub threads: Option<usize>,
    /// Threads that read for clients: a number, `balanced` or `disk_io_optimized`
    /// [default: balanced]
    #[arg(long, value_name = "COUNT", env = "SETTEE_READER_THREADS")]
    pub reader_threads: Option<Threads>,
    /// Threads that write behind them, in the same words [default: balanced]
    #[arg(long, value_name = "COUNT", env = "SETTEE_WRITER_THREADS")]
    pub writer_threads: Option<Threads>,
    /// Threads for other work with files [default: two for each CPU]
    #[arg(long, value_name = "COUNT", env = "SETTEE_AUXIO_THREADS")]
    pub auxio_threads: Option<Threads>,
    /// Threads for tasks that only compute [default: 2 to 8, by the CPUs]
    #[arg(long, value_name = "COUNT", env = "SETTEE_NONIO_THREADS")]
    pub nonio_threads: Option<Threads>,
    /// Let clients empty the bucket (FLUSH)
    #[arg(long, env = "SETTEE_ENABLE_FLUSH", num_args = 0..=1, default_missing_value = "true")]
    pub enable_flush: Option<bool>,
    /// What is logged: error, warn, info, debug, trace, or filters such as bucket=debug
    /// [default: info]
    #[arg(long, value_name = "FILTER", env = "SETTEE_LOG_LEVEL")]
    pub log_level: Option<String>,
    /// Log lines as JSON
    #[arg(long, env = "SETTEE_LOG_JSON", num_args = 0..=1, default_missing_value = "true")]
    pub log_json: Option<bool>,
    /// Try things out: a temporary data directory, and the password `password`
    #[arg(long, env = "SETTEE_DEV", num_args = 0..=1, default_missing_value = "true")]
    pub dev: Option<bool>,
}

impl Settings {
    /// Reads a TOML file.
    pub fn from_file(path: &Path) -> anyhow::Result<Self> {
        let text = platform::files::read_text(path)
            .with_context(|| format!("the configuration file {}", path.display()))?;
        toml::from_str(&text)
            .with_context(|| format!("the configuration file {} is not right", path.display()))
    }

    /// These settings, and for what they do not say those of `other`.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            data_dir: self.data_dir.or(other.data_dir),
            host: self.host.or(other.host),
            advertise: self.advertise.or(other.advertise),
            port: self.port.or(other.port),
            management_port: self.management_port.or(other.management_port),
            memcached_port: self.memcached_port.or(other.memcached_port),
            ready_file: self.ready_file.or(other.ready_file),
            memory_quota: self.memory_quota.or(other.memory_quota),
            persistence: self.persistence.or(other.persistence),
            journal_size: self.journal_size.or(other.journal_size),
            accept_lost_journal: self.accept_lost_journal.or(other.accept_lost_journal),
            flush_interval_ms: self.flush_interval_ms.or(other.flush_interval_ms),
            apply_cycle_ms: self.apply_cycle_ms.or(other.apply_cycle_ms),
            durability_min_level: self.durability_min_level.or(other.durability_min_level),
            durability_impossible_fallback: self
                .durability_impossible_fallback
                .or(other.durability_impossible_fallback),
            node_name: self.node_name.or(other.node_name),
            cluster_map: self.cluster_map.or(other.cluster_map),
            bucket: self.bucket.or(other.bucket),
            vbuckets: self.vbuckets.or(other.vbuckets),
            bucket_type: self.bucket_type.or(other.bucket_type),
            ephemeral_full_policy: self.ephemeral_full_policy.or(other.ephemeral_full_policy),
            eviction_policy: self.eviction_policy.or(other.eviction_policy),
            compression: self.compression.or(other.compression),
            user: self.user.or(other.user),
            password: self.password.or(other.password),
            set_password: self.set_password.or(other.set_password),
            threads: self.threads.or(other.threads),
            reader_threads: self.reader_threads.or(other.reader_threads),
            writer_threads: self.writer_threads.or(other.writer_threads),
            auxio_threads: self.auxio_threads.or(other.auxio_threads),
            nonio_threads: self.nonio_threads.or(other.nonio_threads),
            enable_flush: self.enable_flush.or(other.enable_flush),
            log_level: self.log_level.or(other.log_level),
            log_json: self.log_json.or(other.log_json),
            dev: self.dev.or(other.dev),
        }
    }
}
