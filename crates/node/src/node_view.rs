//! The node as its REST port sees it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bucket::{
    Bucket, BucketStatistics, BucketType, CompactionStatistics, EvictionPolicy, FullPolicy, Named,
    WarmupPhase,
};
use cluster::{BucketMap, ClusterMap, ClusterPlan, PendingVbucket};
use document::Vbid;
use document::histogram::HistogramSnapshot;
use management::{
    BackupError, BackupSource, BucketFacts, BucketKind, CarryOutError, DamagedVbucket, FlushError,
    Metric, MetricKind, NodeFacts, NodeView, ResetError, Warmup,
};
use platform::{Clock, Instant};
use server::Server;

use crate::backup_source;
use crate::damage;
use crate::membership::{CarriedOut, Membership};
use crate::node::VERSION;

/// Two samples of a rate are at least this far apart.
const RATE_INTERVAL: Duration = Duration::from_secs(1);
/// Upper bounds of the buckets of exported histograms, in microseconds.
const EXPORTED_BOUNDS_US: [u64; 14] = [
    10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 100_000, 1_000_000, 10_000_000,
];

/// What the REST port looks at.
pub(crate) struct View {
    clock: Clock,
    started: Instant,
    membership: Arc<Membership>,
    bucket: Bucket,
    server: Arc<Server>,
    flush_enabled: bool,
    operations: Rate,
    fetches: Rate,
}

/// How fast a counter rises.
#[derive(Default)]
struct Rate(Mutex<RateSample>);

#[derive(Default)]
struct RateSample {
    taken: Instant,
    count: u64,
    per_second: f64,
}

impl View {
    pub(crate) fn new(
        clock: Clock,
        membership: Arc<Membership>,
        bucket: Bucket,
        server: Arc<Server>,
        flush_enabled: bool,
    ) -> Self {
        Self {
            started: clock.now(),
            clock,
            membership,
            bucket,
            server,
            flush_enabled,
            operations: Rate::default(),
            fetches: Rate::default(),
        }
    }
}

impl NodeView for View {
    fn cluster_map(&self) -> ClusterMap {
        self.membership.maps().0
    }

    fn bucket_map(&self) -> BucketMap {
        self.membership.maps().1
    }

    fn cluster_plan(&self) -> String {
        self.membership.plan().to_json()
    }

    fn pending_vbuckets(&self) -> Vec<PendingVbucket> {
        self.membership.pending()
    }

    fn carry_out(&self, plan: &str) -> Result<(), CarryOutError> {
        let plan = ClusterPlan::parse(plan);
        let plan = plan.map_err(|invalid| CarryOutError::Invalid(invalid.to_string()))?;
        match self.membership.carry_out(&plan) {
            CarriedOut::Done => Ok(()),
            CarriedOut::Refused(reason) => Err(CarryOutError::Invalid(reason)),
            CarriedOut::Older(current) => Err(CarryOutError::Older(format!(
                "The node has the map of revision [{}, {}]",
                current.epoch, current.revision
            ))),
        }
    }

    fn watch_maps(&self, notify: Box<dyn Fn() + Send + Sync>) {
        self.membership.watch(notify);
    }

    fn bucket(&self) -> BucketFacts {
        let statistics = self.bucket.statistics();
        let operations = self.server.statistics().cmd_total;
        let now = self.clock.now();
        BucketFacts {
            quota_bytes: statistics.memory_quota_bytes,
            memory_used_bytes: statistics.used_bytes(),
            data_used_bytes: statistics.documents_bytes,
            disk_used_bytes: self.bucket.file_sizes().file_bytes,
            items: count(statistics.document_count),
            operations_per_second: self.operations.sample(operations, now),
            disk_fetches_per_second: self.fetches.sample(statistics.values_fetched, now),
            flush_enabled: self.flush_enabled,
            kind: kind_of(&self.bucket),
            compression_mode: self.bucket.compression_mode().name(),
        }
    }

    fn node(&self) -> NodeFacts {
        let memory_total_bytes = platform::process::memory_limit_bytes();
        let resident_bytes = platform::process::resident_bytes();
        NodeFacts {
            version: VERSION.to_owned(),
            uptime: self.clock.now().since(self.started),
            cpu_count: platform::threads::available_cpus(),
            memory_total_bytes,
            memory_free_bytes: memory_total_bytes.saturating_sub(resident_bytes),
        }
    }

    fn warmup(&self) -> Warmup {
        let progress = self.bucket.warmup_progress();
        Warmup {
            is_finished: progress.phase != WarmupPhase::Metadata,
            items_loaded: progress.documents_loaded,
            items_expected: progress.documents_total,
        }
    }

    fn flush(&self) -> Result<(), FlushError> {
        if !self.flush_enabled {
            return Err(FlushError::Disabled);
        }
        self.bucket.flush_all().map_err(|error| FlushError::Failed(error.to_string()))
    }

