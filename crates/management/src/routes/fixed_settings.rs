//! Settings of the original's that are what they are here: they are shown, a form that says the
//! same is accepted, and one that wants something else is told what to do instead.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::rejection::FormRejection;
use axum::extract::{Form, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::named_bucket::Fields;
use crate::answers;
use crate::context::Context;
use crate::sessions;

pub(super) type FieldsForm = Result<Form<Fields>, FormRejection>;

/// Why nothing is sent by mail.
const NO_MAIL: &str =
    "This server sends no mail: alert rules for Prometheus are in deploy/prometheus";

/// A field, what a form may say of it, and what to do for something else.
pub(super) struct Fixed {
    pub(super) name: &'static str,
    pub(super) values: &'static [&'static str],
    pub(super) instead: &'static str,
}

/// What each field of a form is refused for.
pub(super) fn refusals(fields: &Fields, fixed: &[Fixed]) -> BTreeMap<String, String> {
    let refusal = |(name, value): (&String, &String)| {
        let known = fixed.iter().find(|known| known.name == name.as_str());
        let why = match known {
            None => "Unsupported key".to_owned(),
            Some(known) if known.values.contains(&value.as_str()) => return None,
            Some(known) => {
                format!("The value here is {}. {}", known.values.join(" or "), known.instead)
            }
        };
        Some((name.clone(), why))
    };
    fields.iter().filter_map(refusal).collect()
}

/// 400 with all of them.
pub(super) fn refused(refusals: &BTreeMap<String, String>) -> Response {
    answers::json_text(StatusCode::BAD_REQUEST, json!({"errors": refusals}).to_string())
}

/// A form that asks for what there is already is accepted.
fn confirm(form: FieldsForm, fixed: &[Fixed], shown: impl FnOnce() -> Response) -> Response {
    let Ok(Form(fields)) = form else { return answers::refused("_", "The body is a form") };
    let refusals = refusals(&fields, fixed);
    if refusals.is_empty() { shown() } else { refused(&refusals) }
}

const NEVER_OFF: &str = "Whoever may not reach the port is kept out by a firewall";
const SECURITY: &[Fixed] = &[
    Fixed { name: "disableUIOverHttp", values: &["false"], instead: NEVER_OFF },
    Fixed { name: "disableUIOverHttps", values: &["false"], instead: NEVER_OFF },
    Fixed {
        name: "disableWWWAuthenticate",
        values: &["false"],
        instead: "A request with the header `invalid-auth-response: on` is answered without it",
    },
    Fixed {
        name: "uiSessionTimeout",
        values: &["3600"],
        instead: "A session of the console ends after an hour in which nobody uses it",
    },
    Fixed {
        name: "tlsMinVersion",
        values: &["tlsv1.2"],
        instead: "TLS 1.2 and 1.3 are spoken, and clients choose",
    },
    Fixed {
        name: "cipherSuites",
        values: &["[]", ""],
        instead: "All that are spoken are in `supportedCipherSuites`",
    },
    Fixed {
        name: "honorCipherOrder",
        values: &["false"],
        instead: "All suites are strong, and clients know which is fastest on their machine",
    },
    Fixed {
        name: "clusterEncryptionLevel",
        values: &["control", "all"],
        instead: "Nodes speak TLS with each other where they are started so (--tls-node-ca)",
    },
];

/// GET /settings/security
pub(super) async fn security(State(context): State<Arc<Context>>) -> Response {
    let has_node_authorities =
        context.certificates.as_ref().is_some_and(|store| !store.node_authorities().is_empty());
    answers::ok(&json!({
        "disableUIOverHttp": false,
        "disableUIOverHttps": false,
        "disableWWWAuthenticate": false,
        "uiSessionTimeout": sessions::IDLE_TIME_MAX.as_secs(),
        "tlsMinVersion": "tlsv1.2",
        "cipherSuites": [],
        "honorCipherOrder": false,
        "supportedCipherSuites": tls::cipher_suites(),
        "clusterEncryptionLevel": if has_node_authorities { "all" } else { "control" },
    }))
}

/// POST /settings/security
pub(super) async fn confirm_security(
    State(context): State<Arc<Context>>,
    form: FieldsForm,
) -> Response {
    let encrypts = context.certificates.as_ref().map(|store| !store.node_authorities().is_empty());
    let level = form.as_ref().ok().and_then(|Form(fields)| fields.get("clusterEncryptionLevel"));
    let is_meant = level.is_none_or(|level| (level == "all") == encrypts.unwrap_or(false));
    confirm(form, SECURITY, || match is_meant {
        true => StatusCode::OK.into_response(),
        false => {
            let why = "Nodes speak TLS with each other where they are started so (--tls-node-ca)";
            answers::refused("clusterEncryptionLevel", why)
        }
    })
}

/// GET /settings/alerts: nobody is sent a mail.
pub(super) async fn alerts() -> Response {
    answers::ok(&json!({
        "recipients": [],
        "sender": "",
        "enabled": false,
        "emailServer": {"user": "", "pass": "", "host": "", "port": 25, "encrypt": false},
        "alerts": [],
        "pop_up_alerts": [],
    }))
}

/// POST /settings/alerts: whom to tell means nothing while it is off, and off it stays.
pub(super) async fn confirm_alerts(form: FieldsForm) -> Response {
    let Ok(Form(fields)) = form else { return answers::refused("_", "The body is a form") };
    match fields.get("enabled").map(String::as_str) {
        Some("false") => StatusCode::OK.into_response(),
        Some("true") => answers::refused("enabled", NO_MAIL),
        Some(_) => answers::refused("enabled", "The value must be one of: true, false"),
        None => answers::refused("enabled", "The value must be supplied"),
    }
}

/// POST /settings/alerts/testEmail
pub(super) async fn test_mail() -> Response {
    let body: Value = json!({"error": NO_MAIL});
    answers::json_text(StatusCode::BAD_REQUEST, body.to_string())
}
