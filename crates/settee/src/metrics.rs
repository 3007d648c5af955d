//! What Prometheus reads of a node: under the original's names where it has the same, and under
//! names of our own, which begin with `settee_`, for what is new.

mod collection_disk_usage;
mod disk_usage;
mod histograms;
mod machine;

use std::time::Duration;

use bucket::BucketStatistics;
use management::{AuditLog, Metric};
use node::{NodeBucket, NodeBuckets, VERSION};
use platform::{Instant, WallTime};
use server::{
    BUCKET_STATISTICS, COLLECTION_LABELS, COLLECTION_STATISTICS, COMMAND_STATISTICS,
    COMPACTION_STATISTICS, CONNECTION_TYPE_LABEL, DCP_STATISTICS, JOURNAL_STATISTICS,
    RANGE_SCAN_STATISTICS, SERVER_STATISTICS, STATE_LABEL, STATE_STATISTICS, STATES, Server,
    Statistic, StatisticKind, WARMUP_STATISTICS,
};

pub(crate) use collection_disk_usage::CollectionDiskUsage;
pub(crate) use disk_usage::DiskUsage;
pub(crate) use machine::MachineMeter;

/// A label that several samples have, and its value.
type Label<'a> = (&'static str, &'a str);

/// Everything but histograms, and what is told by commands or collections.
pub(crate) fn figures(
    buckets: &NodeBuckets,
    server: &Server,
    pending_vbucket_count: usize,
    uptime: Duration,
) -> Vec<Metric> {
    let of_bucket = |bucket| of_node_bucket(bucket).into_iter().chain(of_clients(bucket, server));
    let buckets = buckets.all();
    let mut metrics: Vec<Metric> = buckets.iter().flat_map(of_bucket).collect();
    metrics.extend(of_table(SERVER_STATISTICS, &server.statistics(), &[]));
    metrics.extend(of_process(uptime));
    metrics.extend(of_time(uptime, server.wall_time()));
    // Storage has no memory of its own.
    let used_bytes = float(platform::accounts::totals().used_bytes);
    let help = "Memory of all buckets that counts against their quotas";
    let domain = Metric::gauge("kv_domain_memory_used_bytes", help, used_bytes);
    metrics.push(domain.with_label("domain", "primary".to_owned()));
    metrics.push(Metric::gauge(
        "kv_max_user_connections",
        "Connections that there may be at a time",
        float(count(server.connections_max())),
    ));
    metrics.push(Metric::gauge(
        "kv_daemon_connections",
        "Sockets on which clients are waited for",
        float(count(server.listener_count())),
    ));
    metrics.push(Metric::gauge(
        "settee_cluster_map_pending_vbuckets",
        "vBuckets that are not yet what the cluster map says",
        float(count(pending_vbucket_count)),
    ));
    metrics
}

/// How long the background work of buckets takes.
pub(crate) fn histograms(buckets: &NodeBuckets) -> Vec<Metric> {
    let of_bucket = |bucket: &NodeBucket| {
        histograms::of_bucket(bucket.bucket().timings(), &[("bucket", bucket.name())])
    };
    buckets.all().iter().flat_map(of_bucket).collect()
}