    fn compact(&self) -> Result<(), String> {
        self.bucket.compact_all().map_err(|_| "The bucket keeps nothing in files".to_owned())
    }

    fn cancel_compactions(&self) {
        self.bucket.cancel_compactions();
    }

    fn begin_backup(&self) -> Result<Box<dyn BackupSource>, BackupError> {
        backup_source::begin(&self.bucket)
    }

    fn damaged_vbuckets(&self) -> Vec<DamagedVbucket> {
        damage::list(&self.bucket)
    }

    fn reset_loss(&self, vbid: u16) -> Result<String, ResetError> {
        damage::check_role(&self.membership, vbid)?;
        damage::describe_loss(&self.bucket, Vbid(vbid))
    }

    fn reset_vbucket(&self, vbid: u16) -> Result<(), ResetError> {
        let topology = damage::check_role(&self.membership, vbid)?;
        damage::reset(&self.bucket, Vbid(vbid), topology)
    }

    fn set_memory_quota(&self, bytes: u64) -> Result<(), String> {
        self.bucket.set_memory_quota(bytes).map_err(|error| error.to_string())
    }

    fn metrics(&self) -> Vec<Metric> {
        let name = self.bucket.config().name.clone();
        let mut metrics = bucket_metrics(&self.bucket.statistics());
        metrics.extend(compaction_metrics(&self.bucket.compaction_statistics()));
        metrics.extend(self.operation_metrics());
        for metric in &mut metrics {
            metric.labels.insert(0, ("bucket", name.clone().into()));
        }
        let pending = float(count(self.membership.pending().len()));
        metrics.push(Metric::gauge("kv_cluster_map_pending_vbuckets", pending));
        let uptime = self.clock.now().since(self.started).as_secs_f64();
        let resident_bytes = float(platform::process::resident_bytes());
        metrics.push(Metric::gauge("kv_uptime_seconds", uptime));
        metrics.push(Metric::gauge("sysproc_mem_resident", resident_bytes));
        metrics
    }
}

impl View {
    fn operation_metrics(&self) -> Vec<Metric> {
        let server = self.server.statistics();
        let ops = |op: &'static str, result: &'static str, value: u64| {
            Metric::counter("kv_ops", float(value))
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
            Metric::gauge("kv_curr_connections", float(server.curr_connections)),
            Metric::counter("kv_read_bytes", float(server.bytes_read)),
            Metric::counter("kv_written_bytes", float(server.bytes_written)),
        ];
        let opcodes =
            [("get_cmd", "GET"), ("store_cmd", "SET"), ("arith_cmd", "INCREMENT"), ("", "")];
        for ((_, snapshot), (_, opcode)) in self.server.timings().iter().zip(opcodes) {
            if !opcode.is_empty() {
                metrics.extend(histogram_metrics("kv_cmd_duration_seconds", opcode, snapshot));
            }
        }
        metrics
    }
}

fn kind_of(bucket: &Bucket) -> BucketKind {
    let eviction = bucket.config().eviction.policy;
    match (bucket.bucket_type(), bucket.full_policy()) {
        (BucketType::Couchbase, _) if eviction == EvictionPolicy::Full => BucketKind::FullEviction,
        (BucketType::Couchbase, _) => BucketKind::Couchbase,
        (BucketType::Ephemeral, FullPolicy::AutoDelete) => BucketKind::EphemeralAutoDelete,
        (BucketType::Ephemeral, FullPolicy::FailNewData) => BucketKind::EphemeralFailNewData,
    }
}

