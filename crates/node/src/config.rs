//! A configuration that a node can start with: what an operator said, and defaults for the rest.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use bucket::{BucketType, CompressionMode, DurabilityConfig, EvictionPolicy, FullPolicy};
use bucket::{Persistence, PersistenceMode};
use executor::{PoolOptions, TaskKind, ThreadCounts};

use crate::settings::Settings;
use crate::temporary_directory;

/// The credentials of `--dev`.
pub const DEV_PASSWORD: &str = "password";

/// A configuration that a node can start with.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Where everything is kept.
    pub data_dir: PathBuf,
    /// Whether the data directory goes with the node.
    pub is_temporary: bool,
    /// The address to listen on.
    pub host: IpAddr,
    /// The host that clients are told.
    pub advertised_host: String,
    /// The data port; 0 for any.
    pub port: u16,
    /// The management port; 0 for any.
    pub management_port: u16,
    /// The memcached port, if there is to be one; 0 for any.
    pub memcached_port: Option<u16>,
    /// Written once the node serves.
    pub ready_file: Option<PathBuf>,
    /// Bytes that documents may take.
    pub memory_quota_bytes: u64,
    /// Durable writes.
    pub durability: DurabilityConfig,
    /// Where documents become durable first.
    pub persistence: Persistence,
    /// Whether to go on without a journal that was in use.
    pub accepts_lost_journal: bool,
    /// Time from one flush of what nobody waits for to the next; the bucket's default when nobody
    /// says it.
    pub flush_interval: Option<Duration>,
    /// Time in which each file that is behind the journal is written once; the bucket's default
    /// when nobody says it.
    pub apply_cycle: Option<Duration>,
    /// The name in topologies.
    pub node_name: String,
    /// Where the cluster's map is, if the node is one of several.
    pub cluster_map: Option<PathBuf>,
    /// The bucket's name.
    pub bucket: String,
    /// vBuckets of the bucket, if somebody said it.
    pub vbucket_count: Option<u16>,
    /// Where the bucket keeps its documents, if somebody said it.
    pub bucket_type: Option<BucketType>,
    /// What an ephemeral bucket does when its memory is full.
    pub ephemeral_full_policy: FullPolicy,
    /// What leaves memory when it is full.
    pub eviction_policy: EvictionPolicy,
    /// What happens to compressed values.
    pub compression: CompressionMode,
    /// The administrator's name.
    pub user: String,
    /// The administrator's password, if somebody said it.
    pub password: Option<String>,
    /// Whether a password or a user that the data directory does not have is put into it.
    pub sets_password: bool,
    /// Front-end threads.
    pub threads: usize,
    /// Threads of background tasks.
    pub pool: PoolOptions,
    /// Whether FLUSH works.
    pub flush_enabled: bool,
    /// What is logged.
    pub log_filter: String,
    /// Whether log lines are JSON.
    pub log_json: bool,
}

/// Bytes below which a quota is a mistake.
const MEMORY_QUOTA_BYTES_MIN: u64 = 16 << 20;
/// A journal that is smaller would be full of single batches.
const JOURNAL_BYTES_MIN: u64 = 64 << 20;
const JOURNAL_BYTES_MAX: u64 = 512 << 20;
const THREADS_MAX: usize = 128;

