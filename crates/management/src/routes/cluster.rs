//! The cluster and its nodes.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use cluster::{ClusterMap, NodeAddress, StorageFigures, Usage};
use document::manifest::{COLLECTIONS_MAX, SCOPES_MAX};
use platform::Clock;
use serde_json::{Value, json};

use super::settings::auto_compaction_settings;
use crate::answers;
use crate::authentication::User;
use crate::bucket_view::{BucketFacts, BucketView, Warmup};
use crate::context::Context;
use crate::node_view::{NodeFacts, NodeView};

/// The version of the original whose requests are answered, major and minor.
const VERSION: (u32, u32) = (7, 6);
/// The same in the form of the cluster manager: major * 65536 + minor.
const COMPATIBILITY: u32 = (VERSION.0 << 16) | VERSION.1;

/// Figures of all buckets together.
#[derive(Default)]
struct Totals {
    quota_bytes: u64,
    memory_used_bytes: u64,
    data_used_bytes: u64,
    disk_used_bytes: u64,
    disk_fetches_per_second: f64,
    gets_per_second: f64,
    get_hits_per_second: f64,
    active_items: u64,
    active_non_resident_items: u64,
    replica_items: u64,
    all_items: u64,
}

impl Totals {
    fn of(buckets: &[Arc<dyn BucketView>]) -> Self {
        let mut sum = Self::default();
        for bucket in buckets {
            sum.add(&bucket.facts());
        }
        sum
    }

    fn add(&mut self, facts: &BucketFacts) {
        self.quota_bytes += facts.quota_bytes;
        self.memory_used_bytes += facts.memory_used_bytes;
        self.data_used_bytes += facts.data_used_bytes;
        self.disk_used_bytes += facts.disk_used_bytes;
        self.disk_fetches_per_second += facts.disk_fetches_per_second;
        self.gets_per_second += facts.gets_per_second;
        self.get_hits_per_second += facts.get_hits_per_second;
        self.active_items += facts.active_items;
        self.active_non_resident_items += facts.active_non_resident_items;
        self.replica_items += facts.replica_items;
        self.all_items += facts.all_items;
    }
}

/// GET /
pub(super) async fn root() -> Response {
    answers::ok(&json!({"pools": "/pools"}))
}

/// GET /pools
pub(super) async fn pools(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
) -> Response {
    let uuid = context.view.cluster_map().uuid;
    let version = context.view.node().version;
    let pools = json!([{
        "name": "default",
        "uri": format!("/pools/default?uuid={uuid}"),
        "streamingUri": format!("/poolsStreaming/default?uuid={uuid}"),
    }]);
    // Tools set a server up that says that it has none.
    let is_set_up = context.view.set_up().is_none();
    let (pools, uuid) =
        if is_set_up { (pools, json!(uuid.to_string())) } else { (json!([]), json!([])) };
    answers::ok(&json!({
        "pools": pools,
        "isAdminCreds": user.is_administrator(),
        "isROAdminCreds": user.is_reading_administrator(),
        "isEnterprise": version.ends_with("-enterprise"),
        "isDeveloperPreview": false,
        "packageVariant": "settee",
        "configProfile": "default",
        "allowedServices": ["kv"],
        "prod": "settee",
        "prodName": "Settee",
        "settings": {},
        "uuid": uuid,
        "implementationVersion": version,
        "componentsVersion": {"ns_server": version},
    }))
}

/// GET /pools/default. There is none yet while the node is to be set up: tools look for that.
pub(super) async fn pool(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
) -> Response {
    if context.view.set_up().is_some() {
        return answers::not_found_text("unknown pool");
    }
    context.other_nodes.ask(&Clock::real(), &context.view).await;
    answers::ok(&pool_json(&*context.view, &user))
}

