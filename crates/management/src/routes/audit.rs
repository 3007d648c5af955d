//! Whether changes are noted, and which there are.

use std::sync::Arc;

use auth::Actor;
use axum::Extension;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::fixed_settings::{FieldsForm, Fixed, refusals, refused};
use crate::answers;
use crate::audit_log::FILE_BYTES_MAX;
use crate::authentication::User;
use crate::context::Context;
use crate::set_up::Peer;

const IN_THE_DATA_DIRECTORY: &str = "It is `audit.log` of the data directory";
const ALL_EVENTS: &str = "Every event is noted, or none";
/// What a form may say beside whether there are notes.
const FIXED: &[Fixed] = &[
    Fixed { name: "disabled", values: &["", "[]"], instead: ALL_EVENTS },
    Fixed { name: "disabledUsers", values: &["", "[]"], instead: ALL_EVENTS },
    Fixed {
        name: "rotateInterval",
        values: &["0"],
        instead: "The file becomes the one of before by its size alone",
    },
    Fixed {
        name: "rotateSize",
        values: &["20971520"],
        instead: "The one of before is beside it, as `audit.log.1`",
    },
    Fixed { name: "pruneAge", values: &["0"], instead: "Two files are kept, whatever their age" },
];
const _: () = assert!(FILE_BYTES_MAX == 20_971_520, "the size that a form may say");

/// GET /settings/audit
pub(super) async fn show(State(context): State<Arc<Context>>) -> Response {
    let log = context.view.audit_log();
    answers::ok(&json!({
        "auditdEnabled": log.is_some_and(|log| log.is_on()),
        "disabled": [],
        "disabledUsers": [],
        "logPath": context.view.node().data_directory,
        "rotateInterval": 0,
        "rotateSize": FILE_BYTES_MAX,
        "pruneAge": 0,
    }))
}

/// POST /settings/audit: from now on, also after a start, there are notes or none, of this node.
pub(super) async fn change(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
    Extension(Peer(address)): Extension<Peer>,
    form: FieldsForm,
) -> Response {
    let Ok(Form(mut fields)) = form else { return answers::refused("_", "The body is a form") };
    let is_on = fields.remove("auditdEnabled").map(|said| said.parse::<bool>());
    let path = fields.remove("logPath");
    let mut wrong = refusals(&fields, FIXED);
    if path.is_some_and(|path| path != context.view.node().data_directory) {
        wrong.insert("logPath".to_owned(), IN_THE_DATA_DIRECTORY.to_owned());
    }
    if is_on.as_ref().is_some_and(Result::is_err) {
        let why = "The value must be one of: true, false";
        wrong.insert("auditdEnabled".to_owned(), why.to_owned());
    }
    let (Some(Ok(is_on)), true) = (is_on, wrong.is_empty()) else {
        return if wrong.is_empty() { StatusCode::OK.into_response() } else { refused(&wrong) };
    };
    let switched = tokio::task::spawn_blocking(move || match context.view.audit_log() {
        Some(log) => {
            let actor = Actor { user: &user.name, address: Some(address) };
            log.switch(is_on, actor).map_err(|error| error.to_string())
        }
        None if is_on => Err("The node is started without an audit log (--audit-log)".to_owned()),
        None => Ok(()),
    });
    match switched.await {
        Ok(Ok(())) => StatusCode::OK.into_response(),
        Ok(Err(why)) => answers::refused("auditdEnabled", &why),
        Err(_) => answers::text(StatusCode::INTERNAL_SERVER_ERROR, "The node is stopping.\r\n"),
    }
}

/// GET /settings/audit/descriptors: the events that there are.
pub(super) async fn descriptors() -> Response {
    const EVENTS: [(&str, &str); 3] = [
        (
            "change",
            "Somebody has asked for a change: over REST with its outcome, or at the data port",
        ),
        ("login failed", "Somebody could not log in, at any door"),
        ("audit log", "Somebody has switched the audit log on or off"),
    ];
    let numbered = (1_u32..).zip(EVENTS);
    let described = numbered.map(|(id, (name, description))| {
        json!({"id": id, "name": name, "module": "settee", "description": description})
    });
    answers::ok(&described.collect())
}
