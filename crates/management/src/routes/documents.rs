//! Documents, one by one, for people who look at them: programs use the data port.

use std::sync::Arc;

use auth::Privilege;
use axum::Extension;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use document::CollectionId;
use serde_json::{Value, json};

use super::form_fields::FormFields;
use super::named_bucket::{Fields, NamedBucket};
use crate::answers;
use crate::authentication::User;
use crate::bucket_view::BucketView;
use crate::shown_document::{
    DocumentError, DocumentId, KeyPage, KeyPosition, KeyQuery, NewDocument, ShownDocument,
};

/// Keys of a page, unless another number is said, and at most.
const KEYS_DEFAULT: usize = 50;
const KEYS_MAX: usize = 500;
/// Bytes of a value that are told. Larger ones are not for people.
const SHOWN_BYTES_MAX: usize = 256 * 1024;

/// The collection of a request's path, whose bucket is this one. A user whose roles are in another
/// one is answered as is one who asks for what there is not.
struct Named {
    bucket: Arc<dyn BucketView>,
    collection: CollectionId,
    /// The key in the path, if there is one.
    key: String,
}

/// The parts of a path, to be looked up.
type Parts = Path<Fields>;

fn named(
    bucket: Arc<dyn BucketView>,
    Path(mut path): Parts,
    user: &User,
    privilege: Privilege,
) -> Result<Named, Box<Response>> {
    let mut part = |name: &str| path.remove(name).unwrap_or_default();
    let (scope, collection, key) = (part("scope"), part("collection"), part("document"));
    let access = user.access.in_bucket(&bucket.map().name);
    if !access.in_collection(&scope, &collection).contains(privilege) {
        let place = format!("[{}:{scope}:{collection}]", bucket.map().name);
        let missing = privilege.permission().replace("[]", &place);
        return Err(Box::new(answers::forbidden(&missing)));
    }
    let manifest = bucket.manifest();
    let known = manifest.scope(&scope).and_then(|scope| {
        scope.collections.iter().find(|known| known.name == collection).map(|known| known.id)
    });
    let collection = known.ok_or_else(|| Box::new(answers::not_found()))?;
    Ok(Named { bucket, collection, key })
}

impl Named {
    /// Does something with the document on a thread of its own.
    async fn ask<T, F>(self, ask: F) -> Result<T, Response>
    where
        T: Send + 'static,
        F: FnOnce(&dyn BucketView, DocumentId<'_>) -> Result<T, DocumentError> + Send + 'static,
    {
        let Self { bucket, collection, key } = self;
        let work = move || ask(&*bucket, DocumentId { collection, name: &key });
        // The work is lost only when the runtime shuts down.
        let lost = || Err(DocumentError::Failed("The node is shutting down".to_owned()));
        let done = tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| lost());
        done.map_err(refusal)
    }
}

/// GET [collection]/docs: `prefix`, `limit`, and `vbucket` with `behind` from the answer before.
pub(super) async fn list(
    NamedBucket(bucket): NamedBucket,
    Extension(user): Extension<User>,
    path: Parts,
    Query(mut query): Query<Fields>,
) -> Response {
    let named = match named(bucket, path, &user, Privilege::RangeScan) {
        Ok(named) => named,
        Err(refused) => return *refused,
    };
    let number = |text: Option<String>| text.map(|text| text.parse::<u16>()).transpose();
    let (limit, vbid) = (number(query.remove("limit")), number(query.remove("vbucket")));
    let (Ok(limit), Ok(vbid)) = (limit, vbid) else {
        return answers::refused("_", "`limit` and `vbucket` are numbers");
    };
    let limit = limit.map_or(KEYS_DEFAULT, usize::from).min(KEYS_MAX);
    let query = KeyQuery {
        collection: named.collection,
        prefix: query.remove("prefix").unwrap_or_default(),
        from: KeyPosition {
            vbid: vbid.unwrap_or_default(),
            behind: query.remove("behind").unwrap_or_default(),
        },
        count_max: limit,
    };
    match named.ask(move |bucket, _| bucket.document_keys(&query)).await {
        Ok(page) => answers::ok(&page_json(page)),
        Err(refused) => refused,
    }
}

fn page_json(page: KeyPage) -> Value {
    let KeyPage { keys, next, unreadable } = page;
    let next = next.map(|KeyPosition { vbid, behind }| json!({"vbucket": vbid, "behind": behind}));
    json!({"keys": keys, "next": next, "unreadable": unreadable})
}

