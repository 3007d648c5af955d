//! A bucket of the node as its REST port sees it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bucket::{
    Bucket, BucketType, DurabilityMinLevel, EvictionPolicy, FullPolicy, ManifestChangeError, Named,
    WarmupPhase,
};
use cluster::{BucketMap, PendingVbucket};
use document::{CollectionId, DurabilityLevel, Manifest, ManifestEdit, Vbid};
use management::{
    BackupError, BackupSource, BucketFacts, BucketKind, BucketView, CompactionError,
    DamagedVbucket, DocumentError, DocumentId, FlushError, HotKeys, KeyPage, KeyQuery,
    ManifestEditError, NewDocument, ResetError, ShownDocument, SlowOperationFacts, Timing,
    TimingUnit, VbucketFacts, Warmup,
};
use node::{CompactionChange, Membership, NodeBucket};
use platform::Clock;
use server::{HotKey, SAMPLED_EVERY, Server};

use crate::backup_source;
use crate::damage;
use crate::document_view::{self, DocumentPlace};
use crate::metrics;
use crate::rate::Rate;

/// Documents that are told of a sampling.
const HOT_KEYS_MAX: usize = 50;
/// The one histogram of a bucket that is not of durations.
const BATCH_SIZES: &str = "bg_batch_size";

/// How long replicas may take to follow a flush, and how often they are asked.
const FOLLOW_TIME_MAX: Duration = Duration::from_secs(10);
const FOLLOW_PAUSE: Duration = Duration::from_millis(20);

/// What the REST port looks at.
pub(crate) struct ViewedBucket {
    clock: Clock,
    membership: Arc<Membership>,
    name: String,
    map: BucketMap,
    bucket: NodeBucket,
    server: Arc<Server>,
    rates: Arc<BucketRates>,
}

/// What is remembered of a bucket from one look to the next.
#[derive(Default)]
pub(crate) struct BucketRates {
    fetches: Rate,
    operations: Rate,
    gets: Rate,
    get_hits: Rate,
}

impl ViewedBucket {
    pub(crate) fn new(
        clock: Clock,
        membership: Arc<Membership>,
        server: Arc<Server>,
        bucket: NodeBucket,
        rates: Arc<BucketRates>,
    ) -> Option<Self> {
        let name = bucket.name().to_owned();
        let map = membership.bucket_map(&name)?;
        Some(Self { clock, membership, name, map, bucket, server, rates })
    }

    fn bucket(&self) -> &Bucket {
        self.bucket.bucket()
    }

    fn order_compaction_elsewhere(&self, order: CompactionChange) -> Result<(), CompactionError> {
        let ordered = self.membership.order_compaction_elsewhere(&self.name, order);
        ordered.map_err(CompactionError::Failed)
    }

    /// Where its documents are.
    fn place(&self) -> DocumentPlace<'_> {
        let (documents, map) = (self.bucket.documents(), &self.map);
        DocumentPlace { documents, map, cluster: self.membership.cluster_map() }
    }
}

impl BucketView for ViewedBucket {
    fn map(&self) -> BucketMap {
        self.map.clone()
    }

    fn pending_vbuckets(&self) -> Vec<PendingVbucket> {
        self.membership.pending(&self.name)
    }

    fn incomplete_vbuckets(&self) -> Vec<u16> {
        self.bucket().incomplete_vbuckets().into_iter().map(|vbid| vbid.0).collect()
    }

