//! Collections: every bucket has the default one.

use bucket::Bucket;
use protocol::Status;
use protocol::collections::{CollectionPath, DEFAULT_MANIFEST, DEFAULT_NAME, scope_of};
use protocol::request::collection_path;
use protocol::response::ErrorContext;

use super::documents::MANIFEST_UID;
use crate::connection::{Connection, Content, Done, Request, Turn};

/// COLLECTIONS_GET_MANIFEST.
pub(super) fn manifest(
    connection: &mut Connection,
    request: &Request<'_>,
    _bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    request.reply(connection).json(turn, Status::Success, DEFAULT_MANIFEST);
    Done::Answered
}

/// COLLECTIONS_GET_COLLECTION_ID.
pub(super) fn id(
    connection: &mut Connection,
    request: &Request<'_>,
    _bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(path) = collection_path(&request.frame).and_then(CollectionPath::parse) else {
        let reply = request.reply(connection);
        reply.fail(turn, Status::Einval, "the path is `scope.collection`, as key or as value");
        return Done::Answered;
    };
    let found = match (path.scope, path.collection) {
        (DEFAULT_NAME, DEFAULT_NAME) => Ok(()),
        (DEFAULT_NAME, _) => Err((Status::UnknownCollection, "there is no such collection")),
        _ => Err((Status::UnknownScope, "there is no such scope")),
    };
    answer(connection, request, found, turn)
}

/// COLLECTIONS_GET_SCOPE_ID.
pub(super) fn scope_id(
    connection: &mut Connection,
    request: &Request<'_>,
    _bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let found = match collection_path(&request.frame).and_then(scope_of) {
        Some(DEFAULT_NAME) => Ok(()),
        Some(_) => Err((Status::UnknownScope, "there is no such scope")),
        None => Err((Status::Einval, "the path is `scope` or `scope.collection`")),
    };
    answer(connection, request, found, turn)
}

/// Manifest uid and the id 0, or why there is none.
fn answer(
    connection: &Connection,
    request: &Request<'_>,
    found: Result<(), (Status, &str)>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    match found {
        Ok(()) => {
            let mut extras = [0; 12];
            extras[..8].copy_from_slice(&MANIFEST_UID.to_be_bytes());
            reply.send(turn, Content { extras: &extras, ..Content::default() });
        }
        Err((Status::Einval, context)) => reply.fail(turn, Status::Einval, context),
        Err((status, context)) => {
            let context = ErrorContext {
                context: Some(context),
                manifest_uid: Some(MANIFEST_UID),
                ..ErrorContext::default()
            };
            reply.fail_with(turn, status, context);
        }
    }
    Done::Answered
}
