//! SUBDOC_DICT_ADD and its kin, SUBDOC_MULTI_MUTATION.

use bucket::{Attempted, PathMutation, PathsChanged, PathsRefused};
use document::Datatype;
use protocol::subdocument::{mutation_failure, put_mutation_result};
use protocol::{Feature, Status};
use subdocument::{MutationFailure, MutationRequest, RequestForm};
use vbucket::{Mutation, Written};

use super::request::{PathsRequest, fail, rights, status_of};
use crate::commands::documents::{Document, absolute_expiry};
use crate::commands::refusals::refuse;
use crate::commands::store::condition;
use crate::connection::{
    Connection, Content, Done, KnownAnswer, PathsAnswer, Payload, Reply, Request, Turn,
};
use crate::statistics::count;

/// Changes parts of a document.
pub(in crate::commands) fn change(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let paths = match PathsRequest::parse(request) {
        Ok(paths) => paths,
        Err(failure) => return fail(connection, request, failure, turn),
    };
    let privileges = connection.privileges_in(document.key.as_key().collection());
    let (head, client) = (paths.head(request), rights(connection.features, privileges));
    let mutation = match MutationRequest::new(head, &paths.specs, client) {
        Ok(mutation) => mutation,
        Err(failure) => return fail(connection, request, failure, turn),
    };
    let requested = paths.document.expiry.unwrap_or(0);
    let expiry = match absolute_expiry(connection, request, document, requested, turn) {
        Ok(expiry) => expiry,
        Err(done) => return done,
    };
    let Document { bucket, key } = document;
    let change = PathMutation {
        vbid: request.vbid(),
        key: key.as_key(),
        request: &mutation,
        flags: paths.document.flags,
        expiry,
        value_bytes: request.frame.value.len(),
        condition: condition(request, bucket, turn),
    };
    match bucket.change_paths(turn.session, change) {
        Ok(Attempted::Answered(changed)) => {
            count(&turn.bucket.commands.cmd_subdoc_mutation);
            if request.frame.header.cas != 0 {
                count(&turn.bucket.commands.cas_hits);
            }
            let answer = answer_to(connection, paths.form, &changed);
            match changed.written {
                Written::Done(mutation) => {
                    answer_changed(request.reply(connection), turn, mutation, &answer);
                    Done::Answered
                }
                Written::Begun => Done::Begun(KnownAnswer::Paths(Box::new(answer))),
            }
        }
        Ok(Attempted::Waits) => Done::Parked,
        Err(PathsRefused::Document(refused)) => refuse(connection, request, refused, turn),
        Err(PathsRefused::Paths(failure)) => {
            count(&turn.bucket.commands.cmd_subdoc_mutation);
            answer_failed(connection, request, paths.form, failure, turn)
        }
    }
}

/// Answers a change that has its place in history.
pub(in crate::commands) fn answer_changed(
    reply: Reply,
    turn: &mut Turn<'_>,
    mutation: Mutation,
    answer: &PathsAnswer,
) {
    let PathsAnswer { status, datatype, value } = answer;
    let (status, datatype, payload) = (*status, *datatype, Payload::Bytes(value));
    let content = Content { status, datatype, payload, ..Content::default() };
    reply.mutated_with(turn, mutation, content);
}

/// The answer to a change: only counters have results.
fn answer_to(connection: &Connection, form: RequestForm, changed: &PathsChanged) -> PathsAnswer {
    let is_about_deleted = changed.is_about_deleted;
    let status = if is_about_deleted { Status::SubdocSuccessDeleted } else { Status::Success };
    let mut value = Vec::new();
    for (index, number) in &changed.numbers {
        let number = number.to_string();
        match form {
            RequestForm::Single => value.extend_from_slice(number.as_bytes()),
            RequestForm::Multi => put_mutation_result(&mut value, *index, number.as_bytes()),
        }
    }
    let is_json = form == RequestForm::Single
        && !value.is_empty()
        && connection.features.contains(Feature::Json);
    let datatype = if is_json { Datatype::JSON } else { Datatype::RAW };
    PathsAnswer { status, datatype, value }
}

fn answer_failed(
    connection: &Connection,
    request: &Request<'_>,
    form: RequestForm,
    failure: MutationFailure,
    turn: &mut Turn<'_>,
) -> Done {
    let MutationFailure { index, failure } = failure;
    let Some(index) = index.filter(|_| form == RequestForm::Multi) else {
        return fail(connection, request, failure, turn);
    };
    let body = mutation_failure(index, status_of(failure));
    let (status, payload) = (Status::SubdocMultiPathFailure, Payload::Bytes(&body));
    request.reply(connection).send(turn, Content { status, payload, ..Content::default() });
    Done::Answered
}
