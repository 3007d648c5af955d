//! The node as its REST port sees it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use auth::{Editor, UsersEdit, UsersEditError};
use cluster::{ClusterMap, NodeAddress, StorageFigures, Uuid};
use management::{
    AuditLog, BucketOrder, BucketOrderError, BucketView, CarryOutError, Metric, NodeFacts,
    NodeView, SetUp, SetupChange, SetupError,
};
use node::{
    BucketChanges, CarriedOut, Membership, Node, NodeBucket, NodeBuckets, OwnSetupError, VERSION,
};
use platform::files::RealFiles;
use platform::machine::MachineMemory;
use platform::{Clock, DiskSpace, Files, Instant};
use server::{BUCKET_COUNT_MAX, BucketAdministrator, BucketRefusal, Server};

use crate::bucket_view::{BucketRates, ViewedBucket};
use crate::logging;
use crate::metrics::{self, CollectionDiskUsage, DiskUsage, MachineMeter};
use crate::rate::Rate;

/// What the REST port looks at.
pub(crate) struct View {
    clock: Clock,
    started: Instant,
    membership: Arc<Membership>,
    node_buckets: Arc<NodeBuckets>,
    changes: Arc<BucketChanges>,
    /// By the buckets' uuids. They do not keep those from going.
    rates: Mutex<BTreeMap<String, Arc<BucketRates>>>,
    server: Arc<Server>,
    operations: Rate,
    machine: MachineMeter,
    disk_usage: DiskUsage,
    collection_disk_usage: CollectionDiskUsage,
    audit_log: Option<Arc<AuditLog>>,
    data_directory: PathBuf,
    /// Who may set the node up.
    set_up: Mutex<Option<SetUp>>,
}

impl View {
    /// The view of a running node, whose changes are noted in `audit_log`, if there is one. Until
    /// its administrator has a password `set_up` says who may give it one, if anybody may.
    pub(crate) fn new(
        node: &Node,
        audit_log: Option<Arc<AuditLog>>,
        set_up: Option<SetUp>,
    ) -> Self {
        let clock = node.clock().clone();
        let membership = Arc::clone(node.membership());
        Self {
            changes: Arc::clone(node.bucket_changes()),
            rates: Mutex::default(),
            started: clock.now(),
            clock,
            membership,
            node_buckets: Arc::clone(node.buckets()),
            server: Arc::clone(node.server()),
            operations: Rate::default(),
            machine: MachineMeter::default(),
            disk_usage: DiskUsage::default(),
            collection_disk_usage: CollectionDiskUsage::default(),
            audit_log,
            data_directory: node.config().data_dir.clone(),
            set_up: Mutex::new(set_up),
        }
    }
}

impl View {
    /// A bucket as it is looked at. `None` if it goes.
    fn viewed(&self, bucket: NodeBucket) -> Option<Arc<dyn BucketView>> {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let rates = Arc::clone(rates.entry(bucket.bucket().uuid().to_owned()).or_default());
        let (membership, server) = (Arc::clone(&self.membership), Arc::clone(&self.server));
        let viewed = ViewedBucket::new(self.clock.clone(), membership, server, bucket, rates)?;
        Some(Arc::new(viewed))
    }
}

impl View {
    /// What the disk holds that the data is on; nothing where the system does not say.
    fn disk_space(&self) -> DiskSpace {
        let space = RealFiles.disk_space(&self.data_directory);
        space.unwrap_or(DiskSpace { free_bytes: 0, total_bytes: 0 })
    }
}

fn order_error(refusal: BucketRefusal) -> BucketOrderError {
    match refusal {
        BucketRefusal::Exists => BucketOrderError::Exists,
        BucketRefusal::NotFound => BucketOrderError::NotFound,
        BucketRefusal::Invalid(name, why) => BucketOrderError::Invalid(name, why),
        BucketRefusal::Failed(why) => BucketOrderError::Failed(why),
    }
}

impl NodeView for View {
    fn cluster_map(&self) -> ClusterMap {
        self.membership.cluster_map()
    }

    fn node_uuid(&self, address: &NodeAddress) -> Uuid {
        self.membership.uuid_of(address)
    }

    fn storage_elsewhere(&self) -> StorageFigures {
        self.membership.storage_elsewhere()
    }

    fn ask_others(&self) {
        self.membership.ask_others();
    }

    fn buckets(&self) -> Vec<Arc<dyn BucketView>> {
        let all = self.node_buckets.all();
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        rates.retain(|uuid, _| all.iter().any(|bucket| bucket.bucket().uuid() == uuid));
        drop(rates);
        all.into_iter().filter_map(|bucket| self.viewed(bucket)).collect()
    }

    fn bucket(&self, name: &str) -> Option<Arc<dyn BucketView>> {
        self.viewed(self.node_buckets.get(name)?)
    }

    fn create_bucket(
        &self,
        name: &str,
        order: &BucketOrder,
        is_trial: bool,
    ) -> Result<(), BucketOrderError> {
        let made = if is_trial {
            self.changes.check_new(name, order)
        } else {
            self.changes.create(name, order)
        };
        made.map_err(order_error)
    }

    fn change_bucket(
        &self,
        name: &str,
        order: &BucketOrder,
        is_trial: bool,
    ) -> Result<Vec<String>, BucketOrderError> {
        self.changes.change(name, order, is_trial).map_err(order_error)
    }

    fn delete_bucket(
        &self,
        name: &str,
        gone: Box<dyn FnOnce() + Send>,
    ) -> Result<Vec<String>, BucketOrderError> {
        self.changes.delete(name, gone).map_err(order_error)
    }

    fn cluster_plan(&self) -> String {
        self.membership.plan().to_json()
    }

