//! What an operator says: flags, environment and a TOML file say the same things under the same
//! names. A flag wins over the environment, the environment over the file, the file over the
//! default.
//!
//! A setting is one row here; docs/configuration.md is made from them.

use std::fmt::{self, Debug, Formatter};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use bucket::{
    BucketConfig, BucketType, CompressionMode, ConflictResolution, DurabilityMinLevel,
    EvictionPolicy, FullPolicy, PersistenceMode,
};
use clap::{Arg, Args};
use node::{BucketSettings, NodeConfig, is_bucket_name};
use serde::Deserialize;

use crate::setting_table::{Allowed, name_of, settings, shown_value, with_default};
use crate::setting_values::{
    BucketNames, BucketQuotas, Choice, MemorySize, NetworkLoop, SetupMode, Switch, Threads,
};

/// Ports when nobody says others.
pub(crate) const MANAGEMENT_PORT: u16 = 8091;
pub(crate) const TLS_PORT: u16 = 11207;
pub(crate) const MANAGEMENT_TLS_PORT: u16 = 18091;
/// A quota that is smaller is a mistake.
const MEMORY_QUOTA_MIN: MemorySize = MemorySize(bucket::MEMORY_QUOTA_BYTES_MIN);
/// A journal that is smaller would be full of single batches.
const JOURNAL_SIZE_MIN: MemorySize = MemorySize(64 << 20);
const THREADS_MAX: usize = 128;
/// A log file when nobody says how large it may be, and one that would hold nothing.
const LOG_FILE_BYTES: u64 = 20 << 20;
const LOG_FILE_SIZE_MIN: MemorySize = MemorySize(64 << 10);