impl Settings {
    /// Fills in the defaults and refuses what cannot work.
    pub fn resolve(self) -> anyhow::Result<NodeConfig> {
        let pool = self.pool_options();
        let is_dev = self.dev.unwrap_or(false);
        if is_dev && self.data_dir.is_some() {
            bail!("--dev keeps its data in a temporary directory; leave out --data-dir, or --dev");
        }
        let host = self.host.unwrap_or(IpAddr::from([127, 0, 0, 1]));
        let advertised_host = match (self.advertise, host.is_unspecified()) {
            (Some(name), _) => name,
            (None, false) => host.to_string(),
            (None, true) => bail!(
                "--host {host} listens on every address, but clients need one to connect to; \
                 say which with --advertise NAME"
            ),
        };
        let default_quota = platform::process::memory_limit_bytes() / 10 * 6;
        let memory_quota_bytes = self.memory_quota.map_or(default_quota, |size| size.0);
        if memory_quota_bytes < MEMORY_QUOTA_BYTES_MIN {
            bail!("--memory-quota {memory_quota_bytes} is too little; give at least 16MiB");
        }
        let journal_bytes_max = self.journal_size.map_or(JOURNAL_BYTES_MAX, |size| size.0);
        if journal_bytes_max < JOURNAL_BYTES_MIN {
            bail!("--journal-size {journal_bytes_max} is too little; give at least 64MiB");
        }
        let mode = self.persistence.map_or(PersistenceMode::default(), |choice| choice.0);
        let bucket = self.bucket.unwrap_or_else(|| "default".to_owned());
        if !is_bucket_name(&bucket) {
            bail!("--bucket `{bucket}`: a name has 1 to 100 letters, digits, and . _ % -");
        }
        if let Some(count) = self.vbuckets
            && (!count.is_power_of_two() || count > document::limits::VBUCKET_COUNT_MAX)
        {
            bail!("--vbuckets {count}: clients need a power of two, at most 32768");
        }
        let threads =
            self.threads.unwrap_or_else(|| (platform::threads::available_cpus() * 3 / 4).max(1));
        if !(1..=THREADS_MAX).contains(&threads) {
            bail!("--threads {threads}: give 1 to {THREADS_MAX}");
        }
        let user = self.user.unwrap_or_else(|| "Administrator".to_owned());
        if user.is_empty() || user.len() > 128 || user.chars().any(char::is_control) {
            bail!("--user: a name has 1 to 128 bytes and no control characters");
        }
        if self.password.as_deref() == Some("") {
            bail!(
                "--password, or SETTEE_PASSWORD in the environment, is empty; leave it out to keep \
                 the password of the data directory, or to have one generated for a new one"
            );
        }
        if self.cluster_map.is_some() && self.password.is_none() {
            bail!("--cluster-map needs --password: the nodes log in to each other with it");
        }
        if self.cluster_map.is_some() && self.node_name.is_none() {
            bail!("--cluster-map needs --node-name: which of the map's nodes this one is");
        }
        let node_name = self.node_name.unwrap_or_else(|| format!("ns_1@{advertised_host}"));
        let data_dir = match (is_dev, self.data_dir) {
            (true, _) => platform::process::temporary_path(temporary_directory::PREFIX),
            (false, Some(directory)) => directory,
            (false, None) => PathBuf::from("settee-data"),
        };
        Ok(NodeConfig {
            data_dir,
            is_temporary: is_dev,
            host,
            advertised_host,
            port: self.port.unwrap_or(11210),
            management_port: self.management_port.unwrap_or(8091),
            memcached_port: self.memcached_port,
            ready_file: self.ready_file,
            memory_quota_bytes,
            persistence: Persistence::new(mode, journal_bytes_max),
            accepts_lost_journal: self.accept_lost_journal.unwrap_or(false),
            flush_interval: self.flush_interval_ms.map(Duration::from_millis),
            apply_cycle: self.apply_cycle_ms.map(Duration::from_millis),
            durability: DurabilityConfig {
                level_min: self.durability_min_level.map_or_else(Default::default, |level| level.0),
                falls_back_to_master: self.durability_impossible_fallback.unwrap_or(false),
                ..DurabilityConfig::default()
            },
            node_name,
            cluster_map: self.cluster_map,
            bucket,
            vbucket_count: self.vbuckets,
            bucket_type: self.bucket_type.map(|choice| choice.0),
            ephemeral_full_policy: self
                .ephemeral_full_policy
                .map_or(FullPolicy::AutoDelete, |choice| choice.0),
            eviction_policy: self
                .eviction_policy
                .map_or(EvictionPolicy::ValueOnly, |choice| choice.0),
            compression: self.compression.map_or(CompressionMode::Passive, |choice| choice.0),
            user,
            sets_password: self.set_password.unwrap_or(false),
            password: self.password.or_else(|| is_dev.then(|| DEV_PASSWORD.to_owned())),
            threads,
            pool,
            flush_enabled: self.enable_flush.unwrap_or(false),
            log_filter: self.log_level.unwrap_or_else(|| "info".to_owned()),
            log_json: self.log_json.unwrap_or(false),
        })
    }
}

