//! Buckets, short and long.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cluster::BucketMap;
use document::uri::escaped;
use serde_json::{Map, Value, json};

use super::cluster::nodes_json;
use super::named_bucket::NamedBucket;
use crate::answers;
use crate::authentication::User;
use crate::bucket_view::{BucketFacts, BucketKind, BucketView, CompactionError, FlushError};
use crate::context::Context;
use crate::node_view::NodeView;

/// What the long form says in the same words as the short one.
const SHARED_FIELDS: [&str; 10] = [
    "name",
    "nodeLocator",
    "uuid",
    "uri",
    "streamingUri",
    "bucketCapabilitiesVer",
    "bucketCapabilities",
    "collectionsManifestUid",
    "ddocs",
    "vBucketServerMap",
];

/// GET /pools/default/b/{bucket}
pub(super) async fn terse(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
) -> Response {
    let config = context.view.cluster_map().bucket_config(&bucket.map());
    answers::json_text(StatusCode::OK, config)
}

/// GET /pools/default/buckets
pub(super) async fn list(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
) -> Response {
    let mut buckets = context.view.buckets();
    buckets.retain(|bucket| user.may_see(&bucket.map().name));
    answers::ok(&buckets.iter().map(|bucket| verbose_json(&*context.view, &**bucket)).collect())
}

/// GET /pools/default/buckets/{bucket}
pub(super) async fn verbose(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
) -> Response {
    answers::ok(&verbose_json(&*context.view, &*bucket))
}

/// POST /pools/default/buckets/{bucket}/controller/doFlush
pub(super) async fn flush(NamedBucket(bucket): NamedBucket) -> Response {
    // The flush is lost only when the runtime shuts down.
    let lost = || Err(FlushError::Failed("The node is shutting down".to_owned()));
    let flushed = tokio::task::spawn_blocking(move || bucket.flush()).await;
    match flushed.unwrap_or_else(|_| lost()) {
        Ok(()) => StatusCode::OK.into_response(),
        Err(FlushError::Disabled) => {
            let body = json!({"_": "Flush is disabled for the bucket"});
            answers::json_text(StatusCode::BAD_REQUEST, body.to_string())
        }
        Err(FlushError::Failed(reason)) => {
            let body = json!({"_": reason});
            answers::json_text(StatusCode::SERVICE_UNAVAILABLE, body.to_string())
        }
    }
}

/// POST /pools/default/buckets/{bucket}/controller/compactBucket: does not wait for the end.
pub(super) async fn compact(NamedBucket(bucket): NamedBucket) -> Response {
    with_other_nodes(move || bucket.compact()).await
}

/// POST /pools/default/buckets/{bucket}/controller/cancelBucketCompaction
pub(super) async fn cancel_compaction(NamedBucket(bucket): NamedBucket) -> Response {
    with_other_nodes(move || bucket.cancel_compactions()).await
}

/// POST /settee/buckets/{bucket}/compaction: what nodes ask each other for.
pub(super) async fn compact_here(NamedBucket(bucket): NamedBucket) -> Response {
    compaction_answer(bucket.compact_here())
}

/// DELETE /settee/buckets/{bucket}/compaction
pub(super) async fn cancel_compaction_here(NamedBucket(bucket): NamedBucket) -> Response {
    bucket.cancel_compactions_here();
    StatusCode::OK.into_response()
}

async fn with_other_nodes(
    order: impl FnOnce() -> Result<(), CompactionError> + Send + 'static,
) -> Response {
    // It is lost only when the runtime shuts down.
    let lost = || Err(CompactionError::Failed("The node is shutting down".to_owned()));
    compaction_answer(tokio::task::spawn_blocking(order).await.unwrap_or_else(|_| lost()))
}

fn compaction_answer(ordered: Result<(), CompactionError>) -> Response {
    let (status, reason) = match ordered {
        Ok(()) => return StatusCode::OK.into_response(),
        Err(CompactionError::Impossible(reason)) => (StatusCode::BAD_REQUEST, reason),
        Err(CompactionError::Failed(reason)) => (StatusCode::SERVICE_UNAVAILABLE, reason),
    };
    answers::json_text(status, json!({"_": reason}).to_string())
}

