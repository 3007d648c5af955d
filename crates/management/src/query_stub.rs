//! What programs hear that wait for a query service where there is none, and would not go on: that
//! somebody is there, and of every statement that nobody carries it out.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;

/// A code of the service itself, not of a statement.
const NO_SERVICE: u32 = 1000;

/// Answers without a login: nothing is told.
pub(crate) fn router() -> Router {
    Router::new().route("/admin/ping", get(async || "{}")).fallback(async || refusal())
}

fn refusal() -> Response {
    let error = json!({
        "code": NO_SERVICE,
        "msg": "there is no query service: documents alone are served here",
    });
    let body = json!({"status": "fatal", "errors": [error], "results": []});
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (StatusCode::SERVICE_UNAVAILABLE, headers, body.to_string()).into_response()
}
