//! What Prometheus reads of a node: under the original's names, with what its rules ask for behind
//! them (`_total`), so that counters have it and nothing else does.

use std::time::Duration;

use bucket::{Bucket, BucketStatistics, CompactionStatistics};
use document::histogram::HistogramSnapshot;
use management::{Metric, MetricKind};
use server::{Server, ServerStatistics};

use crate::node::VERSION;

/// Upper bounds of the buckets of exported histograms, in microseconds.
const EXPORTED_BOUNDS_US: [u64; 14] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 1_000_000, 10_000_000,
];
const OPERATIONS_HELP: &str = "Operations, by what was asked and what came of it";
const DURATIONS_HELP: &str = "Time from the end of the request before to the answer";

/// Name, explanation and value.
type Row = (&'static str, &'static str, u64);

/// Everything.
pub(crate) fn all(
    bucket: &Bucket,
    server: &Server,
    pending_vbucket_count: usize,
    uptime: Duration,
) -> Vec<Metric> {
    let name = bucket.config().name.clone();
    let counts = server.statistics();
    let mut metrics = of_bucket(&bucket.statistics());
    metrics.extend(of_compactions(&bucket.compaction_statistics()));
    metrics.extend(of_operations(&counts));
    for ((_, snapshot), opcode) in server.timings().iter().zip(["GET", "SET", "INCREMENT"]) {
        metrics.extend(histogram("kv_cmd_duration_seconds", opcode, snapshot));
    }
    for metric in &mut metrics {
        metric.labels.insert(0, ("bucket", name.clone().into()));
    }
    metrics.extend(of_process(&counts, uptime));
    metrics.push(Metric::gauge(
        "kv_cluster_map_pending_vbuckets",
        "vBuckets that are not yet what the cluster map says",
        float(count(pending_vbucket_count)),
    ));
    metrics
}

fn of_process(server: &ServerStatistics, uptime: Duration) -> [Metric; 6] {
    let resident_bytes = float(platform::process::resident_bytes());
    [
        Metric::gauge("kv_uptime_seconds", "Time since the start", uptime.as_secs_f64()),
        Metric::gauge("sysproc_mem_resident", "Bytes of physical memory", resident_bytes),
        Metric::counter(
            "kv_auth_errors_total",
            "Logins at the data port that failed",
            float(server.auth_errors),
        ),
        Metric::counter(
            "kv_auth_successes_total",
            "Logins at the data port that succeeded",
            float(server.auth_successes),
        ),
        Metric::counter(
            "kv_foreign_clients_total",
            "Connections closed because of bytes that are not the protocol",
            float(server.malformed_frames),
        ),
        Metric::gauge("kv_build_info", "1, with the version as a label", 1.0)
            .with_label("version", VERSION),
    ]
}

fn of_operations(server: &ServerStatistics) -> Vec<Metric> {
    let ops = |op: &'static str, result: &'static str, value: u64| {
        Metric::counter("kv_ops_total", OPERATIONS_HELP, float(value))
            .with_label("op", op)
            .with_label("result", result)
    };
    let mut metrics = vec![
        ops("get", "hit", server.get_hits),
        ops("get", "miss", server.get_misses),
        ops("set", "hit", server.cmd_set),
        ops("delete", "hit", server.cmd_delete),
        ops("lock", "hit", server.cmd_lock),
        ops("cas", "badval", server.cas_badval),
    ];
    let connections = float(server.curr_connections);
    metrics.push(Metric::gauge("kv_curr_connections", "Connections now", connections));
    let bytes: [Row; 2] = [
        ("kv_read_bytes_total", "Bytes received at the data port", server.bytes_read),
        ("kv_written_bytes_total", "Bytes sent from the data port", server.bytes_written),
    ];
    metrics.extend(counters(bytes));
    metrics
}

