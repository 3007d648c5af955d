//! A node whose state, and that of its buckets, the test sets.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use auth::{Editor, Users, UsersEdit, UsersEditError};
use cluster::{
    BucketMap, ClusterMap, NodeAddress, PendingVbucket, Revision, StorageFigures, TlsPorts, Uuid,
};
use document::{CollectionId, Histogram, Manifest, ManifestEdit};
use management::{
    AuditLog, BackupCatalogue, BackupError, BackupSink, BackupSource, BackupVbucket, BucketFacts,
    BucketKind, BucketOrder, BucketOrderError, BucketView, CarryOutError, CompactionError,
    DamagedVbucket, DocumentError, DocumentId, FlushError, HotKeys, KeyPage, KeyPosition, KeyQuery,
    ManifestEditError, Metric, MetricKind, NewDocument, NodeFacts, NodeView, ResetError, SetUp,
    SetupChange, SetupError, ShownDocument, SlowOperationFacts, Timing, TimingUnit, VbucketFacts,
    Warmup,
};
use platform::Entropy;

pub(crate) const WARM: Warmup = Warmup { is_finished: true, items_loaded: 40, items_expected: 40 };
pub(crate) const COLD: Warmup = Warmup { is_finished: false, items_loaded: 10, items_expected: 40 };

pub(crate) struct FakeNode {
    pub(crate) cluster_uuid: Uuid,
    /// In the order of their names.
    pub(crate) buckets: Mutex<Vec<Arc<FakeBucket>>>,
    /// Who may log in.
    pub(crate) users: Arc<Users>,
    /// What the other nodes have said last, and what they say when they are asked.
    pub(crate) elsewhere: Mutex<[StorageFigures; 2]>,
    /// Nodes that do not answer.
    pub(crate) silent_nodes: Mutex<Vec<String>>,
    /// What it was told to carry out last.
    pub(crate) plan: Mutex<String>,
    /// Why it would not.
    pub(crate) plan_error: Mutex<Option<CarryOutError>>,
    /// Why nobody may rest on it.
    pub(crate) unsettled: Mutex<Vec<&'static str>>,
    /// The nodes of the cluster.
    pub(crate) nodes: Mutex<Vec<NodeAddress>>,
    /// Which of them it is.
    pub(crate) this_node: Mutex<Option<usize>>,
    /// Where it is reached by TLS.
    pub(crate) tls: Mutex<Option<TlsPorts>>,
    /// Counts the versions of the map.
    pub(crate) revision: Mutex<i64>,
    /// What it was told of buckets that came or changed.
    pub(crate) orders: Mutex<Vec<(String, BucketOrder)>>,
    /// Why it would not.
    pub(crate) order_error: Mutex<Option<BucketOrderError>>,
    /// What it was told of itself.
    pub(crate) setup_changes: Mutex<Vec<SetupChange>>,
    /// What is called when deleted buckets are gone whose names begin with "held".
    pub(crate) held_buckets: Mutex<Vec<Box<dyn FnOnce() + Send>>>,
    /// How often it still says that something is left of a deleted bucket.
    pub(crate) looks_until_gone: AtomicUsize,
    /// Why it would not take that.
    pub(crate) setup_error: Mutex<Option<SetupError>>,
    /// Who may set it up.
    pub(crate) set_up: Mutex<Option<SetUp>>,
    /// To be called when the maps have changed.
    notify: Mutex<Option<Box<dyn Fn() + Send + Sync>>>,
    /// How often metrics of high cardinality were read.
    pub(crate) high_reads: AtomicUsize,
    /// Where it notes changes, if it does.
    pub(crate) audit_log: OnceLock<AuditLog>,
}

/// A node on this machine.
pub(crate) fn address(data_port: u16) -> NodeAddress {
    NodeAddress {
        host: "127.0.0.1".to_owned(),
        data_port,
        management_port: data_port + 1,
        tls: None,
        external: None,
    }
}

