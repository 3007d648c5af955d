//! What supervisors and programs ask first: is it up, how does it feel, and what can be asked.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::certificates;
use crate::answers;
use crate::bucket_view::Warmup;
use crate::context::Context;
use crate::metric::{Metric, encode};
use crate::openapi;

/// The content type of Prometheus' text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// GET /healthz: 200 when the node serves, 503 while it warms up. Nobody is asked who they are.
pub(super) async fn healthz(State(context): State<Arc<Context>>) -> Response {
    let buckets = context.view.buckets();
    let warmup = Warmup::of_all(buckets.iter().map(|bucket| bucket.warmup()));
    let status = if warmup.is_finished { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "status": warmup.status(),
        "warmup": {
            "progress": warmup.progress(),
            "items_loaded": warmup.items_loaded,
            "items_expected": warmup.items_expected,
        },
    });
    answers::json_text(status, body.to_string())
}

/// GET /metrics and /_prometheusMetrics
pub(super) async fn metrics(State(context): State<Arc<Context>>) -> Response {
    let metrics = all_metrics(&context);
    ([(header::CONTENT_TYPE, METRICS_TYPE)], encode(metrics)).into_response()
}

/// The node's samples, and those of the REST port itself.
pub(super) fn all_metrics(context: &Context) -> Vec<Metric> {
    let mut metrics = context.view.metrics();
    metrics.extend(context.connections.metrics());
    metrics.extend(context.body_room.metrics());
    metrics.push(context.failed_logins.metric());
    metrics.extend(context.history.metrics());
    metrics.extend(certificates::expiry(context));
    metrics
}

/// GET /_prometheusMetricsHigh: what the original keeps out of `/metrics` because there is much of
/// it, to be read less often.
pub(super) async fn metrics_of_high_cardinality(State(context): State<Arc<Context>>) -> Response {
    let metrics = context.view.metrics_of_high_cardinality();
    ([(header::CONTENT_TYPE, METRICS_TYPE)], encode(metrics)).into_response()
}

/// GET /openapi.json
pub(super) async fn openapi(State(context): State<Arc<Context>>) -> Response {
    answers::ok(&openapi::document(&context.view.node().version))
}
