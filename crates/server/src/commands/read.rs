//! GET and its kin.

use bucket::{Attempted, Refused, body_of};
use document::{Cas, Datatype};
use protocol::request::{get_meta_wants_datatype, lock_seconds};
use protocol::{Feature, Opcode, Status};
use vbucket::Found;

use super::documents::{Document, accepts_compression};
use super::refusals::refuse;
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};
use crate::statistics::count;

/// GET, GETK.
pub(super) fn get(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    match bucket.get(turn.session, request.vbid(), key.as_key()) {
        Ok(Attempted::Answered(found)) => {
            count(&turn.bucket.commands.cmd_get);
            count(&turn.bucket.commands.get_hits);
            answer_with(connection, request, found, turn);
            Done::Answered
        }
        Ok(Attempted::Waits) => Done::Parked,
        Err(Refused::NotFound) => {
            count(&turn.bucket.commands.cmd_get);
            count(&turn.bucket.commands.get_misses);
            answer_miss(connection, request, turn)
        }
        Err(refused) => refuse(connection, request, refused, turn),
    }
}

/// Answers that there is no such document, unless the request is quiet about that.
pub(super) fn answer_miss(
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    if request.is_quiet {
        return Done::Answered;
    }
    refuse(connection, request, Refused::NotFound, turn)
}

/// Answers with a document.
pub(super) fn answer_with(
    connection: &Connection,
    request: &Request<'_>,
    found: Found,
    turn: &mut Turn<'_>,
) {
    let Found { item, cas } = found;
    let key = if request.opcode == Opcode::Getk { request.frame.key } else { &[] };
    let flags = item.flags();
    let (body, datatype) = body_of(&item, accepts_compression(connection));
    let datatype = visible_datatype(connection, datatype);
    let payload = Payload::of_body(&item, body);
    let content = Content { datatype, cas, extras: &flags, key, payload, ..Content::default() };
    request.reply(connection).send(turn, content);
}

/// Bits that the client did not negotiate are not shown to it.
fn visible_datatype(connection: &Connection, datatype: Datatype) -> Datatype {
    if connection.features.contains(Feature::Json) {
        datatype
    } else {
        datatype.without(Datatype::JSON)
    }
}

/// GET_META: whether a document exists, and everything but its value.
pub(super) fn get_meta(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(wants_datatype) = get_meta_wants_datatype(request.frame.extras) else {
        let reply = request.reply(connection);
        reply.fail(turn, Status::Einval, "the version of the metadata is 0, 1 or 2");
        return Done::Answered;
    };
    let Document { bucket, key } = document;
    let Found { item, cas } = match bucket.get_metadata(turn.session, request.vbid(), key.as_key())
    {
        Ok(Attempted::Answered(found)) => found,
        Ok(Attempted::Waits) => return Done::Parked,
        Err(Refused::NotFound) => return answer_miss(connection, request, turn),
        Err(refused) => return refuse(connection, request, refused, turn),
    };
    count(&turn.bucket.commands.ep_num_ops_get_meta);
    let now_seconds = turn.shared.clock.wall_time().seconds();
    let is_gone = item.is_deleted() || document::expiry::is_past(item.expiry(), now_seconds);
    let mut extras = Vec::with_capacity(21);
    extras.extend_from_slice(&u32::from(is_gone).to_be_bytes());
    extras.extend_from_slice(&item.flags());
    extras.extend_from_slice(&item.expiry().to_be_bytes());
    extras.extend_from_slice(&item.revision().0.to_be_bytes());
    if wants_datatype {
        extras.push(item.datatype().bits());
    }
    request.reply(connection).send(turn, Content { cas, extras: &extras, ..Content::default() });
    Done::Answered
}

/// GET_REPLICA: the document as a replica of its vBucket has it.
pub(super) fn get_replica(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    match bucket.get_replica(turn.session, request.vbid(), key.as_key()) {
        Ok(Attempted::Answered(found)) => {
            answer_with(connection, request, found, turn);
            Done::Answered
        }
        Ok(Attempted::Waits) => Done::Parked,
        Err(refused) => refuse(connection, request, refused, turn),
    }
}

/// GET_LOCKED.
pub(super) fn get_locked(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    let seconds = lock_seconds(request.frame.extras).unwrap_or(0);
    match bucket.lock(turn.session, request.vbid(), key.as_key(), seconds) {
        Ok(Attempted::Answered(found)) => {
            count(&turn.bucket.commands.cmd_lock);
            answer_with(connection, request, found, turn);
            Done::Answered
        }
        Ok(Attempted::Waits) => Done::Parked,
        Err(refused) => refuse(connection, request, refused, turn),
    }
}

/// UNLOCK_KEY.
pub(super) fn unlock(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    let cas: Cas = request.cas();
    match bucket.unlock(turn.session, request.vbid(), key.as_key(), cas) {
        Ok(Attempted::Answered(())) => {
            request.reply(connection).done(turn);
            Done::Answered
        }
        Ok(Attempted::Waits) => Done::Parked,
        Err(refused) => refuse(connection, request, refused, turn),
    }
}
