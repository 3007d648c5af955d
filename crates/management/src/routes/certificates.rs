//! The node's certificates, and what is asked of its clients.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use platform::WallTime;
use serde_json::{Value, json};
use tls::{CertificateError, CertificateFacts, CertificateStore, ClientCertificates};

use crate::answers;
use crate::context::Context;
use crate::date::rfc3339;
use crate::metric::Metric;

/// GET /pools/default/certificate: what clients are to trust, PEM.
pub(super) async fn trusted(State(context): State<Arc<Context>>) -> Response {
    let Some(store) = &context.certificates else { return without_tls() };
    ([(header::CONTENT_TYPE, "text/plain")], store.trusted_pem()).into_response()
}

/// GET /pools/default/certificates: what the nodes show.
pub(super) async fn chains(State(context): State<Arc<Context>>) -> Response {
    let Some(store) = &context.certificates else { return answers::ok(&json!([])) };
    let address = context.view.cluster_map().this_address;
    let chain = store.chain();
    let Some((facts, _)) = chain.first() else { return answers::ok(&json!([])) };
    let pem: String = chain.iter().map(|(_, pem)| pem.as_str()).collect();
    let beside = json!({
        "node": format!("{}:{}", address.host, address.management_port),
        "type": if store.is_self_signed() { "generated" } else { "uploaded" },
    });
    answers::ok(&json!([described(facts, &pem, store.now(), beside)]))
}

/// When the certificate ends that clients are shown; nothing without TLS.
pub(super) fn expiry(context: &Context) -> Option<Metric> {
    let chain = context.certificates.as_ref()?.chain();
    let (facts, _) = chain.first()?;
    // Before 1970 it has ended.
    let seconds = Duration::from_secs(u64::try_from(facts.not_after_s).unwrap_or(0));
    Some(Metric::gauge(
        "settee_tls_certificate_expiry_timestamp_seconds",
        "When the certificate ends that clients are shown, in seconds since 1970",
        seconds.as_secs_f64(),
    ))
}

/// GET /pools/default/trustedCAs: whose signatures are believed on certificates of clients, and of
/// other nodes.
pub(super) async fn client_authorities(State(context): State<Arc<Context>>) -> Response {
    let Some(store) = &context.certificates else { return answers::ok(&json!([])) };
    answers::ok(&authorities(store))
}

/// GET /settings/clientCertAuth
pub(super) async fn clients(State(context): State<Arc<Context>>) -> Response {
    let clients = context.certificates.as_ref().map(|store| store.clients());
    let clients = serde_json::to_value(clients.unwrap_or_default());
    answers::ok(&clients.expect("rules are JSON"))
}

/// POST /settings/clientCertAuth
pub(super) async fn change_clients(State(context): State<Arc<Context>>, body: Bytes) -> Response {
    let clients: ClientCertificates = match serde_json::from_slice(&body) {
        Ok(clients) => clients,
        Err(error) => return answers::refused("_", &error.to_string()),
    };
    change(context, StatusCode::ACCEPTED, move |store| store.set_clients(clients)).await
}

/// POST /node/controller/reloadCertificate
pub(super) async fn reload(State(context): State<Arc<Context>>) -> Response {
    change(context, StatusCode::OK, read_again).await
}

/// POST /node/controller/loadTrustedCAs
pub(super) async fn load_authorities(State(context): State<Arc<Context>>) -> Response {
    let loaded = change(context.clone(), StatusCode::OK, read_again).await;
    match &context.certificates {
        Some(store) if loaded.status().is_success() => answers::ok(&authorities(store)),
        _ => loaded,
    }
}

/// Files are read on a thread that may wait.
async fn change(
    context: Arc<Context>,
    status: StatusCode,
    body: impl FnOnce(&CertificateStore) -> Result<(), CertificateError> + Send + 'static,
) -> Response {
    let Some(store) = context.certificates.clone() else { return without_tls() };
    match tokio::task::spawn_blocking(move || body(&store)).await {
        Ok(Ok(())) => (status, "").into_response(),
        Ok(Err(error)) => answers::refused("_", &error.to_string()),
        Err(_) => answers::text(StatusCode::INTERNAL_SERVER_ERROR, "The node is stopping.\r\n"),
    }
}

/// Reads the certificates again, and logs what is shown from now on.
fn read_again(store: &CertificateStore) -> Result<(), CertificateError> {
    store.reload()?;
    let fingerprint = store.chain().first().map(|(facts, _)| facts.fingerprint.clone());
    tracing::info!(fingerprint, "new TLS sessions show this certificate");
    if let Some(why) = store.warning() {
        tracing::warn!(
            fingerprint,
            why,
            "the certificate that clients are shown is to be replaced"
        );
    }
    Ok(())
}

fn authorities(store: &CertificateStore) -> Value {
    let mut authorities = store.client_authorities();
    for authority in store.node_authorities() {
        if !authorities.contains(&authority) {
            authorities.push(authority);
        }
    }
    let numbered = (0_u32..).zip(&authorities);
    let now = store.now();
    numbered.map(|(id, (facts, pem))| described(facts, pem, now, json!({"id": id}))).collect()
}

/// What is said of each certificate, and what is said of this one beside it.
fn described(facts: &CertificateFacts, pem: &str, now: WallTime, beside: Value) -> Value {
    // Only of what a server shows it matters what else it is for.
    let is_shown = !facts.is_authority;
    let warnings = facts.warning_at(now).filter(|_| is_shown || facts.is_for_servers);
    let warnings: Vec<Value> = warnings.iter().map(|why| json!({"message": why})).collect();
    let mut fields = json!({
        "subject": facts.subject,
        "issuer": facts.issuer,
        "notBefore": rfc3339(facts.not_before_s),
        "notAfter": rfc3339(facts.not_after_s),
        "sha256": facts.fingerprint,
        "pem": pem,
        "warnings": warnings,
    });
    if let (Some(fields), Value::Object(beside)) = (fields.as_object_mut(), beside) {
        fields.extend(beside);
    }
    fields
}

fn without_tls() -> Response {
    answers::refused("_", "This node does not speak TLS (--tls)")
}
