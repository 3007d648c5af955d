//! Scopes and collections.

use std::sync::Arc;

use auth::Privilege;
use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use document::{
    Manifest, ManifestCollection, ManifestEdit, ManifestError, ManifestScope, WantedManifest,
};
use serde_json::{Value, json};

use super::form_fields::FormFields;
use super::named_bucket::{Fields, NamedBucket};
use super::wanted_manifest;
use crate::answers;
use crate::authentication::User;
use crate::bucket_view::{BucketView, ManifestEditError};
use crate::context::Context;
use crate::stopping::until_stopped;

/// The parts of a path.
type Parts = Path<Fields>;

/// A change that a thread of its own makes.
enum OwnedEdit {
    CreateScope { scope: String },
    DropScope { scope: String },
    CreateCollection { scope: String, collection: String, properties: Properties },
    ChangeCollection { scope: String, collection: String, properties: Properties },
    DropCollection { scope: String, collection: String },
    Replace { wanted: WantedManifest },
}

/// What a form says of a collection.
#[derive(Default)]
struct Properties {
    /// `None` if nothing is said.
    max_ttl: Option<Option<u32>>,
    history: Option<bool>,
}

/// GET /pools/default/buckets/{bucket}/scopes
pub(super) async fn manifest(
    Extension(user): Extension<User>,
    NamedBucket(bucket): NamedBucket,
) -> Response {
    answers::ok(&manifest_json(&seen_manifest(&*bucket, &user)))
}

/// GET /settee/buckets/{bucket}/collections: how many documents each has on this node.
pub(super) async fn items(
    Extension(user): Extension<User>,
    NamedBucket(bucket): NamedBucket,
) -> Response {
    let (manifest, items) = (seen_manifest(&*bucket, &user), bucket.collection_items());
    let told = manifest.collections().map(|(scope, collection)| {
        let count = items.get(&collection.id).copied().unwrap_or_default();
        json!({"scope": scope.name, "collection": collection.name, "items": count})
    });
    answers::ok(&told.collect())
}

/// The scopes and collections that a user may know of.
fn seen_manifest(bucket: &dyn BucketView, user: &User) -> Manifest {
    let access = user.access.in_bucket(&bucket.map().name);
    let mut manifest = Manifest::clone(&bucket.manifest());
    manifest.scopes.retain_mut(|scope| {
        let name = &scope.name;
        scope.collections.retain(|collection| {
            access.in_collection(name, &collection.name).contains(Privilege::CollectionRead)
        });
        access.within_scope(name).contains(Privilege::CollectionRead)
    });
    manifest
}

/// POST /pools/default/buckets/{bucket}/scopes
pub(super) async fn create_scope(
    NamedBucket(bucket): NamedBucket,
    FormFields(mut fields): FormFields,
) -> Response {
    match fields.remove("name") {
        Some(scope) if fields.is_empty() => change(bucket, OwnedEdit::CreateScope { scope }).await,
        Some(_) => answers::refused("_", "Unexpected field"),
        None => answers::refused("name", "The value must be supplied"),
    }
}

/// DELETE /pools/default/buckets/{bucket}/scopes/{scope}
pub(super) async fn drop_scope(NamedBucket(bucket): NamedBucket, path: Parts) -> Response {
    let (scope, _) = named(path);
    change(bucket, OwnedEdit::DropScope { scope }).await
}

/// POST /pools/default/buckets/{bucket}/scopes/{scope}/collections
pub(super) async fn create_collection(
    NamedBucket(bucket): NamedBucket,
    path: Parts,
    FormFields(mut fields): FormFields,
) -> Response {
    let (scope, _) = named(path);
    let Some(collection) = fields.remove("name") else {
        return answers::refused("name", "The value must be supplied");
    };
    match Properties::of(fields) {
        Ok(properties) => {
            change(bucket, OwnedEdit::CreateCollection { scope, collection, properties }).await
        }
        Err((field, why)) => answers::refused(&field, why),
    }
}

/// PATCH /pools/default/buckets/{bucket}/scopes/{scope}/collections/{collection}
pub(super) async fn change_collection(
    NamedBucket(bucket): NamedBucket,
    path: Parts,
    FormFields(fields): FormFields,
) -> Response {
    let (scope, collection) = named(path);
    match Properties::of(fields) {
        Ok(properties) => {
            change(bucket, OwnedEdit::ChangeCollection { scope, collection, properties }).await
        }
        Err((field, why)) => answers::refused(&field, why),
    }
}

/// DELETE /pools/default/buckets/{bucket}/scopes/{scope}/collections/{collection}
pub(super) async fn drop_collection(NamedBucket(bucket): NamedBucket, path: Parts) -> Response {
    let (scope, collection) = named(path);
    change(bucket, OwnedEdit::DropCollection { scope, collection }).await
}

/// POST /pools/default/buckets/{bucket}/scopes/@ensureManifest/{uid}: answered once the node has
/// that manifest, of a hexadecimal uid, or a newer one.
pub(super) async fn ensure_manifest(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
    Path(parts): Parts,
) -> Response {
    let digits = parts.get("uid").map_or("", String::as_str);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some(uid) = u64::from_str_radix(digits, 16).ok().filter(|_| is_plain) else {
        return answers::refused("uid", "The value must be a hexadecimal manifest uid");
    };
    let mut changed = context.maps_changed.clone();
    let comes = async {
        while bucket.manifest().uid < uid {
            if changed.changed().await.is_err() {
                return false;
            }
        }
        true
    };
    let (wait_max, stopped) = (context.limits.manifest_wait_max, context.stopped.clone());
    let has_come = tokio::select! {
        has_come = tokio::time::timeout(wait_max, comes) => has_come.unwrap_or(false),
        () = until_stopped(stopped) => false,
    };
    if has_come {
        return answers::ok(&json!({}));
    }
    let known = bucket.manifest().uid;
    let text = format!("Timed out waiting for manifest {uid:x}; this node has {known:x}");
    let body = json!({"errors": {"_": text}});
    answers::json_text(StatusCode::GATEWAY_TIMEOUT, body.to_string())
}

