//! Replication: opening a connection for it, and what its consumer says.

use platform::redaction::UserData;
use std::sync::Arc;

use auth::{Privilege, PrivilegeSet};
use bucket::Refused;
use protocol::dcp::{Envelope, Message, OpenFlags, StreamFlags, StreamSelection};
use protocol::{Feature, Status};
use replication::{Answer, Opening, Producer, RelayOpening};

use super::refusals::{UNKNOWN_COLLECTION, UNKNOWN_SCOPE, refuse, unknown};
use crate::buckets::BucketPart;
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};
use crate::privileges::{Need, NeededIn};

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
    let refused = if connection.is_of_replication() {
        Some((Status::Einval, "the connection was opened already"))
    } else if !connection.privileges().contains(opened_with(open.flags)) {
        Some((Status::Eaccess, "the user may not open a connection of replication of this kind"))
    } else if connection.features.contains(Feature::UnorderedExecution) {
        Some((Status::NotSupported, "replication excludes unordered execution"))
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
    let node = match open.consumer_name() {
        Ok(node) => node,
        Err(invalid) => {
            reply.fail(turn, invalid.status, invalid.context);
            return Done::Answered;
        }
    };
    let (mailboxes, worker, token) = (turn.shared.mailboxes.clone(), turn.worker, turn.token);
    connection.features = connection.features.with(Feature::Json);
    if !open.flags.contains(OpenFlags::PRODUCER) {
        // What the connection asks for comes behind the answer.
        reply.done(turn);
        let opening = RelayOpening {
            bucket: part.bucket.clone(),
            hub: part.hub.clone(),
            pool: turn.shared.pool.clone(),
            name,
            node,
            features: connection.features,
            now: turn.now,
            wake: Box::new(move || mailboxes.wake(worker, token)),
        };
        connection.open_relay(opening, turn);
        return Done::Answered;
    }
    let opened = Producer::open(Opening {
        bucket: part.bucket.clone(),
        hub: part.hub.clone(),
        pool: turn.shared.pool.clone(),
        name,
        may_be_nodes: connection.privileges().contains(Privilege::NodeSupervisor),
        flags: open.flags,
        features: connection.features,
        now: turn.now.monotonic,
        wake: Box::new(move || mailboxes.wake(worker, token)),
    });
    let Some(producer) = opened else {
        reply.fail(turn, Status::Eaccess, "an administrator's connection has this name");
        return Done::Answered;
    };
    connection.producer = Some(Box::new(producer));
    reply.done(turn);
    Done::Answered
}

/// The privilege that a connection of replication needs.
fn opened_with(flags: OpenFlags) -> Privilege {
    if flags.contains(OpenFlags::PRODUCER) {
        Privilege::DcpProducer
    } else {
        Privilege::DcpConsumer
    }
}

/// Whether the user may say so; answered when it may not. A reader of streams is no node: what it
/// says makes no durable write count as held, and has no vBucket handed over.
fn may_say(
    connection: &mut Connection,
    request: &Request<'_>,
    message: &Message<'_>,
    turn: &mut Turn<'_>,
) -> bool {
    let is_of_nodes = match message {
        Message::Control { key, .. } => *key == b"consumer_name",
        Message::StreamRequest(stream) => stream.flags.contains(StreamFlags::TAKEOVER),
        _ => false,
    };
    if is_of_nodes && !connection.privileges().contains(Privilege::NodeSupervisor) {
        refuse_without(Privilege::NodeSupervisor, connection, request, turn);
        return false;
    }
    match message {
        Message::StreamRequest(stream) => may_stream(connection, request, stream.value, turn),
        _ => true,
    }
}

/// Answers that the user has not the privilege in the bucket.
fn refuse_without(
    privilege: Privilege,
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) {
    let all = PrivilegeSet::of(&[privilege]);
    let need = Need { place: NeededIn::Bucket, all, one: PrivilegeSet::NONE };
    connection.refuse_privilege(&need, request, turn);
}

/// Whether the user may receive all that a stream selects; answered when it may not.
fn may_stream(
    connection: &mut Connection,
    request: &Request<'_>,
    selection: &[u8],
    turn: &mut Turn<'_>,
) -> bool {
    if connection.privileges().contains(Privilege::DcpStream) {
        return true;
    }
    // The producer says what is wrong with a malformed one.
    let Ok(selection) = StreamSelection::parse(selection) else { return true };
    if let Some(collections) = &selection.collections {
        return collections
            .iter()
            .all(|id| connection.has_in(*id, Privilege::DcpStream, request, turn));
    }
    let part = connection.bucket.clone();
    if let (Some(scope), Some(part)) = (selection.scope, part) {
        let manifest = part.bucket.manifest();
        let scope = manifest.scopes.iter().find(|it| it.id.0 == scope);
        let seen = scope.filter(|scope| connection.sight().sees_scope(&scope.name));
        // A scope in which nothing is allowed looks like one that is not there.
        let Some(scope) = seen else {
            unknown(connection, request, UNKNOWN_SCOPE, turn);
            return false;
        };
        if connection.privileges_in_scope(&scope.name).contains(Privilege::DcpStream) {
            return true;
        }
    }
    refuse_without(Privilege::DcpStream, connection, request, turn);
    false
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
    if !may_say(connection, request, &message, turn) {
        return Done::Answered;
    }
    let Some(producer) = &mut connection.producer else { return Done::Close };
    let answer = producer.on_message(envelope, &message, turn.now.monotonic);
    answered(connection, request, answer, turn)
}

/// Whatever comes on a connection that a manager has opened for this node to receive on.
pub(super) fn relayed(
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    match Message::parse(&request.frame) {
        Ok(message) => {
            let answer = connection.on_relayed(&request.frame, &message, turn);
            answered(connection, request, answer, turn)
        }
        Err(invalid) => {
            connection.lose_relayed(&request.frame, turn);
            reply.fail(turn, invalid.status, invalid.context);
            Done::Answered
        }
    }
}

/// Gives an answer of the connection's.
fn answered(
    connection: &mut Connection,
    request: &Request<'_>,
    answer: Answer,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    match answer {
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
            let agent = UserData(&connection.agent);
            tracing::warn!(%agent, "closing a connection of replication: {why}");
            return Done::Close;
        }
    }
    Done::Answered
}