impl FakeNode {
    pub(crate) fn new(users: Arc<Users>) -> Self {
        Self {
            users,
            elsewhere: Mutex::default(),
            silent_nodes: Mutex::default(),
            cluster_uuid: Uuid::random(&Entropy::real()),
            buckets: Mutex::new(vec![Arc::new(FakeBucket::named("default"))]),
            plan: Mutex::new("{}".to_owned()),
            plan_error: Mutex::default(),
            unsettled: Mutex::default(),
            nodes: Mutex::new(vec![address(12_000)]),
            this_node: Mutex::new(Some(0)),
            tls: Mutex::default(),
            revision: Mutex::new(5),
            orders: Mutex::default(),
            order_error: Mutex::default(),
            setup_changes: Mutex::default(),
            held_buckets: Mutex::default(),
            looks_until_gone: AtomicUsize::new(0),
            setup_error: Mutex::default(),
            set_up: Mutex::default(),
            notify: Mutex::default(),
            high_reads: AtomicUsize::new(0),
            audit_log: OnceLock::new(),
        }
    }

    fn take_order(&self, name: &str, order: &BucketOrder) -> Result<Option<u64>, BucketOrderError> {
        if let Some(error) = self.order_error.lock().unwrap().clone() {
            return Err(error);
        }
        let quota = order.iter().find(|(word, _)| word == "max_size");
        let quota = quota.map(|(_, bytes)| bytes.parse::<u64>().unwrap());
        if quota.is_some_and(|bytes| bytes < 1 << 24) {
            let (word, why) = ("max_size".to_owned(), "too small".to_owned());
            return Err(BucketOrderError::Invalid(word, why));
        }
        self.orders.lock().unwrap().push((name.to_owned(), order.clone()));
        Ok(quota)
    }
}

impl NodeView for FakeNode {
    fn node_uuid(&self, address: &NodeAddress) -> Uuid {
        self.cluster_uuid.derived(&address.management_port.to_string())
    }

    fn cluster_map(&self) -> ClusterMap {
        ClusterMap {
            revision: Revision { epoch: 1, revision: *self.revision.lock().unwrap() },
            uuid: self.cluster_uuid,
            name: "test".to_owned(),
            nodes: self.nodes.lock().unwrap().clone(),
            this_node: *self.this_node.lock().unwrap(),
            this_address: NodeAddress { tls: *self.tls.lock().unwrap(), ..address(12_000) },
        }
    }

    fn buckets(&self) -> Vec<Arc<dyn BucketView>> {
        let buckets = self.buckets.lock().unwrap();
        buckets.iter().map(|bucket| Arc::clone(bucket) as Arc<dyn BucketView>).collect()
    }

    fn storage_elsewhere(&self) -> StorageFigures {
        self.elsewhere.lock().unwrap()[0]
    }

    fn ask_others(&self) {
        let [known, now] = &mut *self.elsewhere.lock().unwrap();
        *known = *now;
    }

    fn bucket(&self, name: &str) -> Option<Arc<dyn BucketView>> {
        self.buckets().into_iter().find(|bucket| bucket.map().name == name)
    }

    fn create_bucket(
        &self,
        name: &str,
        order: &BucketOrder,
        is_trial: bool,
    ) -> Result<(), BucketOrderError> {
        let quota = self.take_order(name, order)?;
        if !is_trial {
            let bucket = FakeBucket::named(name.to_owned().leak());
            *bucket.quota_bytes.lock().unwrap() = quota.unwrap_or_default();
            self.buckets.lock().unwrap().push(Arc::new(bucket));
        }
        Ok(())
    }

    fn change_bucket(
        &self,
        name: &str,
        order: &BucketOrder,
        is_trial: bool,
    ) -> Result<Vec<String>, BucketOrderError> {
        let quota = self.take_order(name, order)?;
        let buckets = self.buckets.lock().unwrap();
        let bucket = buckets.iter().find(|bucket| bucket.name == name).unwrap();
        if let Some(quota) = quota
            && !is_trial
        {
            *bucket.quota_bytes.lock().unwrap() = quota;
        }
        Ok(self.silent_nodes.lock().unwrap().clone())
    }