/// What is told by commands and by collections, of which there may be thousands.
pub(crate) fn of_high_cardinality(
    buckets: &NodeBuckets,
    server: &Server,
    on_disk: &CollectionDiskUsage,
    now: Instant,
) -> Vec<Metric> {
    let mut metrics = Vec::new();
    for bucket in buckets.all() {
        let of_bucket: &[Label<'_>] = &[("bucket", bucket.name())];
        for (opcode, durations) in server.timings_of(bucket.name()) {
            let labels = [of_bucket, &[("opcode", opcode.name())]].concat();
            metrics.extend(histograms::of_command(&durations, &labels));
        }
        let collections = server.collections_of(bucket.name());
        let on_disk = on_disk.bytes(&bucket, &collections, now);
        for one in &collections {
            let [scope, collection] = COLLECTION_LABELS;
            let names: &[Label<'_>] = &[(scope, &one.scope), (collection, &one.name)];
            let labels = [of_bucket, names].concat();
            metrics.extend(of_table(COLLECTION_STATISTICS, &one.figures, &labels));
            metrics.extend(one.max_ttl_seconds.map(|seconds| {
                let help = "The longest time that documents of a collection live, where it is said";
                let seconds = float(u64::from(seconds));
                with_labels(Metric::gauge("kv_collection_maxTTL_seconds", help, seconds), &labels)
            }));
            metrics.extend(on_disk.get(&one.id).map(|bytes| {
                let help = "What documents of active vBuckets take in files, by collection";
                let size = Metric::gauge("kv_collection_data_size_bytes", help, float(*bytes));
                with_labels(size, &labels)
            }));
        }
    }
    metrics
}

fn of_node_bucket(bucket: &NodeBucket) -> Vec<Metric> {
    let (labels, bucket): (&[Label<'_>], _) = (&[("bucket", bucket.name())], bucket.bucket());
    let statistics = bucket.statistics();
    let mut metrics = of_table(BUCKET_STATISTICS, &statistics, labels);
    for (state, of_state) in STATES.iter().zip(&statistics.by_state) {
        let labels = [labels, &[(STATE_LABEL, *state)]].concat();
        metrics.extend(of_table(STATE_STATISTICS, of_state, &labels));
    }
    metrics.extend(of_table(JOURNAL_STATISTICS, &statistics, labels));
    metrics.extend(of_table(COMPACTION_STATISTICS, &bucket.compaction_statistics(), labels));
    metrics.extend(of_table(WARMUP_STATISTICS, &statistics.warmup, labels));
    metrics.extend(of_table(RANGE_SCAN_STATISTICS, &bucket.range_scan_statistics(), labels));
    metrics.extend(of_quota(&statistics).map(|metric| with_labels(metric, labels)));
    metrics
}

/// What parts of its quota a bucket may fill.
fn of_quota(statistics: &BucketStatistics) -> [Metric; 3] {
    const PARTS: [(&str, &str); 3] = [
        ("kv_ep_mem_low_wat_percent", "Part of the quota down to which values leave memory"),
        ("kv_ep_mem_high_wat_percent", "Part of the quota from which on values leave memory"),
        ("kv_ep_mutation_mem_ratio", "Part of the quota above which writes are refused"),
    ];
    std::array::from_fn(|index| {
        let (name, help) = PARTS[index];
        Metric::gauge(name, help, statistics.memory_ratios[index])
    })
}

/// What the data port has done for a bucket: for its clients, and for those of its streams.
fn of_clients(bucket: &NodeBucket, server: &Server) -> Vec<Metric> {
    let name = bucket.name();
    let labels: &[Label<'_>] = &[("bucket", name)];
    // It may go at any moment.
    let statistics = server.commands_of(name).unwrap_or_default();
    let mut metrics = of_table(COMMAND_STATISTICS, &statistics, labels);
    for (kind, streams) in server.dcp_of(name) {
        let labels = [labels, &[(CONNECTION_TYPE_LABEL, kind.as_str())]].concat();
        metrics.extend(of_table(DCP_STATISTICS, &streams, &labels));
    }
    metrics
}

/// What Prometheus reads of a table, each with these labels before its own.
fn of_table<S>(table: &[Statistic<S>], of: &S, labels: &[Label<'_>]) -> Vec<Metric> {
    let metrics = table.iter().filter_map(|statistic| {
        let name = statistic.metric?;
        let value = float((statistic.read)(of)) / statistic.units_per_metric_unit();
        let metric = match statistic.kind {
            StatisticKind::Counter => Metric::counter(name.name, statistic.metric_help(), value),
            StatisticKind::Gauge => Metric::gauge(name.name, statistic.metric_help(), value),
        };
        Some(with_labels(with_labels(metric, labels), name.labels))
    });
    metrics.collect()
}

fn with_labels(metric: Metric, labels: &[Label<'_>]) -> Metric {
    let with_label =
        |metric: Metric, (label, value): &Label<'_>| metric.with_label(label, (*value).to_owned());
    labels.iter().fold(metric, with_label)
}

fn of_process(uptime: Duration) -> [Metric; 4] {
    let resident_bytes = float(platform::process::resident_bytes());
    let cpu_seconds = float(platform::process::cpu_time_ns()) / 1e9;
    [
        Metric::gauge("kv_uptime_seconds", "Time since the start", uptime.as_secs_f64()),
        Metric::gauge("sysproc_mem_resident", "Bytes of physical memory", resident_bytes),
        Metric::counter("sysproc_cpu_seconds_total", "CPU time of the process", cpu_seconds),
        Metric::gauge("settee_build_info", "1, with the version as a label", 1.0)
            .with_label("version", VERSION),
    ]
}

/// The time, and that of the start by today's clock, both in seconds since 1970.
fn of_time(uptime: Duration, now: WallTime) -> [Metric; 2] {
    let now_seconds = float(now.0) / 1e9;
    let started_seconds = now_seconds - uptime.as_secs_f64();
    [
        Metric::gauge("kv_time_seconds", "The time, in seconds since 1970", now_seconds.floor()),
        Metric::gauge(
            "kv_boot_timestamp_seconds",
            "When the node started, in seconds since 1970",
            started_seconds.floor(),
        ),
    ]
}

/// What the audit log does; without one, that there is none.
pub(crate) fn of_audit(audit_log: Option<&AuditLog>) -> [Metric; 2] {
    let is_on = audit_log.is_some_and(AuditLog::is_on);
    let dropped = audit_log.map_or(0, AuditLog::left_out_count);
    [
        Metric::gauge("kv_audit_enabled", "1 while the audit log is on", float(is_on.into())),
        Metric::counter(
            "kv_audit_dropped_events",
            "Events that the audit log had no room for",
            float(dropped),
        ),
    ]
}

pub(crate) fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Statistics are shown with the precision of a double.
#[expect(clippy::cast_precision_loss, reason = "nobody reads the sixteenth digit of a statistic")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc;

    use document::ManifestEdit;
    use node::{BucketSettings, Node, NodeConfig};

    use super::*;
    use crate::real_world::real_world;
    use crate::setting_values::NetworkLoop;

    /// A node with one front-end thread and small buckets of these names.
    fn node_with(directory: &Path, buckets: &[&str]) -> Node {
        let bucket = |name: &&str| BucketSettings {
            name: (*name).to_owned(),
            vbuckets: Some(4),
            memory_quota_bytes: 64 << 20,
            journal_size_bytes: 64 << 20,
            ..BucketSettings::default()
        };
        let config = NodeConfig {
            data_dir: directory.join("data"),
            port: 0,
            threads: 1,
            buckets: buckets.iter().map(bucket).collect(),
            ..NodeConfig::default()
        };
        let world = real_world(config.pool_options(), NetworkLoop::Epoll).unwrap();
        Node::start(world, config, 8091).unwrap()
    }

    fn label_of_bucket(metric: &Metric) -> &str {
        let label = metric.labels.iter().find(|(name, _)| *name == "bucket");
        label.map_or("", |(_, bucket)| bucket)
    }

    #[test]
    fn metrics_keep_the_rules_of_prometheus_and_name_their_bucket() {
        let directory = tempfile::tempdir().unwrap();
        let node = node_with(directory.path(), &["bucket-1", "bucket-2"]);
        let mut metrics = figures(node.buckets(), node.server(), 0, Duration::from_secs(1));
        metrics.extend(histograms(node.buckets()));
        assert!(metrics.len() > 60);
        let buckets_of = |name: &str| -> Vec<&str> {
            let of_name = metrics.iter().filter(|metric| metric.name == name);
            let mut buckets: Vec<&str> = of_name.map(label_of_bucket).collect();
            buckets.dedup();
            buckets
        };
        for name in [
            "kv_ops",
            "kv_read_bytes",
            "kv_vb_curr_items",
            "kv_dcp_items_remaining",
            "kv_disk_seconds_count",
            "kv_sync_write_commit_duration_seconds_bucket",
        ] {
            assert_eq!(buckets_of(name), ["bucket-1", "bucket-2"], "{name}");
        }
        assert_eq!(buckets_of("kv_curr_connections"), [""], "connections are the node's");
        let make = |edit| node.membership().edit_manifest("bucket-1", edit).unwrap();
        make(ManifestEdit::CreateScope { scope: "s" });
        let (scope, collection, max_ttl) = ("s", "t", Some(3600));
        make(ManifestEdit::CreateCollection { scope, collection, max_ttl, history: false });
        let high = of_high_cardinality(
            node.buckets(),
            node.server(),
            &CollectionDiskUsage::default(),
            Instant::default(),
        );
        let names: Vec<&str> = high.iter().map(|metric| &*metric.name).collect();
        assert!(names.contains(&"kv_collection_item_count"));
        assert!(names.contains(&"kv_collection_maxTTL_seconds"));
        assert!(
            names.iter().all(|name| name.starts_with("kv_collection_")),
            "nobody has asked for anything"
        );
        for metric in metrics.iter().chain(&high) {
            assert_eq!(metric.broken_rule(), None, "{}", metric.name);
        }
        node.stop().unwrap();
    }

    #[test]
    fn a_scrape_waits_for_nobody_who_has_a_vbucket() {
        let directory = tempfile::tempdir().unwrap();
        let node = node_with(directory.path(), &["travel"]);
        let all = node.buckets().all();
        let bucket = all[0].bucket().clone();
        let ((release, released), (hold, held)) = (mpsc::channel(), mpsc::channel());
        let hold_it = move || {
            bucket.with_vbucket(document::Vbid(0), |_| {
                hold.send(()).unwrap();
                let told = released.recv_timeout(Duration::from_secs(30));
                told.expect("the scrape is over while the vBucket is held");
            });
        };
        let holder = platform::threads::spawn("Holder", hold_it).unwrap();
        held.recv().unwrap();
        let mut metrics = figures(node.buckets(), node.server(), 0, Duration::ZERO);
        metrics.extend(histograms(node.buckets()));
        let (on_disk, now) = (CollectionDiskUsage::default(), Instant::default());
        metrics.extend(of_high_cardinality(node.buckets(), node.server(), &on_disk, now));
        release.send(()).unwrap();
        holder.join().unwrap();
        let families = metrics.len();
        assert!(families > 60, "{families}");
        node.stop().unwrap();
    }
}
