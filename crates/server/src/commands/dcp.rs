//! Replication: opening a connection for it, and what its consumer says.

use std::sync::Arc;

use bucket::Refused;
use protocol::dcp::{Envelope, Message, OpenFlags};
use protocol::{Feature, Status};
use replication::{Answer, Opening, Producer};

use super::refusals::{UNKNOWN_COLLECTION, UNKNOWN_SCOPE, refuse, unknown};
use crate::buckets::BucketPart;
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};

/// DCP_OPEN.
pub(super) fn open(
    connection: &mut Connection,
    request: &Request<'_>,
    part: &Arc<BucketPart>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let open = match Message::parse(&request.frame) {
        Ok(Message::Open(open)) => open,
        Ok(_) => return Done::Close,
        Err(invalid) => {
            reply.fail(turn, invalid.status, invalid.context);
            return Done::Answered;
        }
    };
    let refused = if connection.producer.is_some() {
        Some((Status::Einval, "the connection was opened already"))
    } else if connection.is_anonymous {
        Some((Status::Eaccess, "replication is not for anonymous clients"))
    } else if connection.features.contains(Feature::UnorderedExecution) {
        Some((Status::NotSupported, "replication excludes unordered execution"))
    } else if !open.flags.contains(OpenFlags::PRODUCER) {
        Some((Status::NotSupported, "nodes connect to those that they receive from themselves"))
    } else {
        None
    };
    let name = std::str::from_utf8(open.name).map_err(|_| "a connection's name is text");
    let name = match (refused, name) {
        (Some((status, context)), _) => {
            reply.fail(turn, status, context);
            return Done::Answered;
        }
        (None, Err(context)) => {
            reply.fail(turn, Status::Einval, context);
            return Done::Answered;
        }
        (None, Ok(name)) => name.to_owned(),
    };
    let (mailboxes, worker, token) = (turn.shared.mailboxes.clone(), turn.worker, turn.token);
    connection.features = connection.features.with(Feature::Json);
    connection.producer = Some(Box::new(Producer::open(Opening {
        bucket: part.bucket.clone(),
        hub: part.hub.clone(),
        pool: turn.shared.pool.clone(),
        name,
        flags: open.flags,
        features: connection.features,
        now: turn.now.monotonic,
        wake: Box::new(move || mailboxes.wake(worker, token)),
    })));
    reply.done(turn);
    Done::Answered
}

/// Whatever a consumer says on a connection that is open.
pub(super) fn message(
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let envelope = Envelope {
        opaque: request.frame.header.opaque,
        vbid: request.vbid(),
        stream_id: request.infos.dcp_stream_id,
        has_collections: connection.features.contains(Feature::Collections),
    };
    let message = match Message::parse(&request.frame) {
        Ok(message) => message,
        Err(invalid) => {
            reply.fail(turn, invalid.status, invalid.context);
            return Done::Answered;
        }
    };
    let Some(producer) = &mut connection.producer else { return Done::Close };
    match producer.on_message(envelope, &message, turn.now.monotonic) {
        Answer::Done => reply.done(turn),
        Answer::Nothing => {}
        Answer::Value(value) => {
            reply.send(turn, Content { payload: Payload::Owned(value), ..Content::default() });
        }
        Answer::Rollback(seqno) => {
            let payload = Payload::Owned(seqno.0.to_be_bytes().to_vec());
            reply.send(turn, Content { status: Status::Rollback, payload, ..Content::default() });
        }
        Answer::Fail(Status::NotMyVbucket, _) => {
            return refuse(connection, request, Refused::NotMyVbucket, turn);
        }
        Answer::Fail(status, context) => reply.fail(turn, status, context),
        Answer::UnknownCollection => {
            unknown(connection, request, UNKNOWN_COLLECTION, turn);
        }
        Answer::UnknownScope => {
            unknown(connection, request, UNKNOWN_SCOPE, turn);
        }
        Answer::Close(why) => {
            let agent = &connection.agent;
            tracing::warn!(agent, "closing a connection of replication: {why}");
            return Done::Close;
        }
    }
    Done::Answered
}