/// The long form. Every field is one that some client needs or some tool shows.
fn verbose_json(view: &dyn NodeView, bucket: &dyn BucketView) -> Value {
    let (cluster, map) = (view.cluster_map(), bucket.map());
    let short: Value = serde_json::from_str(&cluster.bucket_config(&map)).unwrap_or_default();
    let mut fields = Map::new();
    for name in SHARED_FIELDS {
        if let Some(value) = short.get(name) {
            fields.insert(name.to_owned(), value.clone());
        }
    }
    let node_count = u64::try_from(cluster.nodes.len()).unwrap_or(u64::MAX).max(1);
    if let Value::Object(own) = own_fields(&map, &bucket.facts(), node_count) {
        fields.extend(own);
    }
    fields.insert("nodes".to_owned(), nodes_json(view, &cluster));
    Value::Object(fields)
}

/// Every node has the bucket, with the same quota unless that is what others leave.
fn own_fields(bucket: &BucketMap, facts: &BucketFacts, node_count: u64) -> Value {
    let quota_of_all = facts.quota_bytes.saturating_mul(node_count);
    let quota_used = 100.0 * facts.memory_used_bytes as f64 / facts.quota_bytes.max(1) as f64;
    // The words that the original's clients read.
    let (bucket_type, backend, eviction) = match facts.kind {
        BucketKind::Couchbase => ("membase", "couchstore", "valueOnly"),
        BucketKind::FullEviction => ("membase", "couchstore", "fullEviction"),
        BucketKind::EphemeralAutoDelete => ("ephemeral", "undefined", "nruEviction"),
        BucketKind::EphemeralFailNewData => ("ephemeral", "undefined", "noEviction"),
    };
    json!({
        "bucketType": bucket_type,
        "storageBackend": backend,
        "numVBuckets": bucket.chains.len(),
        "controllers": controllers(&bucket.name, facts.flush_enabled),
        "authType": "sasl",
        "autoCompactionSettings": false,
        "quota": {"ram": quota_of_all, "rawRAM": facts.quota_bytes},
        "replicaNumber": facts.replica_number,
        "replicaIndex": false,
        "threadsNumber": 3,
        "basicStats": {
            "itemCount": facts.active_items,
            "quotaPercentUsed": quota_used,
            "opsPerSec": facts.operations_per_second,
            "diskFetches": facts.disk_fetches_per_second,
            "diskUsed": facts.disk_used_bytes,
            "dataUsed": facts.data_used_bytes,
            "memUsed": facts.memory_used_bytes,
            "vbActiveNumNonResident": facts.active_non_resident_items,
        },
        "evictionPolicy": eviction,
        "durabilityMinLevel": facts.durability_level_min,
        "conflictResolutionType": facts.conflict_resolution,
        "maxTTL": facts.max_ttl_seconds,
        "purgeInterval": 3.0,
        "rank": 0,
        "stats": {
            "uri": format!("/pools/default/buckets/{}/stats", escaped(&bucket.name)),
            "nodeStatsListURI": format!("/pools/default/buckets/{}/nodes", escaped(&bucket.name)),
        },
        "compressionMode": facts.compression_mode,
        "historyRetentionCollectionDefault": true,
        "historyRetentionBytes": 0,
        "historyRetentionSeconds": 0,
    })
}

/// POST .../controller/unsafePurgeBucket
pub(super) async fn refuse_purge(_: NamedBucket) -> Response {
    let why = "Deletions are forgotten by their age alone, as replicas may not have them yet";
    answers::refused("_", why)
}

/// What can be done to the bucket. Clients take `flush` as the promise that it is enabled.
fn controllers(name: &str, flush_enabled: bool) -> Value {
    let name = escaped(name);
    let route = |what: &str| format!("/pools/default/buckets/{name}/controller/{what}");
    let compact = route("compactBucket");
    if flush_enabled {
        json!({"compactAll": compact, "flush": route("doFlush")})
    } else {
        json!({"compactAll": compact})
    }
}
