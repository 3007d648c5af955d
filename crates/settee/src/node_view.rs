//! The node as its REST port sees it.

use std::collections::BTreeMap;
use std::sync::Arc;

use auth::{Editor, UsersEdit, UsersEditError};
use cluster::ClusterMap;
use management::{AuditLog, BucketView, CarryOutError, Metric, NodeFacts, NodeView};
use node::{CarriedOut, Membership, Node, NodeBuckets, VERSION};
use platform::{Clock, Instant};
use server::Server;

use crate::bucket_view::ViewedBucket;
use crate::metrics;
use crate::rate::Rate;

/// What the REST port looks at.
pub(crate) struct View {
    clock: Clock,
    started: Instant,
    membership: Arc<Membership>,
    node_buckets: Arc<NodeBuckets>,
    /// By name.
    buckets: BTreeMap<String, Arc<ViewedBucket>>,
    server: Arc<Server>,
    operations: Rate,
    audit_log: Option<Arc<AuditLog>>,
}

impl View {
    /// The view of a running node, whose changes are noted in `audit_log`, if there is one.
    pub(crate) fn new(node: &Node, audit_log: Option<Arc<AuditLog>>) -> Self {
        let clock = node.clock().clone();
        let membership = Arc::clone(node.membership());
        let buckets = node.buckets().all().map(|bucket| {
            let (membership, server) = (Arc::clone(&membership), Arc::clone(node.server()));
            let viewed = ViewedBucket::new(clock.clone(), membership, server, bucket);
            (bucket.name().to_owned(), Arc::new(viewed))
        });
        Self {
            buckets: buckets.collect(),
            started: clock.now(),
            clock,
            membership,
            node_buckets: Arc::clone(node.buckets()),
            server: Arc::clone(node.server()),
            operations: Rate::default(),
            audit_log,
        }
    }
}

impl NodeView for View {
    fn cluster_map(&self) -> ClusterMap {
        self.membership.cluster_map()
    }

    fn buckets(&self) -> Vec<Arc<dyn BucketView>> {
        self.buckets.values().map(|bucket| Arc::clone(bucket) as Arc<dyn BucketView>).collect()
    }

    fn bucket(&self, name: &str) -> Option<Arc<dyn BucketView>> {
        self.buckets.get(name).map(|bucket| Arc::clone(bucket) as Arc<dyn BucketView>)
    }

    fn cluster_plan(&self) -> String {
        self.membership.plan().to_json()
    }

    fn carry_out(&self, plan: &str) -> Result<(), CarryOutError> {
        let plan = self.membership.parse(plan);
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

    fn edit_users(&self, edit: &UsersEdit, editor: Editor) -> Result<Vec<String>, UsersEditError> {
        self.membership.edit_users(edit, editor)
    }

    fn audit_log(&self) -> Option<&AuditLog> {
        self.audit_log.as_deref()
    }

    fn watch_maps(&self, notify: Box<dyn Fn() + Send + Sync>) {
        self.membership.watch(notify);
    }

    fn node(&self) -> NodeFacts {
        let memory_total_bytes = platform::process::memory_limit_bytes();
        let resident_bytes = platform::process::resident_bytes();
        let now = self.clock.now();
        NodeFacts {
            version: VERSION.to_owned(),
            uptime: now.since(self.started),
            cpu_count: platform::threads::available_cpus(),
            memory_total_bytes,
            memory_free_bytes: memory_total_bytes.saturating_sub(resident_bytes),
            operations_per_second: self
                .operations
                .sample(self.server.all_commands().cmd_total, now),
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        let uptime = self.clock.now().since(self.started);
        let pending = self.buckets.values().map(|bucket| bucket.pending_vbuckets().len()).sum();
        metrics::all(&self.node_buckets, &self.server, pending, uptime)
    }
}
