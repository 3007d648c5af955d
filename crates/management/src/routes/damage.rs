//! vBuckets whose files are damaged, and what an operator does about them.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::form_fields::FormFields;
use super::named_bucket::{Fields, named_entries};
use crate::answers;
use crate::bucket_view::{DamagedVbucket, ResetError};
use crate::context::Context;

/// What says that the caller knows what is lost.
const CONFIRMATION: (&str, &str) = ("confirm", "lose");

/// GET /settee/vbuckets/damaged
pub(super) async fn list(State(context): State<Arc<Context>>) -> Response {
    let one = |damaged: DamagedVbucket| {
        let DamagedVbucket { vbid, kind, reason } = damaged;
        json!({"vbucket": vbid, "kind": kind, "reason": reason})
    };
    let damaged = named_entries(&context.view.buckets(), |bucket| {
        bucket.damaged_vbuckets().into_iter().map(one).collect()
    });
    answers::ok(&json!({"damaged": damaged}))
}

/// POST /settee/vbuckets/{vbid}/reset: without `confirm=lose` it says what would be lost, and
/// nothing changes. `bucket` says whose vBucket it is; it may be left out where there is one
/// bucket. Answered when the vBucket has begun anew.
pub(super) async fn reset(
    State(context): State<Arc<Context>>,
    Path(number): Path<String>,
    Query(query): Query<Fields>,
    FormFields(fields): FormFields,
) -> Response {
    let (name, value) = CONFIRMATION;
    let said = |name| query.get(name).or(fields.get(name));
    let is_confirmed = said(name).is_some_and(|said| said == value);
    let view = match said("bucket") {
        Some(bucket) => context.view.bucket(bucket),
        None => match context.view.buckets().as_slice() {
            [bucket] => Some(Arc::clone(bucket)),
            _ => return answers::refused("bucket", "Say the name of the vBucket's bucket"),
        },
    };
    let Some(view) = view else { return answers::not_found() };
    let Ok(vbid) = number.parse() else {
        return told(StatusCode::NOT_FOUND, &format!("There is no vBucket {number}"));
    };
    // The work is lost only when the runtime shuts down.
    let lost = || Err(ResetError::Failed("The node is shutting down".to_owned()));
    let done = tokio::task::spawn_blocking(move || {
        if is_confirmed {
            return view.reset_vbucket(vbid).map(|()| None);
        }
        view.reset_loss(vbid).map(Some)
    });
    let (status, reason) = match done.await.unwrap_or_else(|_| lost()) {
        Ok(None) => return StatusCode::OK.into_response(),
        Ok(Some(loss)) => {
            let body = json!({"_": format!("{loss}. To do it: {name}={value}"), "loss": loss});
            return answers::json_text(StatusCode::BAD_REQUEST, body.to_string());
        }
        Err(ResetError::NotHere(reason)) => (StatusCode::NOT_FOUND, reason),
        Err(ResetError::Refused(reason)) => (StatusCode::BAD_REQUEST, reason),
        Err(ResetError::Failed(reason)) => (StatusCode::SERVICE_UNAVAILABLE, reason),
    };
    told(status, &reason)
}

fn told(status: StatusCode, reason: &str) -> Response {
    answers::json_text(status, json!({"_": reason}).to_string())
}
