//! What Prometheus reads of a node: under the original's names, with what its rules ask for behind
//! them (`_total`), so that counters have it and nothing else does.

use std::time::Duration;

use document::DurabilityLevel;
use document::histogram::HistogramSnapshot;
use management::{Metric, MetricKind};
use node::{NodeBucket, NodeBuckets, VERSION};
use server::{
    BUCKET_STATISTICS, COMMAND_STATISTICS, COMPACTION_STATISTICS, JOURNAL_STATISTICS,
    RANGE_SCAN_STATISTICS, SERVER_STATISTICS, Server, Statistic, StatisticKind,
};

/// Upper bounds of the buckets of exported histograms, in microseconds.
const EXPORTED_BOUNDS_US: [u64; 14] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 1_000_000, 10_000_000,
];
/// Levels of durable writes, as the original labels them.
const LEVELS: [(DurabilityLevel, &str); 3] = [
    (DurabilityLevel::Majority, "majority"),
    (DurabilityLevel::MajorityAndPersistOnMaster, "majority_and_persist_on_master"),
    (DurabilityLevel::PersistToMajority, "persist_to_majority"),
];
const SYNC_WRITES_HELP: &str = "Time from the prepare of a durable write to its commit";
/// The families of commands whose durations are exported, with the commands that stand for them.
const TIMED_OPCODES: [(&str, &str); 3] =
    [("get_cmd", "GET"), ("store_cmd", "SET"), ("arith_cmd", "INCREMENT")];
const DURATIONS_HELP: &str = "Time from the end of the request before to the answer";

/// Everything.
pub(crate) fn all(
    buckets: &NodeBuckets,
    server: &Server,
    pending_vbucket_count: usize,
    uptime: Duration,
) -> Vec<Metric> {
    let of_bucket = |bucket| of_node_bucket(bucket).into_iter().chain(of_commands(bucket, server));
    let buckets = buckets.all();
    let mut metrics: Vec<Metric> = buckets.iter().flat_map(of_bucket).collect();
    metrics.extend(of_table(SERVER_STATISTICS, &server.statistics(), None));
    metrics.extend(of_process(uptime));
    metrics.push(Metric::gauge(
        "kv_cluster_map_pending_vbuckets",
        "vBuckets that are not yet what the cluster map says",
        float(count(pending_vbucket_count)),
    ));
    metrics
}

fn of_node_bucket(bucket: &NodeBucket) -> Vec<Metric> {
    let (name, bucket) = (Some(bucket.name()), bucket.bucket());
    let statistics = bucket.statistics();
    let mut metrics = of_table(BUCKET_STATISTICS, &statistics, name);
    metrics.extend(of_table(JOURNAL_STATISTICS, &statistics, name));
    metrics.extend(of_table(COMPACTION_STATISTICS, &bucket.compaction_statistics(), name));
    metrics.extend(of_table(RANGE_SCAN_STATISTICS, &bucket.range_scan_statistics(), name));
    for (level, label) in LEVELS {
        let micros = bucket.timings().sync_write_commit(level).snapshot();
        let family = Durations {
            name: "kv_sync_write_commit_duration_seconds",
            help: SYNC_WRITES_HELP,
            label: ("level", label),
            units_per_us: 1,
        };
        metrics.extend(family.histogram(name, &micros));
    }
    metrics
}

/// What the data port has done for a bucket.
fn of_commands(bucket: &NodeBucket, server: &Server) -> Vec<Metric> {
    let name = bucket.name();
    // It may go at any moment.
    let statistics = server.commands_of(name).unwrap_or_default();
    let mut metrics = of_table(COMMAND_STATISTICS, &statistics, Some(name));
    let Some(timings) = server.timings_of(name) else { return metrics };
    for (timed, opcode) in TIMED_OPCODES {
        let found = timings.iter().find(|(family, _)| *family == timed);
        let (_, snapshot) = found.expect("every family of commands is timed");
        let family = Durations {
            name: "kv_cmd_duration_seconds",
            help: DURATIONS_HELP,
            label: ("opcode", opcode),
            units_per_us: 1_000,
        };
        metrics.extend(family.histogram(Some(name), snapshot));
    }
    metrics
}

/// What Prometheus reads of a table, which is about a bucket if there is one.
fn of_table<S>(table: &[Statistic<S>], of: &S, bucket: Option<&str>) -> Vec<Metric> {
    let metrics = table.iter().filter_map(|statistic| {
        let name = statistic.metric?;
        let value = float((statistic.read)(of)) / statistic.units_per_metric_unit();
        let metric = match statistic.kind {
            StatisticKind::Counter => Metric::counter(name.name, statistic.metric_help(), value),
            StatisticKind::Gauge => Metric::gauge(name.name, statistic.metric_help(), value),
        };
        let metric = of_bucket(metric, bucket);
        Some(name.labels.iter().fold(metric, |metric, (label, of)| metric.with_label(label, *of)))
    });
    metrics.collect()
}