    fn delete_bucket(
        &self,
        name: &str,
        gone: Box<dyn FnOnce() + Send>,
    ) -> Result<Vec<String>, BucketOrderError> {
        self.take_order(name, &BucketOrder::new())?;
        self.buckets.lock().unwrap().retain(|bucket| bucket.name != name);
        self.notify.lock().unwrap().as_ref().unwrap()();
        if name.starts_with("held") {
            self.held_buckets.lock().unwrap().push(gone);
        } else if !name.starts_with("slow") {
            gone();
        }
        Ok(self.silent_nodes.lock().unwrap().clone())
    }

    fn cluster_plan(&self) -> String {
        self.plan.lock().unwrap().clone()
    }

    fn carry_out(&self, plan: &str, is_trial: bool) -> Result<(), CarryOutError> {
        if let Some(error) = self.plan_error.lock().unwrap().clone() {
            return Err(error);
        }
        if is_trial {
            return Ok(());
        }
        plan.clone_into(&mut self.plan.lock().unwrap());
        *self.revision.lock().unwrap() += 1;
        self.notify.lock().unwrap().as_ref().unwrap()();
        Ok(())
    }

    fn unsettled(&self) -> Vec<&'static str> {
        self.unsettled.lock().unwrap().clone()
    }

    fn has_leaving_buckets(&self, _: Duration) -> bool {
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.looks_until_gone.fetch_update(set, fetch, |left| left.checked_sub(1)).is_ok()
    }

    fn change_setup(&self, change: &SetupChange) -> Result<(), SetupError> {
        if let Some(error) = self.setup_error.lock().unwrap().clone() {
            return Err(error);
        }
        self.setup_changes.lock().unwrap().push(change.clone());
        Ok(())
    }

    fn set_up(&self) -> Option<SetUp> {
        self.set_up.lock().unwrap().clone()
    }

    fn end_set_up(&self) {
        *self.set_up.lock().unwrap() = None;
    }

    fn edit_users(&self, edit: &UsersEdit, editor: Editor) -> Result<Vec<String>, UsersEditError> {
        self.users.edit(edit, editor)?;
        Ok(self.silent_nodes.lock().unwrap().clone())
    }

    fn audit_log(&self) -> Option<&AuditLog> {
        self.audit_log.get()
    }

    fn log_lines(&self) -> Vec<String> {
        vec!["INFO one".to_owned(), "WARN <two>".to_owned()]
    }

    fn slow_thresholds(&self) -> Vec<(&'static str, u64)> {
        vec![("GET", 100), ("SET", 100)]
    }

    fn set_slow_threshold(&self, command: &str, milliseconds: &str) -> Result<(), String> {
        milliseconds.parse::<u64>().map_err(|error| error.to_string())?;
        if command == "GET" { Ok(()) } else { Err("no such command".to_owned()) }
    }

    fn sample_hot_keys(&self, seconds: &str) -> Result<(), String> {
        seconds.parse::<u64>().map(|_| ()).map_err(|error| error.to_string())
    }

    fn watch_maps(&self, notify: Box<dyn Fn() + Send + Sync>) {
        *self.notify.lock().unwrap() = Some(notify);
    }

    fn node(&self) -> NodeFacts {
        NodeFacts {
            version: "7.6.0-1-enterprise".to_owned(),
            uptime: Duration::from_secs(10),
            cpu_count: 2,
            data_directory: "/srv/settee".to_owned(),
            disk_total_bytes: 1 << 40,
            disk_free_bytes: 1 << 39,
            quota_bytes_max: 1 << 30,
            bucket_count_max: 30,
            memory_total_bytes: 1 << 34,
            memory_free_bytes: 1 << 33,
            swap_total_bytes: 1 << 20,
            swap_used_bytes: 1 << 10,
            cpu_busy_percent: 12.5,
            operations_per_second: 1.5,
        }
    }

    fn figures(&self) -> Vec<Metric> {
        vec![
            Metric::gauge("kv_curr_items", "Live documents", 40.0).with_label("bucket", "default"),
            Metric::counter("kv_ops", "Operations", 9.0).with_label("op", "get"),
            Metric::counter("settee_groups_total", "Groups", 3.0),
        ]
    }

    fn histograms(&self) -> Vec<Metric> {
        Vec::new()
    }

    fn metrics_of_high_cardinality(&self) -> Vec<Metric> {
        self.high_reads.fetch_add(1, Ordering::Relaxed);
        let count = Metric::gauge("kv_collection_item_count", "Live documents", 40.0);
        let mut durations = Metric::counter("kv_cmd_duration_seconds_count", "Durations", 3.0);
        durations.kind = MetricKind::Histogram;
        vec![count.with_label("collection", "_default"), durations.with_label("opcode", "GET")]
    }
}

