//! The bucket that a request names.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path, Query};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::answers;
use crate::bucket_view::BucketView;
use crate::context::Context;

/// Names and values behind the question mark, or of a form.
pub(super) type Fields = BTreeMap<String, String>;

/// The part `{bucket}` of a request's path. There is none where the request means an earlier bucket
/// of that name, by its `bucket_uuid`.
pub(super) struct NamedBucket(pub(super) Arc<dyn BucketView>);

impl FromRequestParts<Arc<Context>> for NamedBucket {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        context: &Arc<Context>,
    ) -> Result<Self, Response> {
        let path = Path::<Fields>::from_request_parts(parts, context).await;
        let Path(path) = path.map_err(IntoResponse::into_response)?;
        let query = Query::<Fields>::from_request_parts(parts, context).await;
        let Query(query) = query.map_err(IntoResponse::into_response)?;
        let name = path.get("bucket").map_or("", String::as_str);
        let bucket = context.view.bucket(name);
        let is_meant = |bucket: &Arc<dyn BucketView>| {
            let uuid = query.get("bucket_uuid");
            uuid.is_none_or(|uuid| *uuid == bucket.map().uuid.to_string())
        };
        bucket.filter(is_meant).map(Self).ok_or_else(answers::not_found)
    }
}

/// Entries about vBuckets of all buckets. Each has its bucket's name where there are several.
pub(super) fn named_entries(
    buckets: &[Arc<dyn BucketView>],
    entries: impl Fn(&dyn BucketView) -> Vec<Value>,
) -> Value {
    let has_names = buckets.len() > 1;
    let of_bucket = |bucket: &Arc<dyn BucketView>| {
        let mut entries = entries(&**bucket);
        if has_names {
            let name = json!(bucket.map().name);
            for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
                entry.insert("bucket".to_owned(), name.clone());
            }
        }
        entries
    };
    buckets.iter().flat_map(of_bucket).collect()
}
