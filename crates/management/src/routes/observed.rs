//! Slow operations and hot documents.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::form_fields::FormFields;
use super::named_bucket::NamedBucket;
use crate::answers;
use crate::context::Context;
use crate::observed::{HotKeys, SlowOperationFacts};

/// GET /settee/buckets/{bucket}/slowOperations: the newest first. Durations are microseconds.
pub(super) async fn slow_operations(NamedBucket(bucket): NamedBucket) -> Response {
    answers::ok(&bucket.slow_operations().iter().map(slow_json).collect())
}

fn slow_json(operation: &SlowOperationFacts) -> Value {
    let spans: Map<String, Value> = operation
        .spans
        .iter()
        .map(|(name, duration)| ((*name).to_owned(), micros(*duration)))
        .collect();
    json!({
        "endedAt": operation.ended_at_ms,
        "command": operation.command,
        "key": operation.key,
        "client": operation.client,
        "took": micros(operation.took),
        "spans": spans,
    })
}

fn micros(duration: Duration) -> Value {
    json!(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

/// GET /settee/slowThresholds: milliseconds by the commands' names.
pub(super) async fn slow_thresholds(State(context): State<Arc<Context>>) -> Response {
    let thresholds = context.view.slow_thresholds().into_iter();
    let thresholds = thresholds.map(|(command, ms)| (command.to_owned(), json!(ms)));
    answers::ok(&Value::Object(thresholds.collect()))
}

/// POST /settee/slowThresholds: `command`, or `all`; `milliseconds`. It holds until the node stops.
pub(super) async fn change_slow_threshold(
    State(context): State<Arc<Context>>,
    FormFields(fields): FormFields,
) -> Response {
    let said = fields.get("command").zip(fields.get("milliseconds"));
    let Some((command, milliseconds)) = said else {
        return answers::refused("_", "Say `command`, such as GET or all, and `milliseconds`");
    };
    changed(context.view.set_slow_threshold(command, milliseconds), "_")
}

/// GET /settee/buckets/{bucket}/hotKeys: what the last sampling has found.
pub(super) async fn hot_keys(NamedBucket(bucket): NamedBucket) -> Response {
    let HotKeys { keys, counted, sampled_every, time_left } = bucket.hot_keys();
    let keys: Value = keys.iter().map(|(key, count)| json!({"key": key, "count": count})).collect();
    answers::ok(&json!({
        "keys": keys,
        "counted": counted,
        "sampledEvery": sampled_every,
        "secondsLeft": time_left.as_secs_f64(),
    }))
}

/// POST /settee/hotKeys: begins a sampling of all buckets, for `seconds`.
pub(super) async fn sample_hot_keys(
    State(context): State<Arc<Context>>,
    FormFields(fields): FormFields,
) -> Response {
    let Some(seconds) = fields.get("seconds") else {
        return answers::refused("seconds", "Say for how many seconds");
    };
    changed(context.view.sample_hot_keys(seconds), "seconds")
}

fn changed(done: Result<(), String>, field: &str) -> Response {
    match done {
        Ok(()) => answers::ok(&json!({})),
        Err(why) => answers::refused(field, &why),
    }
}
