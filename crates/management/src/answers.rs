//! Answers in the words that clients recognise. Source: docs/specification/clients.md, section 10:
//! clients match substrings of these texts.

use axum::http::{HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Names the nodes that do not know of a change yet. Clients look at the status alone.
const PENDING: HeaderName = HeaderName::from_static("settee-pending-nodes");

/// A change is made, and all nodes know of it but those in `pending`, which will.
pub(crate) fn known_by_all_but(pending: &[String], status: StatusCode) -> Response {
    if pending.is_empty() {
        return status.into_response();
    }
    (status, [(PENDING, pending.join(","))]).into_response()
}

/// 200 with a JSON document.
pub(crate) fn ok(body: &Value) -> Response {
    json_text(StatusCode::OK, body.to_string())
}

/// Any status with a JSON document.
pub(crate) fn json_text(status: StatusCode, body: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// What is asked for does not exist. The text is the one that clients look for.
pub(crate) fn not_found() -> Response {
    text(StatusCode::NOT_FOUND, "Requested resource not found.\r\n")
}

/// 404 with a JSON string, as for users and groups.
pub(crate) fn not_found_text(text: &str) -> Response {
    json_text(StatusCode::NOT_FOUND, json!(text).to_string())
}

/// 403: the user is not allowed to, and what would be needed.
pub(crate) fn forbidden(permission: &str) -> Response {
    let message = "Forbidden. User needs the following permissions";
    let body = json!({"message": message, "permissions": [permission]});
    json_text(StatusCode::FORBIDDEN, body.to_string())
}

/// 400 with the reason, in the form in which clients show it to their users.
pub(crate) fn refused(field: &str, reason: &str) -> Response {
    json_text(StatusCode::BAD_REQUEST, json!({"errors": {field: reason}}).to_string())
}

/// Any status with a line for people.
pub(crate) fn text(status: StatusCode, line: &'static str) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain")], line).into_response()
}