/// A bucket of it.
pub(crate) struct FakeBucket {
    name: &'static str,
    pub(crate) bucket_uuid: Uuid,
    pub(crate) warmup: Mutex<Warmup>,
    /// What a flush answers.
    pub(crate) flush: Mutex<Result<(), FlushError>>,
    /// What kind of bucket it has.
    pub(crate) kind: Mutex<BucketKind>,
    /// How often a compaction was asked for since one was cancelled.
    pub(crate) compactions: Mutex<usize>,
    /// What other nodes answer of one.
    pub(crate) compaction: Mutex<Result<(), CompactionError>>,
    /// How often a flush was asked for.
    pub(crate) flushes: Mutex<usize>,
    /// Why a vBucket does not begin anew.
    pub(crate) reset_error: Mutex<Option<ResetError>>,
    /// The vBuckets that have begun anew.
    pub(crate) resets: Mutex<Vec<u16>>,
    /// Held once for each backup that is under way.
    pub(crate) backups: Arc<()>,
    /// Its scopes and collections.
    pub(crate) manifest: Mutex<Arc<Manifest>>,
    /// The bucket's memory quota.
    pub(crate) quota_bytes: Mutex<u64>,
    /// Its documents, by their keys.
    pub(crate) documents: Mutex<BTreeMap<String, ShownDocument>>,
    /// Why it stores none.
    pub(crate) document_error: Mutex<Option<DocumentError>>,
    /// What it has not carried out yet.
    pub(crate) pending: Mutex<Vec<PendingVbucket>>,
}

impl FakeBucket {
    pub(crate) fn named(name: &'static str) -> Self {
        Self {
            name,
            bucket_uuid: Uuid::random(&Entropy::real()),
            warmup: Mutex::new(WARM),
            flush: Mutex::new(Ok(())),
            kind: Mutex::default(),
            compactions: Mutex::new(0),
            compaction: Mutex::new(Ok(())),
            flushes: Mutex::new(0),
            reset_error: Mutex::default(),
            resets: Mutex::default(),
            backups: Arc::default(),
            manifest: Mutex::default(),
            quota_bytes: Mutex::new(1 << 28),
            documents: Mutex::default(),
            document_error: Mutex::default(),
            pending: Mutex::default(),
        }
    }
}

impl BucketView for FakeBucket {
    fn map(&self) -> BucketMap {
        BucketMap::on_one_node(self.name, self.bucket_uuid, 16)
    }

    fn pending_vbuckets(&self) -> Vec<PendingVbucket> {
        self.pending.lock().unwrap().clone()
    }

    fn incomplete_vbuckets(&self) -> Vec<u16> {
        vec![3]
    }

    fn facts(&self) -> BucketFacts {
        BucketFacts {
            quota_bytes: *self.quota_bytes.lock().unwrap(),
            memory_used_bytes: 1 << 26,
            data_used_bytes: 1 << 25,
            disk_used_bytes: 4096,
            active_items: 40,
            active_non_resident_items: 4,
            replica_items: 30,
            all_items: 71,
            operations_per_second: 0.0,
            gets_per_second: 3.0,
            get_hits_per_second: 2.0,
            disk_fetches_per_second: 0.0,
            replica_number: 1,
            flush_enabled: *self.flush.lock().unwrap() != Err(FlushError::Disabled),
            kind: *self.kind.lock().unwrap(),
            compression_mode: "passive",
            durability_level_min: "majority",
            max_ttl_seconds: 3600,
            conflict_resolution: "seqno",
        }
    }

