//! Scopes and collections: the default one.

use axum::response::Response;
use serde_json::json;

use super::named_bucket::NamedBucket;
use crate::answers;

/// GET /pools/default/buckets/{bucket}/scopes
pub(super) async fn manifest(_: NamedBucket) -> Response {
    let collection = json!({"name": "_default", "uid": "0", "maxTTL": 0, "history": false});
    let scope = json!({"name": "_default", "uid": "0", "collections": [collection]});
    answers::ok(&json!({"uid": "0", "scopes": [scope]}))
}

/// Every change of scopes and collections.
pub(super) async fn refuse_change(_: NamedBucket) -> Response {
    answers::refused("_", answers::ONE_COLLECTION)
}
