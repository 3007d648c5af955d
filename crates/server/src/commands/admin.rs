//! NOOP, VERSION, VERBOSITY, QUIT, FLUSH, EVICT_KEY, GET_VBUCKET.

use bucket::Refused;
use protocol::Status;

use super::documents::{bucket_and_key, bucket_of};
use super::refusals::refuse;
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};

/// NOOP.
pub(super) fn noop(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    request.reply(connection).done(turn);
    Done::Answered
}

/// VERSION.
pub(super) fn version(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    let version = turn.shared.options.version.as_bytes();
    let content = Content { payload: Payload::Bytes(version), ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}

/// VERBOSITY: accepted, as clients expect; the log's level is the operator's business.
pub(super) fn verbosity(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    request.reply(connection).done(turn);
    Done::Answered
}

/// QUIT.
pub(super) fn quit(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    if !request.is_quiet {
        request.reply(connection).done(turn);
    }
    Done::Close
}

/// FLUSH: empties the bucket, where the operator has enabled that.
pub(super) fn flush(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    let bucket = match bucket_of(connection, request, turn) {
        Ok(bucket) => bucket,
        Err(done) => return done,
    };
    let reply = request.reply(connection);
    if !matches!(request.frame.extras, [] | [0, 0, 0, 0]) {
        reply.fail(turn, Status::NotSupported, "the bucket can be emptied now, not later");
        return Done::Answered;
    }
    match bucket.flush_all() {
        Ok(()) if request.is_quiet => {}
        Ok(()) => reply.done(turn),
        Err(error) => {
            tracing::error!(%error, "the bucket could not be emptied");
            reply.fail(turn, Status::Etmpfail, "a file could not be removed; see the node's log");
        }
    }
    Done::Answered
}

/// EVICT_KEY.
pub(super) fn evict(
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let (bucket, key) = match bucket_and_key(connection, request, turn) {
        Ok(both) => both,
        Err(done) => return done,
    };
    match bucket.evict(turn.session, request.vbid(), key.as_key()) {
        Ok(()) => {
            request.reply(connection).done(turn);
            Done::Answered
        }
        Err(refused) => refuse(connection, request, refused, turn),
    }
}

/// GET_VBUCKET.
pub(super) fn get_vbucket(
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let bucket = match bucket_of(connection, request, turn) {
        Ok(bucket) => bucket,
        Err(done) => return done,
    };
    let mut state = None;
    bucket.with_vbucket(request.vbid(), |vbucket| state = Some(vbucket.state() as u32));
    let Some(state) = state else {
        return refuse(connection, request, Refused::NotMyVbucket, turn);
    };
    let state = state.to_be_bytes();
    let content = Content { payload: Payload::Bytes(&state), ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}