fn of_bucket(statistics: &BucketStatistics) -> Vec<Metric> {
    let journal = statistics.journal.unwrap_or_default();
    let queued = count(statistics.queued_item_count);
    let unapplied = count(statistics.backlog.items);
    let gauges: [Row; _] = [
        ("kv_curr_items", "Live documents", count(statistics.document_count)),
        ("kv_mem_used_bytes", "Memory that counts against the quota", statistics.used_bytes()),
        ("kv_ep_max_size", "The memory quota in bytes", statistics.memory_quota_bytes),
        (
            "kv_ep_mem_low_wat_bytes",
            "Memory down to which values leave it",
            statistics.watermarks.low_bytes,
        ),
        (
            "kv_ep_mem_high_wat_bytes",
            "Memory from which on values leave it",
            statistics.watermarks.high_bytes,
        ),
        ("kv_curr_temp_items", "Keys being looked up on disk", count(statistics.lookup_count)),
        ("kv_ep_checkpoint_memory_bytes", "Memory of checkpoints", statistics.checkpoints_bytes),
        ("kv_ep_queue_size", "Writes that wait to become durable", queued),
        ("kv_ep_diskqueue_items", "Writes that wait to become durable", queued),
        ("kv_ep_num_non_resident", "Values on disk alone", count(statistics.ejected_count)),
        ("kv_ep_journal_used_bytes", "What the journal takes", journal.used_bytes),
        ("kv_ep_journal_max_bytes", "What the journal may take", journal.bytes_max),
        ("kv_ep_journal_unapplied_items", "Writes in the journal that no file has", unapplied),
        (
            "kv_ep_vbuckets_damaged",
            "vBuckets whose files are damaged",
            count(statistics.damaged_vbucket_count),
        ),
    ];
    let rising: [Row; _] = [
        ("kv_ep_commit_num_total", "Commits of files or of the journal", statistics.commits),
        ("kv_ep_data_write_failed_total", "Writes that failed", statistics.write_failures()),
        ("kv_ep_journal_written_bytes_total", "Bytes of the journal", journal.written_bytes),
        ("kv_ep_journal_groups_total", "Groups made durable with one sync", journal.group_count),
        ("kv_ep_journal_applies_total", "Files that followed the journal", statistics.applies),
        ("kv_ep_data_read_failed_total", "Reads that failed", statistics.reads_failed),
        ("kv_ep_total_persisted_total", "Writes made durable", statistics.items_persisted),
        ("kv_ep_bg_fetched_total", "Values read from disk", statistics.values_fetched),
        ("kv_ep_bg_meta_fetched_total", "Keys read from disk", statistics.documents_fetched),
        ("kv_ep_num_value_ejects_total", "Values that left memory", statistics.vbuckets.ejections),
        ("kv_ep_num_pager_runs_total", "Rounds of the pager", statistics.pager_rounds),
        (
            "kv_ep_num_freq_decayer_runs_total",
            "Rounds that halve frequency counters",
            statistics.decayer_rounds,
        ),
        ("kv_ep_tmp_oom_errors_total", "Writes without memory", statistics.memory_refusals),
        ("kv_vb_ops_create_total", "Documents created", statistics.vbuckets.creations),
        ("kv_vb_ops_update_total", "Documents changed", statistics.vbuckets.updates),
        ("kv_vb_ops_delete_total", "Documents deleted", statistics.vbuckets.deletions),
        (
            "kv_vb_auto_delete_total",
            "Documents that a full ephemeral bucket deleted",
            statistics.vbuckets.auto_deletions,
        ),
        (
            "kv_ep_item_compressor_num_visited_total",
            "Documents that the compressor looked at",
            statistics.compressor_visited,
        ),
        (
            "kv_ep_item_compressor_num_compressed_total",
            "Documents that it compressed",
            statistics.compressor_compressed,
        ),
    ];
    let gauges = gauges.map(|(name, help, value)| Metric::gauge(name, help, float(value)));
    gauges.into_iter().chain(counters(rising)).collect()
}

fn of_compactions(statistics: &CompactionStatistics) -> Vec<Metric> {
    let waiting = statistics.ordered_count + statistics.fragmented_count;
    let pending = float(count(waiting + statistics.running.len()));
    let purged = |kind: &'static str, value| {
        let help = "What compactions left out for good, by kind";
        Metric::counter("kv_ep_compaction_purged_total", help, float(value))
            .with_label("type", kind)
    };
    let rising: [Row; _] = [
        ("kv_ep_compaction_failed_total", "Compactions that failed", statistics.failed),
        ("kv_ep_compaction_aborted_total", "Compactions given up", statistics.aborted),
        ("kv_ep_expired_compactor_total", "Expired documents found", statistics.expired),
    ];
    let mut metrics =
        vec![Metric::gauge("kv_ep_pending_compactions", "Compactions that wait or run", pending)];
    metrics.extend(counters(rising));
    metrics.extend([
        purged("tombstones", statistics.tombstones_purged),
        purged("prepares", statistics.prepares_purged),
        purged("dropped_collections", statistics.of_dropped_collections),
    ]);
    metrics
}

fn counters<const COUNT: usize>(rows: [Row; COUNT]) -> [Metric; COUNT] {
    rows.map(|(name, help, value)| Metric::counter(name, help, float(value)))
}

/// A histogram of nanoseconds as Prometheus reads it, in seconds.
fn histogram(name: &str, opcode: &'static str, snapshot: &HistogramSnapshot) -> Vec<Metric> {
    let sample = |suffix: &str, value: f64| Metric {
        name: format!("{name}{suffix}").into(),
        help: DURATIONS_HELP,
        kind: MetricKind::Histogram,
        labels: vec![("opcode", opcode.into())],
        value,
    };
    let up_to = |bound_ns: u64| -> u64 {
        snapshot.buckets().filter(|bucket| bucket.to <= bound_ns).map(|bucket| bucket.count).sum()
    };
    let mut metrics = Vec::new();
    for bound_us in EXPORTED_BOUNDS_US {
        let bound = (float(bound_us) / 1e6).to_string();
        let below = float(up_to(bound_us * 1_000));
        metrics.push(sample("_bucket", below).with_label("le", bound));
    }
    let total = float(snapshot.count());
    metrics.push(sample("_bucket", total).with_label("le", "+Inf"));
    metrics.push(sample("_sum", float(snapshot.sum()) / 1e9));
    metrics.push(sample("_count", total));
    metrics
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
    use super::*;

    #[test]
    fn exported_buckets_count_everything_below_their_bound() {
        let recorded = document::histogram::Histogram::default();
        for micros in [5, 20, 20, 900] {
            recorded.record(micros * 1_000);
        }
        let metrics = histogram("seconds", "GET", &recorded.snapshot());
        let value = |bound: &str| {
            let is_bound = |metric: &&Metric| metric.labels.iter().any(|(_, value)| value == bound);
            metrics.iter().find(is_bound).unwrap().value
        };
        assert_eq!((value("0.00001"), value("0.000025"), value("0.001")), (1.0, 3.0, 4.0));
        assert_eq!(value("+Inf"), 4.0);
    }
}
