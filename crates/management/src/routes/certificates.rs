//! The node's certificates, and what is asked of its clients.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tls::{CertificateError, CertificateFacts, CertificateStore, ClientCertificates};

use crate::answers;
use crate::context::Context;

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
    answers::ok(&json!([described(facts, &pem, beside)]))
}

/// GET /pools/default/trustedCAs: whose signatures on clients' certificates are believed.
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
    change(context, StatusCode::OK, |store| {
        store.reload()?;
        log_reload(store);
        Ok(())
    })
    .await
}

/// POST /node/controller/loadTrustedCAs
pub(super) async fn load_authorities(State(context): State<Arc<Context>>) -> Response {
    let loaded = change(context.clone(), StatusCode::OK, CertificateStore::reload).await;
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

fn log_reload(store: &CertificateStore) {
    let fingerprint = store.chain().first().map(|(facts, _)| facts.fingerprint.clone());
    tracing::info!(fingerprint, "new TLS sessions show this certificate");
}

fn authorities(store: &CertificateStore) -> Value {
    let authorities = store.client_authorities();
    let numbered = (0_u32..).zip(&authorities);
    numbered.map(|(id, (facts, pem))| described(facts, pem, json!({"id": id}))).collect()
}

/// What is said of each certificate, and what is said of this one beside it.
fn described(facts: &CertificateFacts, pem: &str, beside: Value) -> Value {
    let mut fields = json!({
        "subject": facts.subject,
        "issuer": facts.issuer,
        "notBefore": date(facts.not_before_s),
        "notAfter": date(facts.not_after_s),
        "sha256": facts.fingerprint,
        "pem": pem,
        "warnings": [],
    });
    if let (Some(fields), Value::Object(beside)) = (fields.as_object_mut(), beside) {
        fields.extend(beside);
    }
    fields
}

/// As RFC 3339 has it, of seconds since 1970. Source: H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", civil_from_days.
fn date(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z")
}

fn without_tls() -> Response {
    answers::refused("_", "This node does not speak TLS (--tls)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_told_as_a_date() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_700_000_000, "2023-11-14T22:13:20.000Z"),
            (-1, "1969-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }
}