    fn warmup(&self) -> Warmup {
        *self.warmup.lock().unwrap()
    }

    fn flush(&self) -> Result<(), FlushError> {
        *self.flushes.lock().unwrap() += 1;
        self.flush.lock().unwrap().clone()
    }

    fn compact(&self) -> Result<(), CompactionError> {
        self.compact_here()?;
        self.compaction.lock().unwrap().clone()
    }

    fn cancel_compactions(&self) -> Result<(), CompactionError> {
        self.cancel_compactions_here();
        self.compaction.lock().unwrap().clone()
    }

    fn compact_here(&self) -> Result<(), CompactionError> {
        *self.compactions.lock().unwrap() += 1;
        match *self.kind.lock().unwrap() {
            BucketKind::Couchbase | BucketKind::FullEviction => Ok(()),
            _ => Err(CompactionError::Impossible("no files".to_owned())),
        }
    }

    fn cancel_compactions_here(&self) {
        *self.compactions.lock().unwrap() = 0;
    }

    fn begin_backup(&self) -> Result<Box<dyn BackupSource>, BackupError> {
        match *self.kind.lock().unwrap() {
            BucketKind::Couchbase => Ok(Box::new(FakeBackup(Arc::clone(&self.backups)))),
            BucketKind::FullEviction => {
                Err(BackupError::MapChanges("vBucket 5 is not active".to_owned()))
            }
            _ => Err(BackupError::Impossible("no files".to_owned())),
        }
    }

    fn damaged_vbuckets(&self) -> Vec<DamagedVbucket> {
        vec![DamagedVbucket { vbid: 3, kind: "out of service", reason: "a header".to_owned() }]
    }

    fn reset_loss(&self, vbid: u16) -> Result<String, ResetError> {
        let error = self.reset_error.lock().unwrap().clone();
        error.map_or_else(|| Ok(format!("vBucket {vbid} would lose all")), Err)
    }

    fn reset_vbucket(&self, vbid: u16) -> Result<(), ResetError> {
        if let Some(error) = self.reset_error.lock().unwrap().clone() {
            return Err(error);
        }
        self.resets.lock().unwrap().push(vbid);
        Ok(())
    }

    fn vbuckets(&self) -> Vec<VbucketFacts> {
        let facts = |vbid| VbucketFacts {
            vbid,
            state: "active",
            items: 5,
            non_resident_items: 1,
            high_seqno: 9,
            persisted_seqno: 7,
            unflushed_items: 2,
            replication_lag: (vbid == 3).then_some(4),
        };
        (0..15).map(facts).collect()
    }

    fn timings(&self) -> Vec<Timing> {
        let histogram = Histogram::new();
        histogram.record(100);
        let (filled, empty) = (histogram.snapshot(), Histogram::new().snapshot());
        vec![
            Timing { name: "get_cmd", unit: TimingUnit::Nanoseconds, values: filled.clone() },
            Timing { name: "bg_wait", unit: TimingUnit::Microseconds, values: filled },
            Timing { name: "compact", unit: TimingUnit::Microseconds, values: empty },
        ]
    }

    fn slow_operations(&self) -> Vec<SlowOperationFacts> {
        vec![SlowOperationFacts {
            ended_at_ms: 1_700_000_000_000,
            command: "GET",
            key: "<b>".to_owned(),
            client: "127.0.0.1".to_owned(),
            took: Duration::from_millis(120),
            spans: vec![("queue", Duration::ZERO), ("fetch", Duration::from_millis(100))],
        }]
    }

    fn hot_keys(&self) -> HotKeys {
        let keys = vec![("hot".to_owned(), 7), ("warm".to_owned(), 2)];
        HotKeys { keys, counted: 10, sampled_every: 8, time_left: Duration::from_millis(1500) }
    }

