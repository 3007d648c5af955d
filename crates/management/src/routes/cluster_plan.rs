//! The plan of the cluster: what this node does, and having it do something else.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::Context;
use crate::answers;
use crate::node_view::CarryOutError;

/// GET /settee/clusterMap
pub(super) async fn show(State(context): State<Arc<Context>>) -> Response {
    answers::json_text(StatusCode::OK, context.view.cluster_plan())
}

/// PUT /settee/clusterMap: answered when the node does its part.
pub(super) async fn carry_out(State(context): State<Arc<Context>>, plan: String) -> Response {
    let view = context.view.clone();
    // The work is lost only when the runtime shuts down.
    let lost = || Err(CarryOutError::Failed("The node is shutting down".to_owned()));
    let done = tokio::task::spawn_blocking(move || view.carry_out(&plan)).await;
    let (status, reason) = match done.unwrap_or_else(|_| lost()) {
        Ok(()) => return StatusCode::OK.into_response(),
        Err(CarryOutError::Invalid(reason)) => (StatusCode::BAD_REQUEST, reason),
        Err(CarryOutError::Older(reason)) => (StatusCode::CONFLICT, reason),
        Err(CarryOutError::Failed(reason)) => (StatusCode::SERVICE_UNAVAILABLE, reason),
    };
    answers::json_text(status, json!({"_": reason}).to_string())
}