impl Settings {
    fn pool_options(&self) -> PoolOptions {
        let cpus = platform::threads::available_cpus();
        let mut options = PoolOptions::for_cpus(cpus);
        for (kind, threads) in [
            (TaskKind::Reader, self.reader_threads),
            (TaskKind::Writer, self.writer_threads),
            (TaskKind::AuxIo, self.auxio_threads),
            (TaskKind::NonIo, self.nonio_threads),
        ] {
            let normal = threads.unwrap_or_default().0.normal_threads(kind, cpus);
            options.set_threads(kind, ThreadCounts { normal, ..options.threads(kind) });
        }
        options.gives_memory_back = true;
        options
    }
}

fn is_bucket_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._%-".contains(&byte);
    (1..=100).contains(&name.len()) && name.bytes().all(is_allowed) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use bucket::DurabilityMinLevel;
    use document::DurabilityLevel;

    use super::*;
    use crate::setting_values::MemorySize;

    #[test]
    fn what_nobody_says_has_a_default() {
        let config = Settings::default().resolve().unwrap();
        assert_eq!((config.port, config.management_port), (11210, 8091));
        assert_eq!((config.bucket.as_str(), config.user.as_str()), ("default", "Administrator"));
        assert_eq!(config.advertised_host, "127.0.0.1");
        assert_eq!(config.password, None);
        assert!(!config.is_temporary);
    }

    #[test]
    fn a_file_says_the_same_things_by_the_same_names() {
        let text = r#"
            data-dir = "/srv/settee"
            port = 0
            management-port = 1
            memory-quota = "2GiB"
            bucket = "travel"
            enable-flush = true
            reader-threads = 6
            writer-threads = "disk_io_optimized"
            compression = "active"
            eviction-policy = "full"
            bucket-type = "ephemeral"
            ephemeral-full-policy = "fail_new_data"
            durability-min-level = "majority"
            durability-impossible-fallback = true
        "#;
        let file: Settings = toml::from_str(text).unwrap();
        let flags = Settings { bucket: Some("flights".to_owned()), ..Settings::default() };
        let config = flags.or(file).resolve().unwrap();
        assert_eq!(config.bucket, "flights", "a flag wins over the file");
        assert_eq!(config.data_dir, Path::new("/srv/settee"));
        assert_eq!((config.port, config.management_port), (0, 1));
        assert_eq!(config.memory_quota_bytes, 2 << 30);
        assert!(config.flush_enabled);
        assert_eq!(config.compression, CompressionMode::Active);
        assert_eq!(config.eviction_policy, EvictionPolicy::Full);
        assert_eq!(config.bucket_type, Some(BucketType::Ephemeral));
        assert_eq!(config.ephemeral_full_policy, FullPolicy::FailNewData);
        let level_min = DurabilityMinLevel(Some(DurabilityLevel::Majority));
        assert_eq!(config.durability.level_min, level_min);
        assert!(config.durability.falls_back_to_master);
        assert_eq!(config.pool.reader.normal, 6);
        assert!(config.pool.writer.normal >= 4);
        assert!(toml::from_str::<Settings>("nonio-threads = 1000").is_err());
        assert!(toml::from_str::<Settings>("compression = \"on\"").is_err());
        assert!(toml::from_str::<Settings>("prot = 1").is_err(), "unknown names are refused");
    }

    #[test]
    fn what_cannot_work_is_refused_with_advice() {
        let cases: [(Settings, &str); 8] = [
            (
                Settings {
                    dev: Some(true),
                    data_dir: Some(PathBuf::from("x")),
                    ..Settings::default()
                },
                "leave out --data-dir",
            ),
            (Settings { host: "0.0.0.0".parse().ok(), ..Settings::default() }, "--advertise"),
            (
                Settings { memory_quota: Some(MemorySize(1)), ..Settings::default() },
                "at least 16MiB",
            ),
            (
                Settings { journal_size: Some(MemorySize(1)), ..Settings::default() },
                "at least 64MiB",
            ),
            (Settings { vbuckets: Some(1000), ..Settings::default() }, "power of two"),
            (Settings { bucket: Some("a b".to_owned()), ..Settings::default() }, "letters"),
            (
                Settings { cluster_map: Some(PathBuf::from("m")), ..Settings::default() },
                "needs --password",
            ),
            (Settings { threads: Some(0), ..Settings::default() }, "give 1 to"),
        ];
        for (settings, advice) in cases {
            let error = settings.clone().resolve().unwrap_err().to_string();
            assert!(error.contains(advice), "{settings:?}: {error}");
        }
    }
}
