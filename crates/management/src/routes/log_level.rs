//! Which lines the node logs.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::form_fields::FormFields;
use crate::answers;
use crate::context::Context;

/// The field that says it.
const FILTER: &str = "filter";

/// GET /settee/logLevel
pub(super) async fn show(State(context): State<Arc<Context>>) -> Response {
    answers::ok(&json!({FILTER: context.view.log_filter()}))
}

/// POST /settee/logLevel: `filter` in the words of `--log-level`. It holds until the node stops.
pub(super) async fn change(
    State(context): State<Arc<Context>>,
    FormFields(fields): FormFields,
) -> Response {
    let Some(filter) = fields.get(FILTER) else {
        return answers::refused(FILTER, "Say which lines: info, or bucket=debug,info");
    };
    match context.view.set_log_filter(filter) {
        Ok(()) => StatusCode::OK.into_response(),
        Err(why) => answers::refused(FILTER, &why),
    }
}