    fn facts(&self) -> BucketFacts {
        let (statistics, now) = (self.bucket().statistics(), self.clock.now());
        let commands = self.server.commands_of(&self.name).unwrap_or_default();
        let [active, replica, ..] = statistics.by_state;
        BucketFacts {
            quota_bytes: statistics.memory_quota_bytes,
            memory_used_bytes: statistics.used_bytes(),
            data_used_bytes: statistics.documents_bytes,
            disk_used_bytes: self.bucket().file_sizes().file_bytes,
            active_items: metrics::count(active.document_count),
            active_non_resident_items: metrics::count(active.ejected_count),
            replica_items: metrics::count(replica.document_count),
            all_items: metrics::count(statistics.document_count),
            disk_fetches_per_second: self.rates.fetches.sample(statistics.values_fetched, now),
            operations_per_second: self.rates.operations.sample(commands.cmd_total, now),
            gets_per_second: self.rates.gets.sample(commands.cmd_get, now),
            get_hits_per_second: self.rates.get_hits.sample(commands.get_hits, now),
            replica_number: self.bucket.settings().replica_count.max(self.map.replica_count),
            flush_enabled: self.bucket.flush_enabled(),
            kind: kind_of(self.bucket()),
            compression_mode: self.bucket().compression_mode().name(),
            max_ttl_seconds: self.bucket().max_ttl_seconds(),
            durability_level_min: level_name(self.bucket().durability_min_level()),
            conflict_resolution: self.bucket().conflict_resolution().name(),
        }
    }

    fn warmup(&self) -> Warmup {
        let progress = self.bucket().warmup_progress();
        Warmup {
            is_finished: progress.phase != WarmupPhase::Metadata,
            items_loaded: progress.documents_loaded,
            items_expected: progress.documents_total,
        }
    }

    fn flush(&self) -> Result<(), FlushError> {
        if !self.bucket.flush_enabled() {
            return Err(FlushError::Disabled);
        }
        let flush_here = || self.bucket().flush_all().map_err(|error| error.to_string());
        // Other nodes have waited for their replicas before.
        let mut end = None;
        let pause = || {
            let end = *end.get_or_insert_with(|| self.clock.now().after(FOLLOW_TIME_MAX));
            std::thread::park_timeout(FOLLOW_PAUSE);
            self.clock.now() < end
        };
        let flushed = self.membership.flush_everywhere(&self.name, flush_here, pause);
        flushed.map_err(FlushError::Failed)
    }

    fn compact(&self) -> Result<(), CompactionError> {
        self.compact_here()?;
        self.order_compaction_elsewhere(CompactionChange::Begin)
    }

    fn cancel_compactions(&self) -> Result<(), CompactionError> {
        self.cancel_compactions_here();
        self.order_compaction_elsewhere(CompactionChange::Cancel)
    }

    fn compact_here(&self) -> Result<(), CompactionError> {
        let why = || CompactionError::Impossible("The bucket keeps nothing in files".to_owned());
        self.bucket().compact_all().map_err(|_| why())
    }

    fn cancel_compactions_here(&self) {
        self.bucket().cancel_compactions();
    }

    fn begin_backup(&self) -> Result<Box<dyn BackupSource>, BackupError> {
        backup_source::begin(&self.membership, self.bucket())
    }

    fn damaged_vbuckets(&self) -> Vec<DamagedVbucket> {
        damage::list(self.bucket())
    }

    fn reset_loss(&self, vbid: u16) -> Result<String, ResetError> {
        damage::check_role(&self.membership, &self.name, vbid)?;
        damage::describe_loss(self.bucket(), Vbid(vbid))
    }

    fn reset_vbucket(&self, vbid: u16) -> Result<(), ResetError> {
        let topology = damage::check_role(&self.membership, &self.name, vbid)?;
        damage::reset(self.bucket(), Vbid(vbid), topology)
    }

    fn vbuckets(&self) -> Vec<VbucketFacts> {
        let mut all = Vec::new();
        let replication_lag = self.server.replication_lag_of(&self.name);
        self.bucket().for_each_vbucket(|vbid, vbucket| {
            all.push(VbucketFacts {
                vbid: vbid.0,
                state: vbucket.state().name(),
                items: metrics::count(vbucket.document_count()),
                non_resident_items: metrics::count(vbucket.ejected_count()),
                high_seqno: vbucket.high_seqno().0,
                persisted_seqno: vbucket.persisted_for_clients().0,
                unflushed_items: metrics::count(vbucket.checkpoints().unflushed_count()),
                replication_lag: replication_lag.get(&vbid.0).copied(),
            });
        });
        all
    }

