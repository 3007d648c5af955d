//! Buckets that are made, changed and deleted.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;
use tokio::sync::oneshot;

use super::bucket_form::BucketForm;
use super::form_fields::FormFields;
use super::named_bucket::{Fields, NamedBucket};
use crate::answers;
use crate::bucket_order::BucketOrderError;
use crate::context::Context;
use crate::node_view::NodeView;

/// How long a client waits for the end of a bucket that it has deleted, as with the original.
const DELETION_TIME_MAX: Duration = Duration::from_secs(30);

/// Behind the question mark: says what would come of it, and changes nothing.
const TRIAL_FIELD: &str = "just_validate";

/// POST /pools/default/buckets
pub(super) async fn create(
    State(context): State<Arc<Context>>,
    Query(query): Query<Fields>,
    FormFields(mut fields): FormFields,
) -> Response {
    let name = fields.remove("name").unwrap_or_default();
    let mut form = BucketForm::read(fields);
    form.check_new();
    if name.is_empty() {
        form.errors.insert("name".to_owned(), "Bucket name needs to be specified".to_owned());
    } else if context.view.bucket(&name).is_some() {
        form.errors.insert("name".to_owned(), EXISTS.to_owned());
    }
    let make = move |view: &dyn NodeView, form: &BucketForm, is_trial| {
        view.create_bucket(&name, &form.order, is_trial).map(|()| Vec::new())
    };
    carry_out(&context, form, is_trial(&query), StatusCode::ACCEPTED, make).await
}

/// POST /pools/default/buckets/{bucket}
pub(super) async fn change(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
    Query(query): Query<Fields>,
    FormFields(mut fields): FormFields,
) -> Response {
    let name = bucket.map().name;
    drop(bucket);
    // Clients say it again.
    fields.remove("name");
    let form = BucketForm::read(fields);
    let change = move |view: &dyn NodeView, form: &BucketForm, is_trial| {
        view.change_bucket(&name, &form.order, is_trial)
    };
    carry_out(&context, form, is_trial(&query), StatusCode::OK, change).await
}

/// DELETE /pools/default/buckets/{bucket}: answered when nothing of it is left, or when that takes
/// long.
pub(super) async fn delete(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
) -> Response {
    let name = bucket.map().name;
    // Whoever holds it keeps it from going.
    drop(bucket);
    let view = Arc::clone(&context.view);
    let (gone, is_gone) = oneshot::channel();
    let gone = Box::new(move || gone.send(()).unwrap_or_default());
    let deleted = tokio::task::spawn_blocking(move || view.delete_bucket(&name, gone)).await;
    let pending = match deleted.unwrap_or_else(|_| Err(stopping())) {
        Ok(pending) => pending,
        Err(error) => return refusal(&BucketForm::default(), error),
    };
    // Not on a thread: requests that wait for one may be what holds the bucket.
    match tokio::time::timeout(DELETION_TIME_MAX, is_gone).await {
        Ok(Ok(())) => answers::known_by_all_but(&pending, StatusCode::OK),
        Ok(Err(_)) | Err(_) => {
            let body = json!({"_": "Bucket deletion not yet complete, but will continue.\r\n"});
            answers::json_text(StatusCode::INTERNAL_SERVER_ERROR, body.to_string())
        }
    }
}

const EXISTS: &str = "Bucket with given name already exists";

/// Carries out what a form says, if it is right.
async fn carry_out(
    context: &Context,
    form: BucketForm,
    is_trial: bool,
    done: StatusCode,
    order: impl FnOnce(&dyn NodeView, &BucketForm, bool) -> Result<Vec<String>, BucketOrderError>
    + Send
    + 'static,
) -> Response {
    if !form.errors.is_empty() {
        return refused(&form.errors);
    }
    let view = Arc::clone(&context.view);
    let carried_out = tokio::task::spawn_blocking(move || {
        let result = order(&*view, &form, is_trial);
        (form, result)
    });
    match carried_out.await {
        Ok((_, Ok(_))) if is_trial => answers::ok(&json!({"errors": {}, "summaries": {}})),
        Ok((_, Ok(pending))) => answers::known_by_all_but(&pending, done),
        Ok((form, Err(error))) => refusal(&form, error),
        Err(_) => refusal(&BucketForm::default(), stopping()),
    }
}

/// Whether a request only asks what would come of it.
pub(super) fn is_trial(query: &Fields) -> bool {
    query.get(TRIAL_FIELD).is_some_and(|value| value == "1")
}

/// The work is lost only when the runtime shuts down.
fn stopping() -> BucketOrderError {
    BucketOrderError::Failed("The node is shutting down".to_owned())
}

fn refusal(form: &BucketForm, error: BucketOrderError) -> Response {
    match error {
        BucketOrderError::Exists => answers::refused("name", EXISTS),
        BucketOrderError::NotFound => answers::not_found(),
        BucketOrderError::Invalid(name, why) => answers::refused(&form.field_of(&name), &why),
        BucketOrderError::Failed(why) => {
            let body = json!({"_": why}).to_string();
            answers::json_text(StatusCode::SERVICE_UNAVAILABLE, body)
        }
    }
}

fn refused(errors: &Fields) -> Response {
    let body = json!({"errors": errors, "summaries": {}}).to_string();
    answers::json_text(StatusCode::BAD_REQUEST, body)
}