fn bucket_metrics(statistics: &BucketStatistics) -> Vec<Metric> {
    let used_bytes = statistics.used_bytes();
    let journal = statistics.journal.unwrap_or_default();
    let gauges: [(&'static str, u64); _] = [
        ("kv_curr_items", count(statistics.document_count)),
        ("kv_mem_used_bytes", used_bytes),
        ("kv_ep_max_size", statistics.memory_quota_bytes),
        ("kv_ep_mem_low_wat_bytes", statistics.watermarks.low_bytes),
        ("kv_ep_mem_high_wat_bytes", statistics.watermarks.high_bytes),
        ("kv_curr_temp_items", count(statistics.lookup_count)),
        ("kv_ep_checkpoint_memory_bytes", statistics.checkpoints_bytes),
        ("kv_ep_queue_size", count(statistics.queued_item_count)),
        ("kv_ep_diskqueue_items", count(statistics.queued_item_count)),
        ("kv_ep_num_non_resident", count(statistics.ejected_count)),
        ("kv_ep_journal_used_bytes", journal.used_bytes),
        ("kv_ep_journal_max_bytes", journal.bytes_max),
        ("kv_ep_journal_unapplied_items", count(statistics.backlog.items)),
        ("kv_ep_vbuckets_damaged", count(statistics.damaged_vbucket_count)),
    ];
    let counters: [(&'static str, u64); _] = [
        ("kv_ep_commit_num", statistics.commits),
        ("kv_ep_data_write_failed", statistics.write_failures()),
        ("kv_ep_journal_written_bytes", journal.written_bytes),
        ("kv_ep_journal_groups", journal.group_count),
        ("kv_ep_journal_applies", statistics.applies),
        ("kv_ep_data_read_failed", statistics.reads_failed),
        ("kv_ep_total_persisted", statistics.items_persisted),
        ("kv_ep_bg_fetched", statistics.values_fetched),
        ("kv_ep_bg_meta_fetched", statistics.documents_fetched),
        ("kv_ep_num_value_ejects", statistics.vbuckets.ejections),
        ("kv_ep_num_pager_runs", statistics.pager_rounds),
        ("kv_ep_num_freq_decayer_runs", statistics.decayer_rounds),
        ("kv_ep_tmp_oom_errors", statistics.memory_refusals),
        ("kv_vb_ops_create", statistics.vbuckets.creations),
        ("kv_vb_ops_update", statistics.vbuckets.updates),
        ("kv_vb_ops_delete", statistics.vbuckets.deletions),
        ("kv_vb_auto_delete_count", statistics.vbuckets.auto_deletions),
        ("kv_ep_item_compressor_num_visited", statistics.compressor_visited),
        ("kv_ep_item_compressor_num_compressed", statistics.compressor_compressed),
    ];
    let gauges = gauges.map(|(name, value)| Metric::gauge(name, float(value)));
    let counters = counters.map(|(name, value)| Metric::counter(name, float(value)));
    gauges.into_iter().chain(counters).collect()
}

fn compaction_metrics(statistics: &CompactionStatistics) -> Vec<Metric> {
    let waiting = statistics.ordered_count + statistics.fragmented_count;
    let pending = count(waiting + statistics.running.len());
    let purged = |kind: &'static str, value| {
        Metric::counter("kv_ep_compaction_purged", float(value)).with_label("type", kind)
    };
    vec![
        Metric::gauge("kv_ep_pending_compactions", float(pending)),
        Metric::counter("kv_ep_compaction_failed", float(statistics.failed)),
        Metric::counter("kv_ep_compaction_aborted", float(statistics.aborted)),
        Metric::counter("kv_ep_expired_compactor", float(statistics.expired)),
        purged("tombstones", statistics.tombstones_purged),
        purged("prepares", statistics.prepares_purged),
        purged("dropped_collections", statistics.of_dropped_collections),
    ]
}

/// A histogram of nanoseconds as Prometheus reads it, in seconds.
fn histogram_metrics(
    name: &str,
    opcode: &'static str,
    snapshot: &HistogramSnapshot,
) -> Vec<Metric> {
    let sample = |suffix: &str, value: f64| Metric {
        name: format!("{name}{suffix}").into(),
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

impl Rate {
    /// The rate between this sample and an earlier one.
    fn sample(&self, counted: u64, now: Instant) -> f64 {
        let mut sample = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = now.since(sample.taken);
        if elapsed >= RATE_INTERVAL {
            let step = counted.saturating_sub(sample.count);
            let is_first = sample.taken == Instant::default();
            let per_second = if is_first { 0.0 } else { float(step) / elapsed.as_secs_f64() };
            *sample = RateSample { taken: now, count: counted, per_second };
        }
        sample.per_second
    }
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Statistics are shown with the precision of a double.
#[expect(clippy::cast_precision_loss, reason = "nobody reads the sixteenth digit of a statistic")]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_what_happened_between_two_samples() {
        let rate = Rate::default();
        let second = |seconds: u64| Instant(seconds * 1_000_000_000);
        assert_eq!(rate.sample(100, second(5)), 0.0, "nothing to compare with yet");
        assert_eq!(rate.sample(150, second(5)), 0.0);
        assert_eq!(rate.sample(300, second(7)), 100.0);
        assert_eq!(rate.sample(999, second(7)), 100.0, "too soon for another");
    }

    #[test]
    fn exported_buckets_count_everything_below_their_bound() {
        let histogram = document::histogram::Histogram::default();
        for micros in [5, 20, 20, 900] {
            histogram.record(micros * 1_000);
        }
        let metrics = histogram_metrics("seconds", "GET", &histogram.snapshot());
        let value = |bound: &str| {
            let is_bound = |metric: &&Metric| metric.labels.iter().any(|(_, value)| value == bound);
            metrics.iter().find(is_bound).unwrap().value
        };
        assert_eq!((value("0.00001"), value("0.000025"), value("0.001")), (1.0, 3.0, 4.0));
        assert_eq!(value("+Inf"), 4.0);
    }
}