    fn timings(&self) -> Vec<Timing> {
        let commands = self.server.timings_of(&self.name).into_iter();
        let commands = commands.map(|(opcode, values)| {
            let unit = TimingUnit::Nanoseconds;
            Timing { name: opcode.name(), unit, values }
        });
        let own = self.bucket().timings().all().map(|(name, histogram)| {
            let is_count = name == BATCH_SIZES;
            let unit = if is_count { TimingUnit::Count } else { TimingUnit::Microseconds };
            Timing { name, unit, values: histogram.snapshot() }
        });
        commands.chain(own).collect()
    }

    fn slow_operations(&self) -> Vec<SlowOperationFacts> {
        self.server.slow_operations_of(&self.name).iter().map(slow_operation).collect()
    }

    fn hot_keys(&self) -> HotKeys {
        let (hot, counted, time_left) = self.server.hot_keys_of(&self.name);
        let named = |HotKey { key, count }| (String::from_utf8_lossy(&key).into_owned(), count);
        let keys = hot.into_iter().take(HOT_KEYS_MAX).map(named).collect();
        HotKeys { keys, counted, sampled_every: SAMPLED_EVERY, time_left }
    }

    fn document_keys(&self, query: &KeyQuery) -> Result<KeyPage, DocumentError> {
        document_view::keys(self.bucket(), query)
    }

    fn read_document(&self, id: DocumentId<'_>) -> Result<ShownDocument, DocumentError> {
        document_view::read(&self.place(), id)
    }

    fn write_document(
        &self,
        id: DocumentId<'_>,
        document: &NewDocument<'_>,
    ) -> Result<u64, DocumentError> {
        document_view::write(&self.place(), id, document)
    }

    fn delete_document(&self, id: DocumentId<'_>, cas: u64) -> Result<(), DocumentError> {
        document_view::delete(&self.place(), id, cas)
    }

    fn collection_items(&self) -> BTreeMap<CollectionId, u64> {
        let collections = self.server.collections_of(&self.name).into_iter();
        collections.map(|one| (one.id, one.figures.documents)).collect()
    }

    fn manifest(&self) -> Arc<Manifest> {
        self.bucket().manifest()
    }

    fn edit_manifest(&self, edit: ManifestEdit<'_>) -> Result<Arc<Manifest>, ManifestEditError> {
        self.membership.edit_manifest(&self.name, edit).map_err(|error| match error {
            ManifestChangeError::Refused(error) => ManifestEditError::Refused(error),
            error => ManifestEditError::Failed(error.to_string()),
        })
    }
}

fn slow_operation(operation: &server::SlowOperation) -> SlowOperationFacts {
    SlowOperationFacts {
        ended_at_ms: operation.ended_at.0 / 1_000_000,
        command: operation.command(),
        key: String::from_utf8_lossy(&operation.key).into_owned(),
        client: operation.client.clone(),
        took: operation.took,
        spans: operation.spans.named().to_vec(),
    }
}

/// As the original's clients read it over REST.
fn level_name(level_min: DurabilityMinLevel) -> &'static str {
    match level_min.0 {
        None => "none",
        Some(DurabilityLevel::Majority) => "majority",
        Some(DurabilityLevel::MajorityAndPersistOnMaster) => "majorityAndPersistActive",
        Some(DurabilityLevel::PersistToMajority) => "persistToMajority",
    }
}

fn kind_of(bucket: &Bucket) -> BucketKind {
    let eviction = bucket.eviction_policy();
    match (bucket.bucket_type(), bucket.full_policy()) {
        (BucketType::Couchbase, _) if eviction == EvictionPolicy::Full => BucketKind::FullEviction,
        (BucketType::Couchbase, _) => BucketKind::Couchbase,
        (BucketType::Ephemeral, FullPolicy::AutoDelete) => BucketKind::EphemeralAutoDelete,
        (BucketType::Ephemeral, FullPolicy::FailNewData) => BucketKind::EphemeralFailNewData,
    }
}
