//! The node as its REST port sees it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bucket::{Bucket, BucketType, EvictionPolicy, FullPolicy, Named, WarmupPhase};
use cluster::{BucketMap, ClusterMap, ClusterPlan, PendingVbucket};
use document::Vbid;
use management::{
    BackupError, BackupSource, BucketFacts, BucketKind, CarryOutError, DamagedVbucket, FlushError,
    Metric, NodeFacts, NodeView, ResetError, Warmup,
};
use platform::{Clock, Instant};
use server::Server;

use crate::backup_source;
use crate::damage;
use crate::membership::{CarriedOut, Membership};
use crate::metrics;
use crate::node::VERSION;

/// Two samples of a rate are at least this far apart.
const RATE_INTERVAL: Duration = Duration::from_secs(1);
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
            items: metrics::count(statistics.document_count),
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
        let uptime = self.clock.now().since(self.started);
        let pending = self.membership.pending().len();
        metrics::all(&self.bucket, &self.server, pending, uptime)
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

impl Rate {
    /// The rate between this sample and an earlier one.
    fn sample(&self, counted: u64, now: Instant) -> f64 {
        let mut sample = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let elapsed = now.since(sample.taken);
        if elapsed >= RATE_INTERVAL {
            let step = counted.saturating_sub(sample.count);
            let is_first = sample.taken == Instant::default();
            let per_second =
                if is_first { 0.0 } else { metrics::float(step) / elapsed.as_secs_f64() };
            *sample = RateSample { taken: now, count: counted, per_second };
        }
        sample.per_second
    }
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
}
