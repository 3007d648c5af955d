//! What settings come to: which cannot go together, and the node that they are of.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use node::{BucketSettings, MakesBuckets, NodeConfig, TlsConfig, temporary_data_directory};
use platform::redaction::Secret;

use crate::setting_values::{BucketNames, Choice, MemorySize, SetupMode, Switch};
use crate::settings::{MANAGEMENT_PORT, MANAGEMENT_TLS_PORT, ServeConfig, Settings, TLS_PORT};

/// The password of `--dev`.
const DEV_PASSWORD: &str = "password";

impl Settings {
    /// Fills in the defaults and refuses what cannot work.
    pub(crate) fn resolve(mut self) -> anyhow::Result<ServeConfig> {
        self.check_together()?;
        if self.dev == Some(true) {
            // Tests empty their bucket between each other.
            self.enable_flush.get_or_insert(true);
        }
        let mut config = self.settled()?;
        config.read_password_file()?;
        config.check_quota()?;
        config.check_ports()?;
        if config.dev {
            config.data_dir = temporary_data_directory();
        }
        if config.dev && config.setup.0 == SetupMode::Off {
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
        if self.bucket.is_some() && self.buckets.is_some() {
            bail!(
                "--bucket and --buckets both name buckets; say those of each start with --bucket, \
                 those of the first one with --buckets"
            );
        }
        let is_to_be_set_up = self.setup.is_some_and(|setup| setup.0 != SetupMode::Off);
        let has_password = self.password.is_some() || self.password_file.is_some();
        if is_to_be_set_up && has_password {
            bail!("--setup has the password given over REST; leave out --password, or --setup");
        }
        if self.password.is_some() && self.password_file.is_some() {
            bail!("--password and --password-file both give the password; leave out one of them");
        }
        if self.tls_certificate.is_some() != self.tls_key.is_some() {
            bail!(
                "--tls-certificate and --tls-key go together; without both the node makes its own"
            );
        }
        if self.tls_node_ca.is_some() && self.tls == Some(Choice(Switch::Off)) {
            bail!("--tls-node-ca has nodes speak TLS with each other; leave it out, or --tls off");
        }
        if self.cluster_map.is_none() {
            return Ok(());
        }
        if !has_password {
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
    /// Takes the administrator's password from the file that has it.
    fn read_password_file(&mut self) -> anyhow::Result<()> {
        let Some(path) = &self.password_file else { return Ok(()) };
        let shown = path.display();
        let text = platform::files::read_text(path).with_context(|| {
            format!("--password-file {shown} cannot be read; name a readable file")
        })?;
        let password = text.trim_end_matches(['\r', '\n']);
        if password.is_empty() {
            bail!("--password-file {shown} is empty; write the password into it, or leave it out");
        }
        self.password = Some(password.to_owned());
        Ok(())
    }

    /// Refuses a port for two things: the second would find it taken, and by no other process.
    fn check_ports(&self) -> anyhow::Result<()> {
        let ports = [
            ("--port", Some(self.port)),
            ("--management-port", Some(self.management_port)),
            ("--tls-port", self.tls_port()),
            ("--management-tls-port", self.management_tls_port()),
            ("--memcached-port", self.memcached_port),
            ("--query-stub-port", self.query_stub_port),
        ];
        let mut taken = BTreeMap::new();
        for (flag, port) in ports {
            let Some(port) = port.filter(|port| *port > 0) else { continue };
            if let Some(other) = taken.insert(port, flag) {
                bail!("{other} and {flag} are both {port}; give one of them another port, or 0");
            }
        }
        Ok(())
    }

    /// Refuses a quota that is too little for so many buckets.
    fn check_quota(&self) -> anyhow::Result<()> {
        let of_others = self.quota_bytes_of_bucket();
        let buckets = self.first_buckets();
        let quotas = buckets.iter().map(|(_, quota)| quota.unwrap_or(of_others));
        let (count, all_bytes) = (buckets.len(), quotas.clone().fold(0, u64::saturating_add));
        let least = bucket::MEMORY_QUOTA_BYTES_MIN;
        let too_small = |said: &Option<u64>| said.is_some_and(|quota| quota < least);
        if let Some((name, Some(said))) = buckets.iter().find(|(_, quota)| too_small(quota)) {
            let (said, least) = (MemorySize(*said), MemorySize(least));
            bail!("--buckets: {said} is too little for the bucket {name}; give at least {least}");
        }
        if all_bytes > self.memory_quota.0 {
            bail!(
                "--memory-quota {} is too little for {count} buckets of these quotas \
                 (--bucket-quota, --buckets)",
                self.memory_quota
            );
        }
        if quotas.min().is_some_and(|quota| quota < least) {
            let least = MemorySize(least);
            bail!(
                "--memory-quota {} is too little for {count} buckets; give at least {least} for \
                 each",
                self.memory_quota
            );
        }
        Ok(())
    }

    /// The part of the memory quota that each bucket has beside whose name none is said.
    fn quota_bytes_of_bucket(&self) -> u64 {
        let buckets = self.first_buckets();
        assert!(!buckets.is_empty(), "a start has a name for a bucket");
        let said = buckets.iter().filter_map(|(_, quota)| *quota);
        let rest = self.memory_quota.0.saturating_sub(said.fold(0, u64::saturating_add));
        let count = count_of(buckets.iter().filter(|(_, quota)| quota.is_none()).count());
        self.bucket_quota.map_or(rest / count.max(1), |quota| quota.0)
    }

    /// The buckets that are made at the start, perhaps only where there has never been one, and
    /// their quotas in bytes where these are said beside the names.
    fn first_buckets(&self) -> Vec<(String, Option<u64>)> {
        if let Some(buckets) = &self.buckets {
            let all = buckets.all().iter();
            return all.map(|(name, quota)| (name.clone(), quota.map(|it| it.0))).collect();
        }
        self.bucket_names().names().iter().map(|name| (name.clone(), None)).collect()
    }

    /// Whether programs that set the node up, or files, say which buckets it has.
    fn says_buckets_elsewhere(&self) -> bool {
        let says_elsewhere = self.setup.0 != SetupMode::Off || self.init_dir.is_some();
        says_elsewhere && self.buckets.is_none()
    }

    /// The buckets that are named without quotas.
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
        let quota_of_others = self.quota_bytes_of_bucket();
        let bucket = |(name, quota): (String, Option<u64>)| BucketSettings {
            enable_flush: config.enable_flush,
            uuid: None,
            replica_count: 0,
            name,
            vbuckets: config.vbuckets,
            bucket_type: config.bucket_type.map(|choice| choice.0),
            conflict_resolution: config.conflict_resolution.map(|choice| choice.0),
            memory_quota_bytes: quota.unwrap_or(quota_of_others),
            has_part_of_rest: quota.is_none() && config.bucket_quota.is_none(),
            persistence: config.persistence.0,
            journal_size_bytes: config.journal_size.0,
            accept_lost_journal: config.accept_lost_journal,
            flush_interval: Duration::from_millis(config.flush_interval_ms),
            apply_cycle: Duration::from_millis(config.apply_cycle_ms),
            range_scan_idle_time: Duration::from_millis(config.range_scan_idle_time_ms),
            progress_interval: Duration::from_millis(config.progress_interval_ms),
            durability_min_level: config.durability_min_level.0,
            durability_impossible_fallback: config.durability_impossible_fallback,
            ephemeral_full_policy: config.ephemeral_full_policy.0,
            eviction_policy: config.eviction_policy.0,
            compression: config.compression.0,
            max_ttl_seconds: 0,
        };
        let buckets = self.first_buckets().into_iter().map(bucket).collect();
        let tls = self.tls_port().map(|port| TlsConfig {
            port,
            management_port: 0,
            certificate: config.tls_certificate,
            key: config.tls_key,
            client_authorities: config.tls_client_ca,
            node_authorities: config.tls_node_ca,
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
            password: config.password.map(Secret::from),
            set_password: config.set_password,
            failed_logins_per_minute_max: (config.failed_logins_max > 0)
                .then_some(config.failed_logins_max.into()),
            strangers_of_address_max: config.strangers_of_address_max,
            threads: config.threads,
            reader_threads: config.reader_threads.0,
            writer_threads: config.writer_threads.0,
            auxio_threads: config.auxio_threads.0,
            nonio_threads: config.nonio_threads.0,
            buckets,
            makes_buckets: match config.bucket {
                Some(_) => MakesBuckets::AtEachStart,
                None if self.says_buckets_elsewhere() => MakesBuckets::Never,
                None => MakesBuckets::Once,
            },
            bucket_quota_bytes: config.bucket_quota.map(|quota| quota.0),
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
    use crate::setting_values::Choice;

    /// A command of which these are the arguments.
    #[derive(clap::Parser, Debug)]
    struct Of<T: clap::Args> {
        #[command(flatten)]
        _arguments: T,
    }

    #[test]
    fn nothing_that_has_a_password_shows_it() {
        const SECRET: &str = "correct horse";
        fn parsed<T: clap::Args + std::fmt::Debug>() -> String {
            let line = ["settee", "--password", SECRET];
            let parsed = <Of<T> as clap::Parser>::try_parse_from(line);
            parsed.map_or_else(|error| panic!("{error}"), |parsed| format!("{parsed:?}"))
        }
        let settings = Settings { password: Some(SECRET.to_owned()), ..Settings::default() };
        let config = settings.clone().resolve().unwrap();
        let users = auth::Users::new(auth::UsersConfig::default());
        users.set_password("bob", SECRET.as_bytes());
        let login = client::Login::new("bob", SECRET);
        let mut options = client::ConnectionOptions::new("settee");
        options.login = Some(login.clone());
        for shown in [
            format!("{settings:?}"),
            format!("{config:?}"),
            format!("{:?}", config.node_config()),
            format!("{login:?} {options:?}"),
            format!("{:?} {:?}", users.registry(), users.hash(SECRET.as_bytes(), 0)),
            parsed::<crate::cluster_run::ClusterRunArguments>(),
            parsed::<cli::server_arguments::ServerArguments>(),
        ] {
            assert!(!shown.contains(SECRET) && !shown.contains("decoy"), "{shown}");
            assert!(!shown.contains("stored_key: ["), "{shown}");
        }
    }

    #[test]
    fn what_nobody_says_has_a_default() {
        let config = Settings::default().resolve().unwrap();
        assert_eq!((config.port, config.management_port), (11210, 8091));
        assert!(config.bucket.is_none());
        assert_eq!(config.node_config().makes_buckets, MakesBuckets::Once);
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
    fn buckets_of_a_first_start_have_the_quotas_that_are_said_and_parts_of_the_rest() {
        let settings = Settings {
            buckets: "orders:100MiB,travel,small:16MiB,other".parse().ok(),
            memory_quota: Some(MemorySize(256 << 20)),
            ..Settings::default()
        };
        let node = settings.resolve().unwrap().node_config();
        assert_eq!((node.default_bucket(), node.makes_buckets), ("orders", MakesBuckets::Once));
        let quotas: Vec<_> = node
            .buckets
            .iter()
            .map(|it| (it.memory_quota_bytes >> 20, it.has_part_of_rest))
            .collect();
        assert_eq!(quotas, [(100, false), (70, true), (16, false), (70, true)]);
        let all_said = Settings {
            buckets: "a:48MiB,b:16MiB".parse().ok(),
            memory_quota: Some(MemorySize(64 << 20)),
            ..Settings::default()
        };
        assert!(all_said.resolve().is_ok(), "nothing is left, and nobody needs it");
    }

    #[test]
    fn a_password_is_read_from_a_file_without_its_line_end() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("password");
        platform::Files::replace_all(&platform::files::RealFiles, &path, b"se cret\r\n").unwrap();
        let said = |password: Option<&str>, path| Settings {
            password: password.map(str::to_owned),
            password_file: Some(path),
            ..Settings::default()
        };
        let config = said(None, path.clone()).resolve().unwrap();
        assert_eq!(config.password.as_deref(), Some("se cret"));
        let both = said(Some("secret"), path).resolve().unwrap_err().to_string();
        assert!(both.contains("leave out one"), "{both}");
        let empty = root.path().join("empty");
        platform::Files::replace_all(&platform::files::RealFiles, &empty, b"\n").unwrap();
        let empty = said(None, empty).resolve().unwrap_err().to_string();
        assert!(empty.contains("is empty"), "{empty}");
        let missing = said(None, "/no/such".into()).resolve().unwrap_err().to_string();
        assert!(missing.contains("--password-file /no/such"), "{missing}");
    }

    #[test]
    fn what_cannot_work_is_refused_with_advice() {
        let no_tls = || "off".parse().ok();
        let node_ca = Some(PathBuf::from("ca.pem"));
        let advertised = |host: &str| Some(host.to_owned());
        let cases: [(Settings, &str); 20] = [
            (Settings { port: Some(8091), ..Settings::default() }, "--port and --management-port"),
            (
                Settings { memcached_port: Some(18091), ..Settings::default() },
                "--management-tls-port and --memcached-port are both 18091",
            ),
            (Settings { advertise: advertised(""), ..Settings::default() }, "an IP address, or"),
            (Settings { advertise: advertised("h:8091"), ..Settings::default() }, "a port"),
            (
                Settings { tls: no_tls(), tls_node_ca: node_ca, ..Settings::default() },
                "leave it out, or --tls off",
            ),
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
            (
                Settings {
                    setup: Some(Choice(SetupMode::Anywhere)),
                    password: Some("secret".to_owned()),
                    ..Settings::default()
                },
                "leave out --password",
            ),
            (
                Settings {
                    bucket: "a".parse().ok(),
                    buckets: "a".parse().ok(),
                    ..Settings::default()
                },
                "--bucket and --buckets",
            ),
            (
                Settings {
                    buckets: "a:1MiB,b".parse().ok(),
                    memory_quota: Some(MemorySize(64 << 20)),
                    ..Settings::default()
                },
                "--buckets: 1MiB is too little for the bucket a; give at least 16MiB",
            ),
            (
                Settings {
                    buckets: "a:60MiB,b".parse().ok(),
                    memory_quota: Some(MemorySize(64 << 20)),
                    ..Settings::default()
                },
                "at least 16MiB for each",
            ),
            (
                Settings {
                    buckets: "a:60MiB,b:16MiB".parse().ok(),
                    memory_quota: Some(MemorySize(64 << 20)),
                    ..Settings::default()
                },
                "2 buckets of these quotas",
            ),
        ];
        for (settings, advice) in cases {
            let error = settings.clone().resolve().unwrap_err().to_string();
            assert!(error.contains(advice), "{settings:?}: {error}");
        }
    }
}
