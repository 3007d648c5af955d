//! The cluster and its nodes.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use cluster::{ClusterMap, NodeAddress};
use serde_json::{Value, json};

use super::Context;
use crate::answers;
use crate::node_view::NodeView;

/// The version in the form of the cluster manager: 7.6, as major * 65536 + minor.
const COMPATIBILITY: u32 = (7 << 16) | 6;

/// GET /
pub(super) async fn root() -> Response {
    answers::ok(&json!({"pools": "/pools"}))
}

/// GET /pools
pub(super) async fn pools(State(context): State<Arc<Context>>) -> Response {
    let uuid = context.view.cluster_map().uuid;
    let version = context.view.node().version;
    answers::ok(&json!({
        "pools": [{
            "name": "default",
            "uri": format!("/pools/default?uuid={uuid}"),
            "streamingUri": format!("/poolsStreaming/default?uuid={uuid}"),
        }],
        "isAdminCreds": true,
        "isROAdminCreds": false,
        "isEnterprise": version.ends_with("-enterprise"),
        "isDeveloperPreview": false,
        "configProfile": "default",
        "allowedServices": ["kv"],
        "prod": "settee",
        "prodName": "Settee",
        "settings": {},
        "uuid": uuid.to_string(),
        "implementationVersion": version,
        "componentsVersion": {"ns_server": version},
    }))
}

/// GET /pools/default
pub(super) async fn pool(State(context): State<Arc<Context>>) -> Response {
    let view = &*context.view;
    let cluster = view.cluster_map();
    let bucket = view.bucket_map();
    let (node, facts) = (view.node(), view.bucket());
    answers::ok(&json!({
        "name": "default",
        "clusterName": cluster.name,
        "nodes": nodes_json(view, &cluster),
        "buckets": {
            "uri": "/pools/default/buckets",
            "terseBucketsBase": "/pools/default/b/",
            "terseStreamingBucketsBase": "/pools/default/bs/",
        },
        "bucketNames": [{"bucketName": bucket.name, "uuid": bucket.uuid.to_string()}],
        "nodeServicesUri": "/pools/default/nodeServices",
        "tasks": {"uri": "/pools/default/tasks"},
        "alerts": [],
        "controllers": {},
        "counters": {},
        "maxBucketCount": 1,
        "maxScopeCount": 1,
        "maxCollectionCount": 1,
        "balanced": true,
        "rebalanceStatus": "none",
        "memoryQuota": facts.quota_bytes >> 20,
        "storageTotals": {
            "ram": {
                "total": node.memory_total_bytes,
                "used": node.memory_total_bytes.saturating_sub(node.memory_free_bytes),
                "usedByData": facts.memory_used_bytes,
                "quotaTotal": facts.quota_bytes,
                "quotaUsed": facts.quota_bytes,
                "quotaTotalPerNode": facts.quota_bytes,
                "quotaUsedPerNode": facts.quota_bytes,
            },
            "hdd": {"usedByData": facts.disk_used_bytes},
        },
    }))
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

/// GET /pools/default/tasks
pub(super) async fn tasks(State(context): State<Arc<Context>>) -> Response {
    let warmup = context.view.warmup();
    let mut tasks = vec![json!({"type": "rebalance", "status": "notRunning"})];
    if !warmup.is_finished {
        tasks.push(json!({
            "type": "warming_up",
            "status": "running",
            "bucket": context.view.bucket_map().name,
            "node": node_name(&context.view.cluster_map()),
            "progress": (warmup.progress() * 100.0).floor(),
            "recommendedRefreshPeriod": 2.0,
            "stats": {
                "ep_warmup_value_count": warmup.items_loaded,
                "ep_warmup_estimated_value_count": warmup.items_expected,
            },
        }));
    }
    answers::ok(&Value::Array(tasks))
}

/// POST /pools/default
pub(super) async fn refuse_change() -> Response {
    answers::refused("_", "This version takes its settings when the node starts")
}

/// This node in full, and the others as far as the map knows them.
pub(super) fn nodes_json(view: &dyn NodeView, cluster: &ClusterMap) -> Value {
    let (node, bucket, warmup) = (view.node(), view.bucket(), view.warmup());
    let address = &cluster.this_address;
    let host = format!("{}:{}", address.host, address.management_port);
    let this = json!({
        "hostname": host,
        "configuredHostname": host,
        "thisNode": true,
        "clusterMembership": "active",
        "status": warmup.status(),
        "recoveryType": "none",
        "otpNode": node_name(cluster),
        "nodeUUID": node.uuid.to_string(),
        "version": node.version,
        "clusterCompatibility": COMPATIBILITY,
        "os": std::env::consts::OS,
        "cpuCount": node.cpu_count,
        "ports": {"direct": address.data_port},
        "services": ["kv"],
        "uptime": node.uptime.as_secs().to_string(),
        "memoryTotal": node.memory_total_bytes,
        "memoryFree": node.memory_free_bytes,
        "mcdMemoryReserved": bucket.quota_bytes >> 20,
        "mcdMemoryAllocated": bucket.quota_bytes >> 20,
        "systemStats": {
            "mem_total": node.memory_total_bytes,
            "mem_free": node.memory_free_bytes,
            "mem_limit": node.memory_total_bytes,
            "cpu_cores_available": node.cpu_count,
        },
        "interestingStats": {
            "curr_items": bucket.items,
            "curr_items_tot": bucket.items,
            "mem_used": bucket.memory_used_bytes,
            "ops": bucket.operations_per_second,
            "couch_docs_actual_disk_size": bucket.disk_used_bytes,
        },
    });
    let others = cluster.nodes.iter().enumerate();
    let others = others.filter(|(index, _)| cluster.this_node != Some(*index));
    let others = others.map(|(_, address)| other_node(address, &node.version));
    std::iter::once(this).chain(others).collect()
}

/// What is known of another node: how to reach it.
fn other_node(address: &NodeAddress, version: &str) -> Value {
    let host = format!("{}:{}", address.host, address.management_port);
    json!({
        "hostname": host,
        "configuredHostname": host,
        "clusterMembership": "active",
        "status": "healthy",
        "recoveryType": "none",
        "otpNode": format!("ns_1@{host}"),
        "version": version,
        "clusterCompatibility": COMPATIBILITY,
        "ports": {"direct": address.data_port},
        "services": ["kv"],
        "systemStats": {},
        "interestingStats": {},
    })
}

fn node_name(cluster: &ClusterMap) -> String {
    format!("ns_1@{}", cluster.this_address.host)
}
