//! SUBDOC_GET, SUBDOC_EXISTS, SUBDOC_GET_COUNT, SUBDOC_MULTI_LOOKUP.

use bucket::{Attempted, CopyRole, Refused, Version};
use document::{Cas, Datatype};
use protocol::subdocument::put_lookup_result;
use protocol::{Feature, Status};
use subdocument::{
    DocumentFlags, Failure, Fragment, LookupRequest, LookupResults, PathFlags, Spec,
};
use vbucket::Visibility;

use super::request::{PathsRequest, fail, rights, status_of};
use crate::commands::documents::Document;
use crate::commands::refusals::refuse;
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};
use crate::statistics::count;

/// Bytes of all results of a request: each path may lead to all of a document.
const RESULTS_BYTES_MAX: usize = 40 << 20;

/// Looks at parts of a document.
pub(in crate::commands) fn look_up(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let paths = match PathsRequest::parse(request) {
        Ok(paths) => paths,
        Err(failure) => return fail(connection, request, failure, turn),
    };
    let head = paths.head(request);
    let privileges = connection.privileges_in(document.key.as_key().collection());
    let client = rights(connection.features, privileges);
    let lookup = match LookupRequest::new(head, &paths.specs, client) {
        Ok(lookup) => lookup,
        Err(failure) => return fail(connection, request, failure, turn),
    };
    let has = |flag| head.flags.contains(flag);
    let role = if has(DocumentFlags::REPLICA_READ) { CopyRole::Replica } else { CopyRole::Active };
    let sees_deleted = has(DocumentFlags::ACCESS_DELETED);
    let visibility = if sees_deleted { Visibility::Deleted } else { Visibility::Live };
    let Document { bucket, key } = document;
    let found = bucket.find_version(turn.session, request.vbid(), key.as_key(), role, visibility);
    match found {
        Ok(Attempted::Answered(version)) => {
            count(&turn.bucket.commands.cmd_subdoc_lookup);
            answer(connection, request, &paths, &lookup, &version, turn)
        }
        Ok(Attempted::Waits) => Done::Parked,
        Err(refused) => {
            if refused == Refused::NotFound {
                count(&turn.bucket.commands.cmd_subdoc_lookup);
            }
            refuse(connection, request, refused, turn)
        }
    }
}

fn answer(
    connection: &Connection,
    request: &Request<'_>,
    paths: &PathsRequest<'_>,
    lookup: &LookupRequest<'_>,
    version: &Version,
    turn: &mut Turn<'_>,
) -> Done {
    let value = version.value();
    let stored = version.stored(&value);
    let results = match lookup.look_up(Some(&stored), version.clock()) {
        Ok(results) => results,
        Err(failure) => return fail(connection, request, failure, turn),
    };
    let cas = version.cas();
    match paths.single() {
        Some(spec) => answer_single(connection, request, spec, results, cas, turn),
        None => answer_multi(connection, request, results, cas, turn),
    }
}

fn answer_single(
    connection: &Connection,
    request: &Request<'_>,
    spec: &Spec<'_>,
    mut results: LookupResults<'_, '_>,
    cas: Cas,
    turn: &mut Turn<'_>,
) -> Done {
    let fragment = match results.next().unwrap_or(Err(Failure::InvalidCombination)) {
        Ok(fragment) => fragment,
        Err(failure) => return fail(connection, request, failure, turn),
    };
    let is_deleted = results.is_deleted();
    let status = if is_deleted { Status::SubdocSuccessDeleted } else { Status::Success };
    let is_json = !spec.flags.contains(PathFlags::BINARY)
        && fragment != Fragment::Nothing
        && connection.features.contains(Feature::Json);
    let datatype = if is_json { Datatype::JSON } else { Datatype::RAW };
    let payload = Payload::Bytes(fragment.bytes());
    let content = Content { status, datatype, cas, payload, ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}

fn answer_multi(
    connection: &Connection,
    request: &Request<'_>,
    results: LookupResults<'_, '_>,
    cas: Cas,
    turn: &mut Turn<'_>,
) -> Done {
    let (is_deleted, reply) = (results.is_deleted(), request.reply(connection));
    let Some((all_found, body)) = collected(results) else {
        reply.fail(turn, Status::E2big, "the results take more than 40 MiB");
        return Done::Answered;
    };
    let status = match (all_found, is_deleted) {
        (true, false) => Status::Success,
        (true, true) => Status::SubdocSuccessDeleted,
        (false, false) => Status::SubdocMultiPathFailure,
        (false, true) => Status::SubdocMultiPathFailureDeleted,
    };
    let payload = Payload::Owned(body);
    reply.send(turn, Content { status, cas, payload, ..Content::default() });
    Done::Answered
}

/// The results of all paths in their form on the wire, and whether each has found something. `None`
/// when they are too large.
fn collected(results: LookupResults<'_, '_>) -> Option<(bool, Vec<u8>)> {
    let (mut all_found, mut body) = (true, Vec::new());
    for result in results {
        match &result {
            Ok(fragment) if body.len() + fragment.bytes().len() > RESULTS_BYTES_MAX => return None,
            Ok(fragment) => put_lookup_result(&mut body, Status::Success, fragment.bytes()),
            Err(failure) => {
                all_found = false;
                put_lookup_result(&mut body, status_of(*failure), &[]);
            }
        }
    }
    Some((all_found, body))
}
