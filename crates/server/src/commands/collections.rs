//! Collections: the bucket's manifest, and ids by name.

use bucket::{Bucket, ManifestChangeError, manifest_json};
use executor::TaskKind;
use protocol::Status;
use protocol::collections::{CollectionPath, scope_of};
use protocol::request::collection_path;

use super::refusals::{UNKNOWN_COLLECTION, UNKNOWN_SCOPE, unknown};
use crate::completed::Completed;
use crate::connection::{Connection, Content, Done, Request, Turn};

/// COLLECTIONS_GET_MANIFEST.
pub(super) fn manifest(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let json = manifest_json::encode(&connection.sight().seen_of(&bucket.manifest()));
    request.reply(connection).json(turn, Status::Success, &json);
    Done::Answered
}

/// COLLECTIONS_SET_MANIFEST. Answered when the manifest is on disk and the vBuckets follow it.
pub(super) fn set_manifest(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let manifest = match manifest_json::decode(request.frame.value) {
        Ok(manifest) => manifest,
        Err(what) => {
            reply.fail(turn, Status::Einval, &what);
            return Done::Answered;
        }
    };
    let (bucket, waiter) = (bucket.clone(), turn.session.waiter);
    let mailboxes = turn.shared.mailboxes.clone();
    let mut manifest = Some(manifest);
    let added = turn.shared.pool.add(&turn.shared.owner, TaskKind::AuxIo, move || {
        let Some(manifest) = manifest.take() else { return };
        let result = bucket.set_manifest(manifest).map_err(|error| failure(&error));
        mailboxes.complete_with(waiter, Completed::ManifestSet(result));
    });
    match added {
        Ok(_) => Done::Parked,
        Err(_) => {
            reply.fail(turn, Status::Etmpfail, "the node is stopping");
            Done::Answered
        }
    }
}

fn failure(error: &ManifestChangeError) -> (Status, String) {
    match error {
        ManifestChangeError::Refused(_) => {
            (Status::CannotApplyCollectionsManifest, error.to_string())
        }
        ManifestChangeError::Loading => {
            (Status::Etmpfail, "the bucket is being loaded; try again".to_owned())
        }
        ManifestChangeError::Failed(_) => {
            tracing::error!(%error, "the manifest could not be written");
            (Status::Etmpfail, "the manifest could not be written; see the node's log".to_owned())
        }
    }
}

/// The bucket has another manifest, or not.
pub(super) fn manifest_set(
    connection: &Connection,
    request: &Request<'_>,
    result: &Result<(), (Status, String)>,
    turn: &mut Turn<'_>,
) {
    let reply = request.reply(connection);
    match result {
        Ok(()) => reply.done(turn),
        Err((status, context)) => reply.fail(turn, *status, context),
    }
}

/// COLLECTIONS_GET_COLLECTION_ID.
pub(super) fn id(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(path) = collection_path(&request.frame).and_then(CollectionPath::parse) else {
        let reply = request.reply(connection);
        reply.fail(turn, Status::Einval, "the path is `scope.collection`, as key or as value");
        return Done::Answered;
    };
    let (manifest, sight) = (bucket.manifest(), connection.sight());
    let scope = manifest.scope(path.scope).filter(|scope| sight.sees_scope(&scope.name));
    let found = scope.ok_or(UNKNOWN_SCOPE).and_then(|scope| {
        let mut collections = scope.collections.iter();
        let found = collections.find(|collection| collection.name == path.collection);
        let seen = found.filter(|collection| sight.sees(&scope.name, &collection.name));
        seen.map(|collection| collection.id.0).ok_or(UNKNOWN_COLLECTION)
    });
    match found {
        Ok(id) => answer(connection, request, manifest.uid, id, turn),
        Err(missing) => unknown(connection, request, missing, turn),
    }
    Done::Answered
}

/// COLLECTIONS_GET_SCOPE_ID.
pub(super) fn scope_id(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(name) = collection_path(&request.frame).and_then(scope_of) else {
        let reply = request.reply(connection);
        reply.fail(turn, Status::Einval, "the path is `scope` or `scope.collection`");
        return Done::Answered;
    };
    let manifest = bucket.manifest();
    let sight = connection.sight();
    match manifest.scope(name).filter(|scope| sight.sees_scope(&scope.name)) {
        Some(scope) => answer(connection, request, manifest.uid, scope.id.0, turn),
        None => unknown(connection, request, UNKNOWN_SCOPE, turn),
    }
    Done::Answered
}

/// The uid of the manifest, and the id.
fn answer(connection: &Connection, request: &Request<'_>, uid: u64, id: u32, turn: &mut Turn<'_>) {
    let mut extras = [0; 12];
    extras[..8].copy_from_slice(&uid.to_be_bytes());
    extras[8..].copy_from_slice(&id.to_be_bytes());
    let content = Content { extras: &extras, ..Content::default() };
    request.reply(connection).send(turn, content);
}