/// GET [collection]/docs/{document}
pub(super) async fn read(
    NamedBucket(bucket): NamedBucket,
    Extension(user): Extension<User>,
    path: Parts,
) -> Response {
    let named = match named(bucket, path, &user, Privilege::Read) {
        Ok(named) => named,
        Err(refused) => return *refused,
    };
    match named.ask(|bucket, id| bucket.read_document(id)).await {
        Ok(document) => answers::ok(&document_json(document)),
        Err(refused) => refused,
    }
}

/// A CAS is a text: it has more digits than numbers of JSON keep. A value that is no text, or is
/// long, is left out.
fn document_json(document: ShownDocument) -> Value {
    let ShownDocument { cas, flags, expiry_seconds, is_json, value } = document;
    let size = value.len();
    let is_shown = size <= SHOWN_BYTES_MAX;
    let value = Some(value).filter(|_| is_shown).and_then(|value| String::from_utf8(value).ok());
    json!({
        "cas": cas.to_string(),
        "flags": flags,
        "expiration": expiry_seconds,
        "isJson": is_json,
        "size": size,
        "value": value,
    })
}

/// POST [collection]/docs/{document}: `value`; `cas` of the version that it replaces, or
/// `new=true`; `flags`.
pub(super) async fn write(
    NamedBucket(bucket): NamedBucket,
    Extension(user): Extension<User>,
    path: Parts,
    FormFields(mut fields): FormFields,
) -> Response {
    let named = match named(bucket, path, &user, Privilege::Upsert) {
        Ok(named) => named,
        Err(refused) => return *refused,
    };
    let Some(value) = fields.remove("value") else {
        return answers::refused("value", "The value must be supplied");
    };
    let (cas, flags) = (number_in(&mut fields, "cas"), number_in(&mut fields, "flags"));
    let flags = flags.and_then(|flags| u32::try_from(flags).ok());
    let (Some(cas), Some(flags)) = (cas, flags) else {
        return answers::refused("_", "`cas` and `flags` are numbers");
    };
    let is_new = fields.remove("new").is_some_and(|is_new| is_new == "true");
    if let Some(unknown) = fields.keys().next() {
        return answers::refused(unknown, "Unexpected field");
    }
    let written = named.ask(move |bucket, id| {
        let document = NewDocument { cas, is_new, flags, value: value.as_bytes() };
        bucket.write_document(id, &document)
    });
    match written.await {
        Ok(cas) => answers::ok(&json!({"cas": cas.to_string()})),
        Err(refused) => refused,
    }
}

/// DELETE [collection]/docs/{document}: `cas` of the version that goes; any, where none is said.
pub(super) async fn delete(
    NamedBucket(bucket): NamedBucket,
    Extension(user): Extension<User>,
    path: Parts,
    Query(mut query): Query<Fields>,
) -> Response {
    let named = match named(bucket, path, &user, Privilege::Delete) {
        Ok(named) => named,
        Err(refused) => return *refused,
    };
    let Some(cas) = number_in(&mut query, "cas") else {
        return answers::refused("cas", "The value must be a number");
    };
    match named.ask(move |bucket, id| bucket.delete_document(id, cas)).await {
        Ok(()) => answers::ok(&json!({})),
        Err(refused) => refused,
    }
}

/// 0 where none is said; `None` if it is no number.
fn number_in(fields: &mut Fields, name: &str) -> Option<u64> {
    fields.remove(name).map_or(Some(0), |text| text.parse().ok())
}

fn refusal(error: DocumentError) -> Response {
    let (status, reason) = match error {
        DocumentError::NotFound => {
            let reason = "There is no document of that key; it may have expired";
            (StatusCode::NOT_FOUND, reason.to_owned())
        }
        DocumentError::Exists => {
            let reason = "There is a document of that key already; open it and change it";
            (StatusCode::CONFLICT, reason.to_owned())
        }
        DocumentError::OtherVersion => {
            let reason = "Somebody has changed the document since it was read; read it again";
            (StatusCode::CONFLICT, reason.to_owned())
        }
        DocumentError::NotHere(reason) => (StatusCode::MISDIRECTED_REQUEST, reason),
        DocumentError::Refused(reason) => (StatusCode::BAD_REQUEST, reason),
        DocumentError::Failed(reason) => (StatusCode::SERVICE_UNAVAILABLE, reason),
    };
    answers::json_text(status, json!({"_": reason}).to_string())
}