/// PUT /pools/default/buckets/{bucket}/scopes: all of them at once, as JSON of the form in which
/// they are shown.
pub(super) async fn replace(
    NamedBucket(bucket): NamedBucket,
    Query(query): Query<Fields>,
    body: Bytes,
) -> Response {
    match wanted_manifest::read(&query, &body) {
        Ok(wanted) => change(bucket, OwnedEdit::Replace { wanted }).await,
        Err((field, why)) => answers::refused(&field, &why),
    }
}

/// The scope and the collection of a path.
fn named(Path(mut parts): Parts) -> (String, String) {
    let mut part = |name| parts.remove(name).unwrap_or_default();
    (part("scope"), part("collection"))
}

impl Properties {
    /// Reads them; what is wrong otherwise, by the name of the field.
    fn of(fields: Fields) -> Result<Self, (String, &'static str)> {
        let mut properties = Self::default();
        for (name, value) in fields {
            match (name.as_str(), value.as_str()) {
                ("maxTTL", seconds) => {
                    let seconds = seconds.parse().ok().and_then(max_ttl_of);
                    if seconds.is_none() {
                        return Err((name, "The value must be an integer"));
                    }
                    properties.max_ttl = seconds;
                }
                ("history", "true") => properties.history = Some(true),
                ("history", "false") => properties.history = Some(false),
                ("history", _) => return Err((name, "The value must be one of: true, false")),
                _ => return Err((name, "Unsupported key")),
            }
        }
        Ok(properties)
    }
}

impl OwnedEdit {
    fn edit(&self) -> ManifestEdit<'_> {
        match self {
            Self::CreateScope { scope } => ManifestEdit::CreateScope { scope },
            Self::DropScope { scope } => ManifestEdit::DropScope { scope },
            Self::CreateCollection { scope, collection, properties } => {
                let max_ttl = properties.max_ttl.flatten();
                let history = properties.history.unwrap_or(false);
                ManifestEdit::CreateCollection { scope, collection, max_ttl, history }
            }
            Self::ChangeCollection { scope, collection, properties } => {
                let Properties { max_ttl, history } = *properties;
                ManifestEdit::ChangeCollection { scope, collection, max_ttl, history }
            }
            Self::DropCollection { scope, collection } => {
                ManifestEdit::DropCollection { scope, collection }
            }
            Self::Replace { wanted } => ManifestEdit::Replace { wanted },
        }
    }
}

/// What clients say of the longest life: -1 for none, whatever the bucket has, and 0 for the one
/// that the bucket has. `None` for what they cannot mean.
pub(super) fn max_ttl_of(said: i64) -> Option<Option<u32>> {
    match said {
        -1 => Some(Some(0)),
        0 => Some(None),
        seconds => Some(Some(u32::try_from(seconds).ok()?)),
    }
}

async fn change(bucket: Arc<dyn BucketView>, change: OwnedEdit) -> Response {
    // The change is lost only when the runtime shuts down.
    let lost = || Err(ManifestEditError::Failed("The node is shutting down".to_owned()));
    let changed = tokio::task::spawn_blocking(move || bucket.edit_manifest(change.edit())).await;
    match changed.unwrap_or_else(|_| lost()) {
        Ok(manifest) => answers::ok(&json!({"uid": format!("{:x}", manifest.uid)})),
        Err(ManifestEditError::Refused(error)) => match error {
            ManifestError::NotFound(text) => {
                let body = json!({"errors": {"_": text}});
                answers::json_text(StatusCode::NOT_FOUND, body.to_string())
            }
            ManifestError::Exists(text) => answers::refused("name", &text),
            ManifestError::Invalid(field, text) => answers::refused(field, &text),
            ManifestError::NotNext(text) => answers::refused("_", &text),
        },
        Err(ManifestEditError::Failed(text)) => {
            let body = json!({"errors": {"_": text}});
            answers::json_text(StatusCode::SERVICE_UNAVAILABLE, body.to_string())
        }
    }
}

/// What is not said of a collection is 0, as clients read it, and -1 says that it has no limit.
fn manifest_json(manifest: &Manifest) -> Value {
    let collection = |collection: &ManifestCollection| {
        let max_ttl = match collection.max_ttl {
            None => 0,
            Some(0) => -1,
            Some(seconds) => i64::from(seconds),
        };
        json!({
            "name": collection.name,
            "uid": format!("{:x}", collection.id.0),
            "maxTTL": max_ttl,
            "history": collection.history,
        })
    };
    let scope = |scope: &ManifestScope| {
        let collections: Vec<Value> = scope.collections.iter().map(collection).collect();
        json!({
            "name": scope.name,
            "uid": format!("{:x}", scope.id.0),
            "collections": collections,
        })
    };
    let scopes: Vec<Value> = manifest.scopes.iter().map(scope).collect();
    json!({"uid": format!("{:x}", manifest.uid), "scopes": scopes})
}
