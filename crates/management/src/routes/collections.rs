//! Scopes and collections: the default one.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::json;

use super::Context;
use super::buckets::{Fields, find};
use crate::answers;

/// GET /pools/default/buckets/{bucket}/scopes
pub(super) async fn manifest(
    State(context): State<Arc<Context>>,
    Path(name): Path<String>,
) -> Response {
    if find(&*context.view, &name, &Fields::new()).is_none() {
        return answers::not_found();
    }
    let collection = json!({"name": "_default", "uid": "0", "maxTTL": 0, "history": false});
    let scope = json!({"name": "_default", "uid": "0", "collections": [collection]});
    answers::ok(&json!({"uid": "0", "scopes": [scope]}))
}

/// Every change of scopes and collections.
pub(super) async fn refuse_change(
    State(context): State<Arc<Context>>,
    Path(names): Path<Fields>,
) -> Response {
    let name = names.get("bucket").map_or("", String::as_str);
    match find(&*context.view, name, &Fields::new()) {
        Some(_) => answers::refused("_", answers::ONE_COLLECTION),
        None => answers::not_found(),
    }
}