/// The cluster, as this node sees it, for `user`.
pub(super) fn pool_json(view: &dyn NodeView, user: &User) -> Value {
    let cluster = view.cluster_map();
    let buckets = view.buckets();
    let seen = buckets.iter().map(|bucket| bucket.map()).filter(|map| user.may_see(&map.name));
    let names = seen.map(|map| json!({"bucketName": map.name, "uuid": map.uuid.to_string()}));
    let names: Value = names.collect();
    let (node, totals) = (view.node(), Totals::of(&buckets));
    let here = storage_here(&node, &totals);
    let mut all = here;
    all += view.storage_elsewhere();
    json!({
        "name": "default",
        "clusterName": cluster.name,
        "nodes": nodes_json(view, &cluster),
        "buckets": {
            "uri": "/pools/default/buckets",
            "terseBucketsBase": "/pools/default/b/",
            "terseStreamingBucketsBase": "/pools/default/bs/",
        },
        "bucketNames": names,
        "nodeServicesUri": "/pools/default/nodeServices",
        "nodeStatusesUri": "/nodeStatuses",
        "rebalanceProgressUri": "/pools/default/rebalanceProgress",
        "serverGroupsUri": format!(
            "/pools/default/serverGroups?rev={}",
            cluster.revision.revision
        ),
        "tasks": {"uri": "/pools/default/tasks"},
        "checkPermissionsURI": "/pools/default/checkPermissions",
        "trustedCAsURI": "/pools/default/trustedCAs",
        "alerts": [],
        "controllers": {},
        "counters": {},
        "maxBucketCount": node.bucket_count_max,
        "maxScopeCount": SCOPES_MAX,
        "maxCollectionCount": COLLECTIONS_MAX,
        "minReplicasCount": 0,
        "autoCompactionSettings": auto_compaction_settings(),
        "balanced": true,
        "servicesNeedRebalance": [],
        "bucketsNeedRebalance": [],
        "rebalanceStatus": "none",
        "clusterEncryptionLevel": "",
        "memoryQuota": node.quota_bytes_max >> 20,
        "indexMemoryQuota": 0,
        "ftsMemoryQuota": 0,
        "cbasMemoryQuota": 0,
        "eventingMemoryQuota": 0,
        "queryMemoryQuota": 0,
        "storageTotals": storage_totals(&here, &all),
    })
}

/// What this node has, and what is used of it.
fn storage_here(node: &NodeFacts, totals: &Totals) -> StorageFigures {
    let usage = |total_bytes, used_bytes| Usage { total_bytes, used_bytes };
    let used = |total: u64, free: u64| usage(total, total.saturating_sub(free));
    StorageFigures {
        memory: used(node.memory_total_bytes, node.memory_free_bytes),
        quota: usage(node.quota_bytes_max, totals.quota_bytes),
        disk: used(node.disk_total_bytes, node.disk_free_bytes),
        disk_free_bytes: node.disk_free_bytes,
        memory_used_by_data_bytes: totals.memory_used_bytes,
        disk_used_by_data_bytes: totals.disk_used_bytes,
    }
}

/// What several nodes have together, and of that what `one` has for buckets.
fn storage_totals(one: &StorageFigures, all: &StorageFigures) -> Value {
    json!({
        "ram": {
            "total": all.memory.total_bytes,
            "used": all.memory.used_bytes,
            "usedByData": all.memory_used_by_data_bytes,
            "quotaTotal": all.quota.total_bytes,
            "quotaUsed": all.quota.used_bytes,
            "quotaTotalPerNode": one.quota.total_bytes,
            "quotaUsedPerNode": one.quota.used_bytes,
        },
        "hdd": {
            "total": all.disk.total_bytes,
            "quotaTotal": all.disk.total_bytes,
            "used": all.disk.used_bytes,
            "usedByData": all.disk_used_by_data_bytes,
            "free": all.disk_free_bytes,
        },
    })
}

/// GET /nodes/self
pub(super) async fn this_node_alone(State(context): State<Arc<Context>>) -> Response {
    let view = &*context.view;
    let mut entry = this_node(view, &view.cluster_map());
    let (node, totals) = (view.node(), Totals::of(&view.buckets()));
    let here = storage_here(&node, &totals);
    let directory = &node.data_directory;
    let beside = json!({
        "storage": {
            "ssd": [],
            "hdd": [{"path": directory, "index_path": directory, "quotaMb": "none", "state": "ok"}],
        },
        "storageTotals": storage_totals(&here, &here),
        "memoryQuota": node.quota_bytes_max >> 20,
    });
    if let (Some(entry), Value::Object(beside)) = (entry.as_object_mut(), beside) {
        entry.extend(beside);
    }
    answers::ok(&entry)
}

/// GET /pools/nodes
pub(super) async fn nodes(State(context): State<Arc<Context>>) -> Response {
    let cluster = context.view.cluster_map();
    let nodes = nodes_json(&*context.view, &cluster);
    answers::ok(&json!({"name": "default", "nodes": nodes}))
}

/// GET /pools/default/nodeServices
pub(super) async fn node_services(State(context): State<Arc<Context>>) -> Response {
    answers::json_text(StatusCode::OK, context.view.cluster_map().global_config())
}

/// GET /pools/default/terseClusterInfo. No node decides for the others: all name the first one.
pub(super) async fn terse_info(State(context): State<Arc<Context>>) -> Response {
    let cluster = context.view.cluster_map();
    let first = cluster.nodes.first().unwrap_or(&cluster.this_address);
    answers::ok(&json!({
        "clusterUUID": cluster.uuid.to_string(),
        "orchestrator": node_name(first),
        "isBalanced": true,
        "clusterCompatVersion": format!("{}.{}", VERSION.0, VERSION.1),
    }))
}