settings! {
    /// Where everything is kept; created when it is missing
    #[arg(long, value_name = "DIRECTORY", env = "SETTEE_DATA_DIR")]
    data_dir: PathBuf { default: of_node().data_dir => "./settee-data", }

    /// The address to listen on, and the one that clients are told
    #[arg(long, value_name = "ADDRESS", env = "SETTEE_HOST")]
    host: IpAddr { default: of_node().host, }

    /// The host name that clients are told, if it is another than the one listened on
    #[arg(long, value_name = "NAME", env = "SETTEE_ADVERTISE")]
    advertise: String {
        allowed: Allowed::If {
            range: cluster::HOST_RULE,
            complaint: " `{value}`: clients connect to {range}",
            holds: |host| cluster::is_host(host),
        },
    }

    /// The data port; 0 for any free one
    #[arg(long, env = "SETTEE_PORT")]
    port: u16 { default: of_node().port, }

    /// The management port; 0 for any free one
    #[arg(long, value_name = "PORT", env = "SETTEE_MANAGEMENT_PORT")]
    management_port: u16 { default: MANAGEMENT_PORT, }

    /// Whether clients may come by TLS, too: `on` or `off`
    #[arg(long, value_name = "MODE", env = "SETTEE_TLS")]
    tls: Choice<Switch> { default: Choice(Switch::On), }

    /// The data port behind TLS; 0 for any free one
    #[arg(long, value_name = "PORT", env = "SETTEE_TLS_PORT")]
    tls_port: u16 { unsaid: "11207, or any free one where --port says another", }

    /// The management port behind TLS; 0 for any free one
    #[arg(long, value_name = "PORT", env = "SETTEE_MANAGEMENT_TLS_PORT")]
    management_tls_port: u16 {
        unsaid: "18091, or any free one where --management-port says another",
    }

    /// The node's certificate with those between it and what clients trust, PEM; without it the
    /// node makes one. SIGHUP reads it again
    #[arg(long, value_name = "FILE", env = "SETTEE_TLS_CERTIFICATE")]
    tls_certificate: PathBuf { route: "POST /node/controller/reloadCertificate", }

    /// The key of that certificate, PEM
    #[arg(long, value_name = "FILE", env = "SETTEE_TLS_KEY")]
    tls_key: PathBuf { route: "POST /node/controller/reloadCertificate", }

    /// The authorities that sign clients' certificates, PEM; without it, the one that the node has
    /// made for itself
    #[arg(long, value_name = "FILE", env = "SETTEE_TLS_CLIENT_CA")]
    tls_client_ca: PathBuf { route: "POST /node/controller/loadTrustedCAs", }

    /// The authorities that sign nodes' certificates, PEM: with it, this node speaks with others by
    /// TLS alone, and believes those that one of them has signed; without it, nodes speak plainly
    #[arg(long, value_name = "FILE", env = "SETTEE_TLS_NODE_CA")]
    tls_node_ca: PathBuf { route: "POST /node/controller/loadTrustedCAs", }

    /// A port for programs that wait for a query service before they go on, such as Testcontainers'
    /// module for Go: pings are answered, every statement is refused, and clients are told of none
    #[arg(long, value_name = "PORT", env = "SETTEE_QUERY_STUB_PORT")]
    query_stub_port: u16 { unsaid: "none", }

    /// A port for memcached clients, open to everybody who reaches it; 0 for any free one
    #[arg(long, value_name = "PORT", env = "SETTEE_MEMCACHED_PORT")]
    memcached_port: u16 { unsaid: "none", }

    /// A file that is written once the node serves: ports, credentials, bucket, pid, as JSON
    #[arg(long, value_name = "FILE", env = "SETTEE_READY_FILE")]
    ready_file: PathBuf {}

    /// Memory for documents of all buckets, as 1GiB or in bytes
    #[arg(long, value_name = "SIZE", env = "SETTEE_MEMORY_QUOTA")]
    memory_quota: MemorySize {
        default: MemorySize(of_bucket().memory_quota_bytes)
            => "60 % of the machine's",
        allowed: Allowed::AtLeast(MEMORY_QUOTA_MIN),
    }

    /// Memory for documents of each bucket that is made at the start. Unless it is said, they have
    /// what buckets leave that are made while the node runs
    #[arg(long, value_name = "SIZE", env = "SETTEE_BUCKET_QUOTA")]
    bucket_quota: MemorySize {
        unsaid: "an equal part of what is left of `--memory-quota`",
        allowed: Allowed::AtLeast(MEMORY_QUOTA_MIN),
        parameter: "max_size",
        route: "POST /pools/default/buckets/{bucket} `ramQuotaMB`",
    }

    /// `journal`: a write is durable with one sync for all vBuckets, and their files follow;
    /// `files`: each flush commits each vBucket's file
    #[arg(long, value_name = "MODE", env = "SETTEE_PERSISTENCE")]
    persistence: Choice<PersistenceMode> { default: Choice::default(), }

    /// What the journal may take on the disk; a start after a crash reads it
    #[arg(long, value_name = "SIZE", env = "SETTEE_JOURNAL_SIZE")]
    journal_size: MemorySize {
        default: MemorySize(of_bucket().journal_size_bytes),
        allowed: Allowed::AtLeast(JOURNAL_SIZE_MIN),
    }

    /// Start although the journal that was in use when the node ended is gone: what only it held is
    /// lost. For one start
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip)]
    accept_lost_journal: bool { default: false, }

    /// With a journal, milliseconds from one flush of writes that nobody waits for to the next, and
    /// so the age of what a crash may take of them; 0: at once
    #[arg(long, value_name = "MILLISECONDS", env = "SETTEE_FLUSH_INTERVAL_MS")]
    flush_interval_ms: u64 { default: millis(of_bucket().flush_interval), }

    /// Milliseconds in which each file that is behind the journal is written once; 0: at once
    #[arg(long, value_name = "MILLISECONDS", env = "SETTEE_APPLY_CYCLE_MS")]
    apply_cycle_ms: u64 { default: millis(of_bucket().apply_cycle), }

    /// Milliseconds after which a range scan is cancelled that nobody goes on with
    #[arg(long, value_name = "MILLISECONDS", env = "SETTEE_RANGE_SCAN_IDLE_TIME_MS")]
    range_scan_idle_time_ms: u64 {
        default: millis(of_bucket().range_scan_idle_time),
        allowed: Allowed::AtLeast(1),
    }

    /// How durable every write is at least: none, majority, majority_and_persist_on_master or
    /// persist_to_majority
    #[arg(long, value_name = "LEVEL", env = "SETTEE_DURABILITY_MIN_LEVEL")]
    durability_min_level: Choice<DurabilityMinLevel> {
        default: Choice(of_bucket().durability_min_level),
    }

    /// Whether durable writes go by this node alone where fewer copies are placed than a majority;
    /// otherwise they are refused
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL",
          env = "SETTEE_DURABILITY_IMPOSSIBLE_FALLBACK")]
    durability_impossible_fallback: bool {
        default: of_bucket().durability_impossible_fallback,
    }

    /// This node's name in a cluster map; without it, ns_1@ and the host that clients are told
    #[arg(long, value_name = "NAME", env = "SETTEE_NODE_NAME")]
    node_name: String {}

    /// The map of a cluster of several nodes, which share user and password; see docs/cluster.md
    #[arg(long, value_name = "FILE", env = "SETTEE_CLUSTER_MAP")]
    cluster_map: PathBuf { route: "PUT /settee/clusterMap", }

    /// Forget the cluster map that this node has carried out last, and be alone: every vBucket that
    /// is here in its role, with nobody following. For one start
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip)]
    leave_cluster: bool { default: false, }

    /// The bucket's name, or those of several with commas between them: the first is that of
    /// clients that select none, all have the same settings and a part of the memory quota each
    #[arg(long, value_name = "NAMES", env = "SETTEE_BUCKET")]
    bucket: BucketNames {
        unsaid: "those that there are; `default` where there has never been one",
        allowed: Allowed::If {
            range: "1 to 100 letters, digits, and . _ % -",
            complaint: " `{value}`: a name has {range}",
            holds: |buckets| buckets.names().iter().all(|name| is_bucket_name(name)),
        },
    }

    /// Buckets that a start makes where there has never been any, with commas between them, and
    /// their quotas where these are said: `orders:256MiB,travel`
    #[arg(long, value_name = "NAMES", env = "SETTEE_BUCKETS")]
    buckets: BucketQuotas {
        allowed: Allowed::If {
            range: "1 to 100 letters, digits, and . _ % -",
            complaint: " `{value}`: a name has {range}",
            holds: |buckets| buckets.all().iter().all(|(name, _)| is_bucket_name(name)),
        },
    }

    /// A directory of JSON files that say which buckets, collections, groups and users the node has
    /// from its first start on; each is applied once. See docs/first-start.md
    #[arg(long, value_name = "DIRECTORY", env = "SETTEE_INIT_DIR")]
    init_dir: PathBuf {}

    /// vBuckets: a power of two, fixed when the bucket is made
    #[arg(long, value_name = "COUNT", env = "SETTEE_VBUCKETS")]
    vbuckets: u16 {
        unsaid: BucketConfig::named("default").vbucket_count,
        allowed: Allowed::If {
            range: "a power of two, at most 32768",
            complaint: " {value}: clients need {range}",
            holds: |count| count.is_power_of_two() && *count <= document::limits::VBUCKET_COUNT_MAX,
        },
    }

    /// `couchbase` keeps documents on disk, `ephemeral` in memory alone; fixed when the bucket is
    /// made
    #[arg(long, value_name = "TYPE", env = "SETTEE_BUCKET_TYPE")]
    bucket_type: Choice<BucketType> { unsaid: Choice(BucketType::default()), }

    /// Which version of a document wins when one is brought from elsewhere: `seqno`, the one that
    /// has changed more often; `lww`, the later one; or `custom`, as `lww`. Fixed when the bucket
    /// is made
    #[arg(long, value_name = "RULE", env = "SETTEE_CONFLICT_RESOLUTION")]
    conflict_resolution: Choice<ConflictResolution> {
        unsaid: Choice(ConflictResolution::default()),
    }

    /// What an ephemeral bucket does when its memory is full: `auto_delete` or `fail_new_data`
    #[arg(long, value_name = "POLICY", env = "SETTEE_EPHEMERAL_FULL_POLICY")]
    ephemeral_full_policy: Choice<FullPolicy> {
        default: Choice(of_bucket().ephemeral_full_policy),
        parameter: "ephemeral_full_policy",
    }

    /// What leaves memory when it is full: `value`s alone, or documents in `full` with their keys
    #[arg(long, value_name = "POLICY", env = "SETTEE_EVICTION_POLICY")]
    eviction_policy: Choice<EvictionPolicy> {
        default: Choice(of_bucket().eviction_policy) => "value",
    }

    /// What happens to compressed values: `off` inflates them, `passive` keeps them as they come,
    /// `active` compresses the others, too
    #[arg(long, value_name = "MODE", env = "SETTEE_COMPRESSION")]
    compression: Choice<CompressionMode> {
        default: Choice(of_bucket().compression),
        parameter: "compression_mode",
    }

    /// The administrator's name
    #[arg(long, env = "SETTEE_USER")]
    user: String {
        default: of_node().user,
        allowed: Allowed::If {
            range: "1 to 128 bytes, no colon and no control characters",
            complaint: ": a name has {range}; nobody logs in over REST with a colon in the name. A \
                        data directory that has such an administrator gets another one with \
                        --set-password",
            holds: |name| {
                let is_out = |it: char| it == ':' || it.is_control();
                (1..=128).contains(&name.len()) && !name.chars().any(is_out)
            },
        },
    }

    /// The administrator's password; of a new data directory generated and printed once when nobody
    /// says it
    #[arg(long, env = "SETTEE_PASSWORD", hide_env_values = true)]
    password: String {
        allowed: Allowed::If {
            range: "not empty",
            complaint: ", or SETTEE_PASSWORD in the environment, is empty; leave it out to keep \
                        the password of the data directory, or to have one generated for a new one",
            holds: |password| !password.is_empty(),
        },
    }

    /// A file with the administrator's password, as container systems give secrets; a line end
    /// behind it is left out
    #[arg(long, value_name = "FILE", env = "SETTEE_PASSWORD_FILE")]
    password_file: PathBuf {}

    /// Give the administrator of an existing data directory this password, or a generated one, or
    /// add another administrator; without it both are refused. For one start
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    #[serde(skip)]
    set_password: bool { default: false, }

    /// Who may set the node up over REST without a login, until the administrator is given a
    /// password there: nobody (`off`), programs on this machine (`loopback`, and what `--setup`
    /// alone says), or whoever reaches the management port (`anywhere`). Only where this start
    /// would have generated a password
    #[arg(long, num_args = 0..=1, default_missing_value = "loopback", value_name = "FROM",
          env = "SETTEE_SETUP")]
    setup: Choice<SetupMode> { default: Choice(SetupMode::Off), }

    /// Logins that may fail in a minute from one address, at all ports together; its others are
    /// refused unchecked for the rest of that minute. 0: any number
    #[arg(long, value_name = "COUNT", env = "SETTEE_FAILED_LOGINS_MAX")]
    failed_logins_max: u16 { default: 0, }

    /// Connections to the data port from one address, or one IPv6 network of 64 bits, that have not
    /// logged in: of more the oldest is closed. Addresses of this machine count like others
    #[arg(long, value_name = "COUNT", env = "SETTEE_STRANGERS_OF_ADDRESS_MAX")]
    strangers_of_address_max: usize {
        default: of_node().strangers_of_address_max,
        allowed: Allowed::AtLeast(1),
    }

    /// Front-end threads
    #[arg(long, value_name = "COUNT", env = "SETTEE_THREADS")]
    threads: usize {
        default: of_node().threads => "three quarters of the CPUs",
        allowed: Allowed::Between(1, THREADS_MAX),
    }

    /// Threads that read for clients: a number, `balanced` or `disk_io_optimized`
    #[arg(long, value_name = "COUNT", env = "SETTEE_READER_THREADS")]
    reader_threads: Threads {
        default: Threads::default() => "balanced",
        parameter: "num_reader_threads",
    }

    /// Threads that write behind them, in the same words
    #[arg(long, value_name = "COUNT", env = "SETTEE_WRITER_THREADS")]
    writer_threads: Threads {
        default: Threads::default() => "balanced",
        parameter: "num_writer_threads",
    }

    /// Threads for other work with files
    #[arg(long, value_name = "COUNT", env = "SETTEE_AUXIO_THREADS")]
    auxio_threads: Threads {
        default: Threads::default() => "two for each CPU",
        parameter: "num_auxio_threads",
    }

    /// Threads for tasks that only compute
    #[arg(long, value_name = "COUNT", env = "SETTEE_NONIO_THREADS")]
    nonio_threads: Threads {
        default: Threads::default() => "2 to 8, by the CPUs",
        parameter: "num_nonio_threads",
    }

    /// How the data port waits for its sockets: `uring` by io_uring, which sends and receives with
    /// the call that waits and needs Linux 6.1; `epoll`; or `auto`: `uring` where the kernel and
    /// the sandbox allow it, otherwise `epoll`
    #[arg(long, value_name = "LOOP", env = "SETTEE_NETWORK_LOOP")]
    network_loop: Choice<NetworkLoop> { default: Choice(NetworkLoop::Auto), }

    /// Let clients empty the bucket (FLUSH)
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL",
          env = "SETTEE_ENABLE_FLUSH")]
    enable_flush: bool { default: false, }

    /// Note changes and failed logins in `audit.log` of the data directory
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL",
          env = "SETTEE_AUDIT_LOG")]
    audit_log: bool { default: true, }

    /// What is logged: error, warn, info, debug, trace, or filters such as bucket=debug. SIGHUP
    /// reads it again from the file
    #[arg(long, value_name = "FILTER", env = "SETTEE_LOG_LEVEL")]
    log_level: String {
        default: "info".to_owned(),
        route: "POST /settee/logLevel",
    }

    /// A file for log lines, in the place of standard error; those of before are beside it, as
    /// FILE.1 and so on up to FILE.5
    #[arg(long, value_name = "FILE", env = "SETTEE_LOG_FILE")]
    log_file: PathBuf { unsaid: "standard error", }

    /// The size from which on the log file becomes one of before
    #[arg(long, value_name = "SIZE", env = "SETTEE_LOG_FILE_SIZE")]
    log_file_size: MemorySize {
        default: MemorySize(LOG_FILE_BYTES),
        allowed: Allowed::AtLeast(LOG_FILE_SIZE_MIN),
    }

    /// Milliseconds from one log line to the next about how far work is that takes longer than
    /// that: loading documents, compacting a file
    #[arg(long, value_name = "MILLISECONDS", env = "SETTEE_PROGRESS_INTERVAL_MS")]
    progress_interval_ms: u64 {
        default: millis(of_bucket().progress_interval),
        allowed: Allowed::AtLeast(1),
    }

    /// Log lines as JSON
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL",
          env = "SETTEE_LOG_JSON")]
    log_json: bool { default: false, }

    /// Try things out: a temporary data directory, the password `password`, and --enable-flush
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL",
          env = "SETTEE_DEV")]
    dev: bool { default: false, }
}

impl Settings {
    /// Reads a TOML file.
    pub(crate) fn from_file(path: &Path) -> anyhow::Result<Self> {
        let text = platform::files::read_text(path)
            .with_context(|| format!("the configuration file {}", path.display()))?;
        toml::from_str(&text)
            .with_context(|| format!("the configuration file {} is not right", path.display()))
    }
}

/// What a node is when nobody says anything: the defaults of settings that are about it.
fn of_node() -> NodeConfig {
    NodeConfig::default()
}

/// What a bucket is when nobody says anything: the defaults of settings that are about it.
fn of_bucket() -> BucketSettings {
    BucketSettings::default()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