    fn document_keys(&self, query: &KeyQuery) -> Result<KeyPage, DocumentError> {
        let documents = self.documents.lock().unwrap();
        let keys = documents.keys().filter(|key| key.starts_with(&query.prefix));
        let mut keys: Vec<String> = keys.filter(|key| **key > query.from.behind).cloned().collect();
        let is_whole = keys.len() <= query.count_max;
        keys.truncate(query.count_max);
        let behind = keys.last().cloned().unwrap_or_default();
        let next = (!is_whole).then_some(KeyPosition { vbid: query.from.vbid, behind });
        Ok(KeyPage { keys, next, unreadable: vec![3] })
    }

    fn read_document(&self, id: DocumentId<'_>) -> Result<ShownDocument, DocumentError> {
        let documents = self.documents.lock().unwrap();
        documents.get(id.name).cloned().ok_or(DocumentError::NotFound)
    }

    fn write_document(
        &self,
        id: DocumentId<'_>,
        document: &NewDocument<'_>,
    ) -> Result<u64, DocumentError> {
        if let Some(error) = self.document_error.lock().unwrap().clone() {
            return Err(error);
        }
        let mut documents = self.documents.lock().unwrap();
        let before = documents.get(id.name).map_or(0, |before| before.cas);
        match document.cas {
            _ if document.is_new && before > 0 => return Err(DocumentError::Exists),
            0 => {}
            cas if cas == before => {}
            _ => return Err(DocumentError::OtherVersion),
        }
        let stored = ShownDocument {
            cas: before + 1,
            flags: document.flags,
            expiry_seconds: 0,
            is_json: document.value.starts_with(b"{"),
            value: document.value.to_vec(),
        };
        documents.insert(id.name.to_owned(), stored);
        Ok(before + 1)
    }

    fn delete_document(&self, id: DocumentId<'_>, cas: u64) -> Result<(), DocumentError> {
        let before = self.read_document(id)?.cas;
        if cas != 0 && cas != before {
            return Err(DocumentError::OtherVersion);
        }
        self.documents.lock().unwrap().remove(id.name);
        Ok(())
    }

    fn collection_items(&self) -> BTreeMap<CollectionId, u64> {
        BTreeMap::from([(CollectionId::DEFAULT, 40)])
    }

    fn manifest(&self) -> Arc<Manifest> {
        Arc::clone(&self.manifest.lock().unwrap())
    }

    fn edit_manifest(&self, edit: ManifestEdit<'_>) -> Result<Arc<Manifest>, ManifestEditError> {
        let mut manifest = self.manifest.lock().unwrap();
        let next = manifest.edited(edit).map_err(ManifestEditError::Refused)?;
        *manifest = Arc::new(next);
        Ok(Arc::clone(&manifest))
    }
}

/// vBucket 3 is `three`; vBucket 4 breaks off.
struct FakeBackup(#[expect(dead_code, reason = "it is counted")] Arc<()>);

impl BackupSource for FakeBackup {
    fn catalogue(&self) -> BackupCatalogue {
        let vbucket =
            |vbid| BackupVbucket { vbid, state: "s".to_owned(), bytes: 5, is_late: false };
        BackupCatalogue {
            revision: Revision { epoch: 1, revision: 7 },
            vbuckets: vec![vbucket(3), vbucket(4), vbucket(6)],
            deleted: vec![7],
            empty: vec![0, 1],
            elsewhere: vec![2, 5],
            collections: r#"{"uid":"1f"}"#.to_owned(),
            settings: [("max_ttl".to_owned(), "60".to_owned())].into(),
            took: Duration::ZERO,
        }
    }

    fn write(&self, vbid: u16, mut sink: BackupSink) -> Result<(), String> {
        // More than all buffers on the way hold.
        for _ in 0..if vbid == 6 { 1 << 10 } else { 0 } {
            sink(&[b'6'; 1 << 18]).map_err(|error| error.to_string())?;
        }
        sink(b"three").map_err(|error| error.to_string())?;
        if vbid == 4 { Err("the disk".to_owned()) } else { Ok(()) }
    }
}
