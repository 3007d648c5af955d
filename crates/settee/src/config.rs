//! What settings come to: which cannot go together, and the node that they are of.

use std::time::Duration;

use anyhow::bail;
use node::{BucketSettings, NodeConfig, TlsConfig, temporary_data_directory};

use crate::setting_values::{BucketNames, MemorySize, Switch};
use crate::settings::{MANAGEMENT_PORT, MANAGEMENT_TLS_PORT, ServeConfig, Settings, TLS_PORT};

/// The password of `--dev`.
const DEV_PASSWORD: &str = "password";

impl Settings {
    /// Fills in the defaults and refuses what cannot work.
    pub(crate) fn resolve(self) -> anyhow::Result<ServeConfig> {
        self.check_together()?;
        let mut config = self.settled()?;
        config.check_quota()?;
        if config.dev {
            config.data_dir = temporary_data_directory();
            config.password.get_or_insert_with(|| DEV_PASSWORD.to_owned());
        }
        Ok(config)
    }

    /// Refuses what is right by itself, but not together.
    fn check_together(&self) -> anyhow::Result<()> {
        if self.dev == Some(true) && self.data_dir.is_some() {
            bail!("--dev keeps its data in a temporary directory; leave out --data-dir, or --dev");
        }
        if let (Some(host), None) = (self.host, &self.advertise)
            && host.is_unspecified()
        {
            bail!(
                "--host {host} listens on every address, but clients need one to connect to; \
                 say which with --advertise NAME"
            );
        }
        if self.tls_certificate.is_some() != self.tls_key.is_some() {
            bail!(
                "--tls-certificate and --tls-key go together; without both the node makes its own"
            );
        }
        if self.cluster_map.is_none() {
            return Ok(());
        }
        if self.password.is_none() {
            bail!("--cluster-map needs --password: the nodes log in to each other with it");
        }
        if self.node_name.is_none() {
            bail!("--cluster-map needs --node-name: which of the map's nodes this one is");
        }
        if self.leave_cluster == Some(true) {
            bail!("--leave-cluster has the node be alone; leave it out, or --cluster-map");
        }
        Ok(())
    }
}

impl ServeConfig {
    /// Refuses a quota that is too little for so many buckets.
    fn check_quota(&self) -> anyhow::Result<()> {
        let count = self.bucket_names().names().len();
        let all_bytes = self.quota_bytes_of_bucket().saturating_mul(count_of(count));
        if all_bytes > self.memory_quota.0 {
            bail!(
                "--memory-quota {} is too little for {count} buckets of that --bucket-quota",
                self.memory_quota
            );
        }
        if self.quota_bytes_of_bucket() < bucket::MEMORY_QUOTA_BYTES_MIN {
            let least = MemorySize(bucket::MEMORY_QUOTA_BYTES_MIN);
            bail!(
                "--memory-quota {} is too little for {count} buckets; give at least {least} for \
                 each",
                self.memory_quota
            );
        }
        Ok(())
    }

    /// The part of the memory quota that each bucket has.
    fn quota_bytes_of_bucket(&self) -> u64 {
        let count = count_of(self.bucket_names().names().len());
        assert!(count > 0, "a start has a name for a bucket");
        self.bucket_quota.map_or(self.memory_quota.0 / count, |quota| quota.0)
    }

    /// The buckets that are made at the start, perhaps only where there has never been one.
    fn bucket_names(&self) -> BucketNames {
        self.bucket.clone().unwrap_or_else(|| BucketNames::one("default".to_owned()))
    }

    /// The data port behind TLS, if there is one. Whoever has moved the other one, perhaps because
    /// there are several nodes on the machine, need not move this one, too.
    fn tls_port(&self) -> Option<u16> {
        let default = if self.port == NodeConfig::default().port { TLS_PORT } else { 0 };
        self.has_tls().then(|| self.tls_port.unwrap_or(default))
    }

    /// The management port behind TLS, likewise.
    pub(crate) fn management_tls_port(&self) -> Option<u16> {
        let is_default = self.management_port == MANAGEMENT_PORT;
        let default = if is_default { MANAGEMENT_TLS_PORT } else { 0 };
        self.has_tls().then(|| self.management_tls_port.unwrap_or(default))
    }

    fn has_tls(&self) -> bool {
        self.tls.0 == Switch::On
    }

