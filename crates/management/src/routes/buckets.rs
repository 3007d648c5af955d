//! The bucket, short and long.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use cluster::BucketMap;
use serde_json::{Map, Value, json};

use super::Context;
use super::cluster::nodes_json;
use crate::answers;
use crate::node_view::{BucketFacts, BucketKind, FlushError, NodeView};

/// Names and values behind the question mark, or of a form.
pub(super) type Fields = BTreeMap<String, String>;

/// The field of a form that is the memory quota, in MiB.
const QUOTA_FIELD: &str = "ramQuotaMB";

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
    Path(name): Path<String>,
    Query(query): Query<Fields>,
) -> Response {
    match find(&*context.view, &name, &query) {
        Some(bucket) => {
            let config = context.view.cluster_map().bucket_config(&bucket);
            answers::json_text(StatusCode::OK, config)
        }
        None => answers::not_found(),
    }
}

/// GET /pools/default/buckets
pub(super) async fn list(State(context): State<Arc<Context>>) -> Response {
    let bucket = verbose_json(&*context.view, &context.view.bucket_map());
    answers::ok(&json!([bucket]))
}

/// GET /pools/default/buckets/{bucket}
pub(super) async fn verbose(
    State(context): State<Arc<Context>>,
    Path(name): Path<String>,
    Query(query): Query<Fields>,
) -> Response {
    match find(&*context.view, &name, &query) {
        Some(bucket) => answers::ok(&verbose_json(&*context.view, &bucket)),
        None => answers::not_found(),
    }
}

/// POST /pools/default/buckets
pub(super) async fn create(
    State(context): State<Arc<Context>>,
    form: Result<Form<Fields>, FormRejection>,
) -> Response {
    let name = form.ok().and_then(|Form(mut fields)| fields.remove("name"));
    // Programs that create their bucket if it is missing go on when they read this.
    if name.is_some_and(|name| name == context.view.bucket_map().name) {
        return answers::refused("name", "Bucket with given name already exists");
    }
    answers::refused("_", answers::ONE_BUCKET)
}

/// POST /pools/default/buckets/{bucket}: the memory quota can be changed.
pub(super) async fn change(
    State(context): State<Arc<Context>>,
    Path(name): Path<String>,
    form: Result<Form<Fields>, FormRejection>,
) -> Response {
    if find(&*context.view, &name, &Fields::new()).is_none() {
        return answers::not_found();
    }
    let fields = form.map(|Form(fields)| fields).unwrap_or_default();
    let quota = fields.get(QUOTA_FIELD);
    let (Some(quota), 1) = (quota, fields.len()) else {
        return answers::refused("_", answers::ONLY_QUOTA);
    };
    let bytes = quota.parse().ok().and_then(|megabytes: u64| megabytes.checked_mul(1 << 20));
    let Some(bytes) = bytes else {
        return answers::refused(QUOTA_FIELD, "The RAM quota is a whole number of MiB");
    };
    match context.view.set_memory_quota(bytes) {
        Ok(()) => StatusCode::OK.into_response(),
        Err(reason) => answers::refused(QUOTA_FIELD, &reason),
    }
}

/// DELETE /pools/default/buckets/{bucket}
pub(super) async fn refuse_change(
    State(context): State<Arc<Context>>,
    Path(name): Path<String>,
) -> Response {
    match find(&*context.view, &name, &Fields::new()) {
        Some(_) => answers::refused("_", answers::ONE_BUCKET),
        None => answers::not_found(),
    }
}

/// POST /pools/default/buckets/{bucket}/controller/doFlush
pub(super) async fn flush(
    State(context): State<Arc<Context>>,
    Path(name): Path<String>,
    Query(query): Query<Fields>,
) -> Response {
    if find(&*context.view, &name, &query).is_none() {
        return answers::not_found();
    }
    let view = context.view.clone();
    // The flush is lost only when the runtime shuts down.
    let lost = || Err(FlushError::Failed("The node is shutting down".to_owned()));
    let flushed = tokio::task::spawn_blocking(move || view.flush()).await;
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
pub(super) async fn compact(
    State(context): State<Arc<Context>>,
    Path(name): Path<String>,
    Query(query): Query<Fields>,
) -> Response {
    if find(&*context.view, &name, &query).is_none() {
        return answers::not_found();
    }
    match context.view.compact() {
        Ok(()) => StatusCode::OK.into_response(),
        Err(reason) => {
            answers::json_text(StatusCode::BAD_REQUEST, json!({"_": reason}).to_string())
        }
    }
}

/// POST /pools/default/buckets/{bucket}/controller/cancelBucketCompaction
pub(super) async fn cancel_compaction(
    State(context): State<Arc<Context>>,
    Path(name): Path<String>,
    Query(query): Query<Fields>,
) -> Response {
    if find(&*context.view, &name, &query).is_none() {
        return answers::not_found();
    }
    context.view.cancel_compactions();
    StatusCode::OK.into_response()
}

/// The bucket of that name; none when the request means an earlier bucket of that name.
pub(super) fn find(view: &dyn NodeView, name: &str, query: &Fields) -> Option<BucketMap> {
    let bucket = view.bucket_map();
    let uuid = query.get("bucket_uuid");
    let is_meant = bucket.name == name && uuid.is_none_or(|uuid| *uuid == bucket.uuid.to_string());
    is_meant.then_some(bucket)
}

/// The long form. Every field is one that some client needs or some tool shows.
fn verbose_json(view: &dyn NodeView, bucket: &BucketMap) -> Value {
    let cluster = view.cluster_map();
    let short: Value = serde_json::from_str(&cluster.bucket_config(bucket)).unwrap_or_default();
    let mut fields = Map::new();
    for name in SHARED_FIELDS {
        if let Some(value) = short.get(name) {
            fields.insert(name.to_owned(), value.clone());
        }
    }
    let facts = view.bucket();
    if let Value::Object(own) = own_fields(bucket, &facts) {
        fields.extend(own);
    }
    fields.insert("nodes".to_owned(), nodes_json(view, &cluster));
    Value::Object(fields)
}

fn own_fields(bucket: &BucketMap, facts: &BucketFacts) -> Value {
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
        "quota": {"ram": facts.quota_bytes, "rawRAM": facts.quota_bytes},
        "replicaNumber": bucket.replica_count,
        "replicaIndex": false,
        "threadsNumber": 3,
        "basicStats": {
            "itemCount": facts.items,
            "quotaPercentUsed": quota_used,
            "opsPerSec": facts.operations_per_second,
            "diskFetches": facts.disk_fetches_per_second,
            "diskUsed": facts.disk_used_bytes,
            "dataUsed": facts.data_used_bytes,
            "memUsed": facts.memory_used_bytes,
        },
        "evictionPolicy": eviction,
        "durabilityMinLevel": "none",
        "conflictResolutionType": "seqno",
        "maxTTL": 0,
        "compressionMode": facts.compression_mode,
        "historyRetentionCollectionDefault": true,
        "historyRetentionBytes": 0,
        "historyRetentionSeconds": 0,
    })
}

/// What can be done to the bucket. Clients take `flush` as the promise that it is enabled.
fn controllers(name: &str, flush_enabled: bool) -> Value {
    let route = |what: &str| format!("/pools/default/buckets/{name}/controller/{what}");
    let compact = route("compactBucket");
    if flush_enabled {
        json!({"compactAll": compact, "flush": route("doFlush")})
    } else {
        json!({"compactAll": compact})
    }
}