fn of_bucket(metric: Metric, bucket: Option<&str>) -> Metric {
    match bucket {
        Some(bucket) => metric.with_label("bucket", bucket.to_owned()),
        None => metric,
    }
}

fn of_process(uptime: Duration) -> [Metric; 3] {
    let resident_bytes = float(platform::process::resident_bytes());
    [
        Metric::gauge("kv_uptime_seconds", "Time since the start", uptime.as_secs_f64()),
        Metric::gauge("sysproc_mem_resident", "Bytes of physical memory", resident_bytes),
        Metric::gauge("kv_build_info", "1, with the version as a label", 1.0)
            .with_label("version", VERSION),
    ]
}

/// A histogram of durations as Prometheus reads it, in seconds.
struct Durations {
    name: &'static str,
    help: &'static str,
    label: (&'static str, &'static str),
    /// Of what is recorded: 1000 for nanoseconds.
    units_per_us: u64,
}

impl Durations {
    fn histogram(&self, bucket: Option<&str>, snapshot: &HistogramSnapshot) -> Vec<Metric> {
        let (label, value_of_label) = self.label;
        let sample = |suffix: &str, value: f64| {
            let metric = Metric {
                name: format!("{}{suffix}", self.name).into(),
                help: self.help,
                kind: MetricKind::Histogram,
                labels: Vec::new(),
                value,
            };
            of_bucket(metric, bucket).with_label(label, value_of_label)
        };
        let up_to = |bound: u64| -> u64 {
            snapshot.buckets().filter(|bucket| bucket.to <= bound).map(|bucket| bucket.count).sum()
        };
        let mut metrics = Vec::new();
        for bound_us in EXPORTED_BOUNDS_US {
            let bound = (float(bound_us) / 1e6).to_string();
            let below = float(up_to(bound_us * self.units_per_us));
            metrics.push(sample("_bucket", below).with_label("le", bound));
        }
        let total = float(snapshot.count());
        let seconds = float(snapshot.sum()) / float(self.units_per_us) / 1e6;
        metrics.push(sample("_bucket", total).with_label("le", "+Inf"));
        metrics.push(sample("_sum", seconds));
        metrics.push(sample("_count", total));
        metrics
    }
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
    use node::{BucketSettings, Node, NodeConfig};

    use super::*;
    use crate::real_world::real_world;

    fn label_of_bucket(metric: &Metric) -> &str {
        let label = metric.labels.iter().find(|(name, _)| *name == "bucket");
        label.map_or("", |(_, bucket)| bucket)
    }

    #[test]
    fn metrics_keep_the_rules_of_prometheus_and_name_their_bucket() {
        let directory = tempfile::tempdir().unwrap();
        let bucket = |number| BucketSettings {
            name: format!("bucket-{number}"),
            vbuckets: Some(4),
            memory_quota_bytes: 64 << 20,
            journal_size_bytes: 64 << 20,
            ..BucketSettings::default()
        };
        let config = NodeConfig {
            data_dir: directory.path().join("data"),
            port: 0,
            threads: 1,
            buckets: [1, 2].map(bucket).into(),
            ..NodeConfig::default()
        };
        let world = real_world(config.pool_options()).unwrap();
        let node = Node::start(world, config, 8091).unwrap();
        let metrics = all(node.buckets(), node.server(), 0, Duration::from_secs(1));
        assert!(metrics.len() > 60);
        let buckets_of = |name: &str| -> Vec<&str> {
            let of_name = metrics.iter().filter(|metric| metric.name == name);
            let mut buckets: Vec<&str> = of_name.map(label_of_bucket).collect();
            buckets.dedup();
            buckets
        };
        for name in ["kv_ops_total", "kv_read_bytes_total", "kv_cmd_duration_seconds_count"] {
            assert_eq!(buckets_of(name), ["bucket-1", "bucket-2"], "{name}");
        }
        assert_eq!(buckets_of("kv_curr_connections"), [""], "connections are the node's");
        for metric in &metrics {
            assert_eq!(metric.broken_rule(), None, "{}", metric.name);
        }
        node.stop().unwrap();
    }

    #[test]
    fn exported_buckets_count_everything_below_their_bound() {
        let recorded = document::histogram::Histogram::default();
        for micros in [5, 20, 20, 900] {
            recorded.record(micros * 1_000);
        }
        let family = Durations {
            name: "seconds",
            help: DURATIONS_HELP,
            label: ("opcode", "GET"),
            units_per_us: 1_000,
        };
        let metrics = family.histogram(Some("travel"), &recorded.snapshot());
        let value = |bound: &str| {
            let is_bound = |metric: &&Metric| metric.labels.iter().any(|(_, value)| value == bound);
            metrics.iter().find(is_bound).unwrap().value
        };
        assert_eq!((value("0.00001"), value("0.000025"), value("0.001")), (1.0, 3.0, 4.0));
        assert_eq!(value("+Inf"), 4.0);
    }
}