    fn carry_out(&self, plan: &str, is_trial: bool) -> Result<(), CarryOutError> {
        let plan = self.membership.parse(plan);
        let plan = plan.map_err(|invalid| CarryOutError::Invalid(invalid.to_string()))?;
        let carried_out = match is_trial {
            true => self.membership.try_out(&plan),
            false => self.membership.carry_out(&plan),
        };
        match carried_out {
            CarriedOut::Done => Ok(()),
            CarriedOut::Refused(reason) => Err(CarryOutError::Invalid(reason)),
            CarriedOut::NotNow(reason) => Err(CarryOutError::NotNow(reason)),
            CarriedOut::Older(current) => Err(CarryOutError::Older(format!(
                "The node has the map of revision [{}, {}]",
                current.epoch, current.revision
            ))),
            CarriedOut::Another(current) => Err(CarryOutError::Older(format!(
                "The node has another map of revision [{}, {}]; raise it",
                current.epoch, current.revision
            ))),
        }
    }

    fn unsettled(&self) -> Vec<&'static str> {
        self.membership.unsettled()
    }

    fn has_leaving_buckets(&self, age: Duration) -> bool {
        self.changes.has_leaving(age)
    }

    fn change_setup(&self, change: &SetupChange) -> Result<(), SetupError> {
        let changed = match change {
            SetupChange::Host(host) => self.membership.rename_host(host),
            SetupChange::External(external) => {
                self.membership.set_external_address(external.clone())
            }
            SetupChange::ClusterName(name) => self.membership.set_cluster_name(name),
        };
        changed.map_err(|error| match error {
            OwnSetupError::Invalid(why) => SetupError::Invalid(why),
            OwnSetupError::Failed(why) => SetupError::Failed(why),
        })
    }

    fn set_up(&self) -> Option<SetUp> {
        self.set_up.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn end_set_up(&self) {
        let before = self.set_up.lock().unwrap_or_else(PoisonError::into_inner).take();
        if before.is_some() {
            tracing::info!("the node is set up: requests need a login");
        }
    }

    fn edit_users(&self, edit: &UsersEdit, editor: Editor) -> Result<Vec<String>, UsersEditError> {
        self.membership.edit_users(edit, editor)
    }

    fn audit_log(&self) -> Option<&AuditLog> {
        self.audit_log.as_deref()
    }

    fn log_filter(&self) -> Option<String> {
        logging::filter()
    }

    fn set_log_filter(&self, filter: &str) -> Result<(), String> {
        logging::set_filter(filter)?;
        tracing::info!(filter, "lines are logged by another filter, until the node stops");
        Ok(())
    }

    fn log_lines(&self) -> Vec<String> {
        logging::recent_lines()
    }

    fn slow_thresholds(&self) -> Vec<(&'static str, u64)> {
        let thresholds = self.server.slow_thresholds().into_iter();
        thresholds.map(|(opcode, ms)| (opcode.name(), ms)).collect()
    }

    fn set_slow_threshold(&self, command: &str, milliseconds: &str) -> Result<(), String> {
        let property = format!("slow_ms.{command}");
        self.server.set_property(&property, milliseconds).map_err(str::to_owned)
    }

    fn sample_hot_keys(&self, seconds: &str) -> Result<(), String> {
        let set = self.server.set_property("hot_keys.sample_seconds", seconds);
        set.map_err(str::to_owned)
    }

    fn watch_maps(&self, notify: Box<dyn Fn() + Send + Sync>) {
        self.membership.watch(notify);
    }

    fn node(&self) -> NodeFacts {
        let memory_total_bytes = platform::process::memory_limit_bytes();
        let resident_bytes = platform::process::resident_bytes();
        let now = self.clock.now();
        let (space, machine) = (self.disk_space(), MachineMemory::now());
        NodeFacts {
            version: VERSION.to_owned(),
            uptime: now.since(self.started),
            cpu_count: platform::threads::available_cpus(),
            data_directory: self.data_directory.display().to_string(),
            disk_total_bytes: space.total_bytes,
            disk_free_bytes: space.free_bytes,
            quota_bytes_max: self.changes.buckets_bytes_max(),
            bucket_count_max: BUCKET_COUNT_MAX,
            memory_total_bytes,
            memory_free_bytes: memory_total_bytes.saturating_sub(resident_bytes),
            swap_total_bytes: machine.swap_total_bytes,
            swap_used_bytes: machine.swap_used_bytes(),
            cpu_busy_percent: self.machine.busy_percent(now),
            operations_per_second: self
                .operations
                .sample(self.server.all_commands().cmd_total, now),
        }
    }

    fn figures(&self) -> Vec<Metric> {
        let uptime = self.clock.now().since(self.started);
        let buckets = self.node_buckets.all();
        let pending = buckets.iter().map(|it| self.membership.pending(it.name()).len()).sum();
        let mut metrics = metrics::figures(&self.node_buckets, &self.server, pending, uptime);
        let (now, directory) = (self.clock.now(), self.data_directory.display().to_string());
        metrics.extend(self.machine.metrics(now, &directory, self.disk_space()));
        metrics.extend(self.disk_usage.metrics(&self.node_buckets, now));
        metrics.extend(metrics::of_audit(self.audit_log()));
        metrics
    }

    fn histograms(&self) -> Vec<Metric> {
        metrics::histograms(&self.node_buckets)
    }

    fn metrics_of_high_cardinality(&self) -> Vec<Metric> {
        let (on_disk, now) = (&self.collection_disk_usage, self.clock.now());
        metrics::of_high_cardinality(&self.node_buckets, &self.server, on_disk, now)
    }
}