/// GET /pools/default/tasks
pub(super) async fn tasks(State(context): State<Arc<Context>>) -> Response {
    let mut tasks = vec![json!({"type": "rebalance", "status": "notRunning"})];
    let node = node_name(&context.view.cluster_map().this_address);
    tasks.extend(context.view.buckets().iter().filter_map(|bucket| warming_up(&**bucket, &node)));
    answers::ok(&Value::Array(tasks))
}

fn warming_up(bucket: &dyn BucketView, node: &str) -> Option<Value> {
    let warmup = bucket.warmup();
    let task = || {
        json!({
            "type": "warming_up",
            "status": "running",
            "bucket": bucket.map().name,
            "node": node,
            "progress": (warmup.progress() * 100.0).floor(),
            "recommendedRefreshPeriod": 2.0,
            "stats": {
                "ep_warmup_value_count": warmup.items_loaded,
                "ep_warmup_estimated_value_count": warmup.items_expected,
            },
        })
    };
    (!warmup.is_finished).then(task)
}

/// All nodes in the order of the map, each with every field; behind them this one, if it is no
/// longer among them. Clients take a field that is missing for a broken answer.
pub(super) fn nodes_json(view: &dyn NodeView, cluster: &ClusterMap) -> Value {
    let version = view.node().version;
    let others = cluster.nodes.iter().map(|address| known_of_any(view, address, &version));
    let mut nodes: Vec<Value> = others.collect();
    let this = this_node(view, cluster);
    match cluster.this_node.and_then(|index| nodes.get_mut(index)) {
        Some(place) => *place = this,
        None => nodes.push(this),
    }
    Value::Array(nodes)
}

/// This node with its figures.
fn this_node(view: &dyn NodeView, cluster: &ClusterMap) -> Value {
    let buckets = view.buckets();
    let (node, totals) = (view.node(), Totals::of(&buckets));
    let warmup = Warmup::of_all(buckets.iter().map(|bucket| bucket.warmup()));
    let figures = json!({
        "thisNode": true,
        "status": warmup.status(),
        "cpuCount": node.cpu_count,
        "uptime": node.uptime.as_secs().to_string(),
        "memoryTotal": node.memory_total_bytes,
        "memoryFree": node.memory_free_bytes,
        "mcdMemoryReserved": totals.quota_bytes >> 20,
        "mcdMemoryAllocated": totals.quota_bytes >> 20,
        "systemStats": {
            "mem_total": node.memory_total_bytes,
            "mem_free": node.memory_free_bytes,
            "mem_limit": node.memory_total_bytes,
            "cpu_cores_available": node.cpu_count,
            "cpu_utilization_rate": node.cpu_busy_percent,
            "swap_total": node.swap_total_bytes,
            "swap_used": node.swap_used_bytes,
        },
        "interestingStats": {
            "curr_items": totals.active_items,
            "curr_items_tot": totals.all_items,
            "vb_replica_curr_items": totals.replica_items,
            "vb_active_num_non_resident": totals.active_non_resident_items,
            "cmd_get": totals.gets_per_second,
            "get_hits": totals.get_hits_per_second,
            "mem_used": totals.memory_used_bytes,
            "ops": node.operations_per_second,
            "ep_bg_fetched": totals.disk_fetches_per_second,
            "couch_docs_data_size": totals.data_used_bytes,
            "couch_docs_actual_disk_size": totals.disk_used_bytes,
        },
    });
    let mut entry = known_of_any(view, &cluster.this_address, &node.version);
    if let (Some(entry), Value::Object(figures)) = (entry.as_object_mut(), figures) {
        entry.extend(figures);
    }
    entry
}

/// What the map says of a node, the same whichever node says it; figures are 0 where only the node
/// itself knows them.
fn known_of_any(view: &dyn NodeView, address: &NodeAddress, version: &str) -> Value {
    let host = management_host(address);
    json!({
        "hostname": host,
        "configuredHostname": host,
        "clusterMembership": "active",
        "status": "healthy",
        "recoveryType": "none",
        "otpNode": node_name(address),
        "nodeUUID": view.node_uuid(address).to_string(),
        "version": version,
        "clusterCompatibility": COMPATIBILITY,
        "os": std::env::consts::OS,
        "cpuCount": 0,
        "ports": address.ports_json(),
        "services": ["kv"],
        "serverGroup": cluster::SERVER_GROUP,
        "addressFamily": if address.host.contains(':') { "inet6" } else { "inet" },
        "addressFamilyOnly": false,
        "nodeEncryption": false,
        "uptime": "0",
        "memoryTotal": 0,
        "memoryFree": 0,
        "mcdMemoryReserved": 0,
        "mcdMemoryAllocated": 0,
        "systemStats": {},
        "interestingStats": {},
    })
}

pub(super) fn management_host(address: &NodeAddress) -> String {
    address.at(address.management_port)
}

/// The name of a node among those of its cluster: several may run on one host.
pub(super) fn node_name(address: &NodeAddress) -> String {
    format!("ns_1@{}", management_host(address))
}