    /// The node. What is about the process around it is left out.
    pub(crate) fn node_config(&self) -> NodeConfig {
        let config = self.clone();
        let bucket = |name: &String| BucketSettings {
            enable_flush: config.enable_flush,
            uuid: None,
            replica_count: 0,
            name: name.clone(),
            vbuckets: config.vbuckets,
            bucket_type: config.bucket_type.map(|choice| choice.0),
            conflict_resolution: config.conflict_resolution.map(|choice| choice.0),
            memory_quota_bytes: self.quota_bytes_of_bucket(),
            has_part_of_rest: config.bucket_quota.is_none(),
            persistence: config.persistence.0,
            journal_size_bytes: config.journal_size.0,
            accept_lost_journal: config.accept_lost_journal,
            flush_interval: Duration::from_millis(config.flush_interval_ms),
            apply_cycle: Duration::from_millis(config.apply_cycle_ms),
            range_scan_idle_time: Duration::from_millis(config.range_scan_idle_time_ms),
            durability_min_level: config.durability_min_level.0,
            durability_impossible_fallback: config.durability_impossible_fallback,
            ephemeral_full_policy: config.ephemeral_full_policy.0,
            eviction_policy: config.eviction_policy.0,
            compression: config.compression.0,
            max_ttl_seconds: 0,
        };
        let buckets = config.bucket_names().names().iter().map(bucket).collect();
        let tls = self.tls_port().map(|port| TlsConfig {
            port,
            management_port: 0,
            certificate: config.tls_certificate,
            key: config.tls_key,
            client_authorities: config.tls_client_ca,
        });
        NodeConfig {
            data_dir: config.data_dir,
            is_temporary: config.dev,
            host: config.host,
            advertise: config.advertise,
            port: config.port,
            memcached_port: config.memcached_port,
            tls,
            node_name: config.node_name,
            cluster_map: config.cluster_map,
            leave_cluster: config.leave_cluster,
            user: config.user,
            password: config.password,
            set_password: config.set_password,
            threads: config.threads,
            reader_threads: config.reader_threads.0,
            writer_threads: config.writer_threads.0,
            auxio_threads: config.auxio_threads.0,
            nonio_threads: config.nonio_threads.0,
            buckets,
            makes_buckets_once: config.bucket.is_none(),
            buckets_bytes_max: config.memory_quota.0,
        }
    }
}

fn count_of(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod cases;

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use bucket::{BucketType, CompressionMode, DurabilityMinLevel, EvictionPolicy, FullPolicy};
    use document::DurabilityLevel;

    use super::*;

    #[test]
    fn what_nobody_says_has_a_default() {
        let config = Settings::default().resolve().unwrap();
        assert_eq!((config.port, config.management_port), (11210, 8091));
        assert!(config.bucket.is_none() && config.node_config().makes_buckets_once);
        assert_eq!(config.node_config().default_bucket(), "default");
        assert_eq!(config.user, "Administrator");
        assert_eq!(config.node_config().advertised_host(), "127.0.0.1");
        assert_eq!(config.password, None);
        assert!(!config.dev);
    }

    #[test]
    fn ports_behind_tls_move_with_the_others_unless_they_are_said() {
        for (port, said, is) in [
            (None, None, 11207),
            (Some(11210), None, 11207),
            (Some(0), None, 0),
            (Some(12000), None, 0),
            (Some(12000), Some(12001), 12001),
        ] {
            let settings = Settings { port, tls_port: said, ..Settings::default() };
            assert_eq!(settings.resolve().unwrap().node_config().tls.unwrap().port, is);
        }
        let off = Settings { tls: "off".parse().ok(), ..Settings::default() }.resolve().unwrap();
        assert!(off.node_config().tls.is_none() && off.management_tls_port().is_none());
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
        let flags = Settings { bucket: "flights".parse().ok(), ..Settings::default() };
        let config = flags.or(file).resolve().unwrap();
        assert_eq!(config.node_config().default_bucket(), "flights", "a flag wins over the file");
        assert_eq!(config.data_dir, Path::new("/srv/settee"));
        assert_eq!((config.port, config.management_port), (0, 1));
        let bucket = config.node_config().buckets[0].bucket_config(1000);
        assert_eq!(bucket.memory_quota_bytes, 2 << 30);
        assert!(config.enable_flush);
        assert_eq!(bucket.compression, CompressionMode::Active);
        assert_eq!(bucket.eviction.policy, EvictionPolicy::Full);
        assert_eq!(bucket.bucket_type, Some(BucketType::Ephemeral));
        assert_eq!(bucket.ephemeral_full_policy, FullPolicy::FailNewData);
        let level_min = DurabilityMinLevel(Some(DurabilityLevel::Majority));
        assert_eq!(bucket.durability.level_min, level_min);
        assert!(bucket.durability.falls_back_to_master);
        let pool = config.node_config().pool_options();
        assert_eq!(pool.reader.normal, 6);
        assert!(pool.writer.normal >= 4);
        assert!(toml::from_str::<Settings>("nonio-threads = 1000").is_err());
        assert!(toml::from_str::<Settings>("compression = \"on\"").is_err());
        assert!(toml::from_str::<Settings>("prot = 1").is_err(), "unknown names are refused");
    }

    #[test]
    fn several_buckets_divide_the_quota_and_have_the_same_settings() {
        let settings = Settings {
            bucket: "orders,travel".parse().ok(),
            memory_quota: Some(MemorySize(64 << 20)),
            vbuckets: Some(16),
            ..Settings::default()
        };
        let node = settings.resolve().unwrap().node_config();
        assert_eq!(node.default_bucket(), "orders");
        let buckets = node.buckets.iter();
        let facts: Vec<_> =
            buckets.map(|it| (it.name.as_str(), it.memory_quota_bytes, it.vbuckets)).collect();
        assert_eq!(facts, [("orders", 32 << 20, Some(16)), ("travel", 32 << 20, Some(16))]);
        assert!("a,b,a".parse::<BucketNames>().is_err());
    }

    #[test]
    fn what_cannot_work_is_refused_with_advice() {
        let cases: [(Settings, &str); 10] = [
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
            (Settings { bucket: "a b".parse().ok(), ..Settings::default() }, "letters"),
            (Settings { bucket: "a,".parse().ok(), ..Settings::default() }, "letters"),
            (
                Settings {
                    bucket: "a,b".parse().ok(),
                    memory_quota: Some(MemorySize(31 << 20)),
                    ..Settings::default()
                },
                "at least 16MiB for each",
            ),
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
