//! SET, ADD, REPLACE, APPEND, PREPEND, DELETE.

use std::time::Duration;

use bucket::{Addition, Attempted, Bucket, Incoming, Placement, Refused, Write};
use document::{Cas, Datatype, ItemBuilder, ItemMeta};
use protocol::request::StoreExtras;
use protocol::{Opcode, Status};
use vbucket::{
    Ambiguity, Mutation, StoreMode, SyncWriteEnd, SyncWriteRequest, WriteCondition, Written,
};

use super::documents::{Document, absolute_expiry, count_attempt, on_document};
use super::paths::answer_changed;
use super::refusals::{by_manifest, refuse};
use crate::connection::{Connection, Done, KnownAnswer, ParkedAnswer, Request, Turn};
use crate::statistics::count;

/// SET, ADD, REPLACE.
pub(super) fn store(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    let Some(extras) = StoreExtras::parse(request.frame.extras) else {
        request.reply(connection).fail(turn, Status::Einval, "the extras have the wrong size");
        return Done::Answered;
    };
    let expiry = match absolute_expiry(connection, request, document, extras.expiry, turn) {
        Ok(expiry) => expiry,
        Err(done) => return done,
    };
    let meta = ItemMeta { flags: extras.flags, expiry, ..ItemMeta::default() };
    let write = Write {
        mode: mode_of(request.opcode),
        vbid: request.vbid(),
        key: key.as_key(),
        meta,
        value: incoming(request),
        condition: condition(request, bucket, turn),
    };
    let result = bucket.store(turn.session, write);
    count_attempt(&turn.bucket.commands.cmd_set, &result);
    answer_mutation(connection, request, result, turn)
}

/// Whether such a store has to wait until its document is read from the file.
pub(crate) fn must_received_wait(
    connection: &Connection,
    request: &Request<'_>,
    builder: &ItemBuilder,
    turn: &mut Turn<'_>,
) -> bool {
    connection.bucket.as_ref().is_some_and(|part| {
        part.bucket.must_store_wait(turn.session, request.vbid(), builder.key())
    })
}

/// A store whose large value has been received in its final place.
pub(crate) fn store_received(
    connection: &mut Connection,
    request: &Request<'_>,
    builder: ItemBuilder,
    turn: &mut Turn<'_>,
) -> Done {
    let store = |connection: &mut Connection,
                 request: &Request<'_>,
                 document: &Document<'_>,
                 turn: &mut Turn<'_>| {
        store_builder(connection, request, document, builder, turn)
    };
    on_document(store, connection, request, turn)
}

fn store_builder(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    builder: ItemBuilder,
    turn: &mut Turn<'_>,
) -> Done {
    let result = document.bucket.store_received(
        turn.session,
        mode_of(request.opcode),
        request.vbid(),
        builder,
        condition(request, document.bucket, turn),
    );
    count(&turn.bucket.commands.cmd_set);
    // The value went into the builder, so there is no frame to execute again: the client does it.
    let result = match result {
        Ok(Attempted::Waits) => Err(Refused::Contended),
        result => result,
    };
    answer_mutation(connection, request, result, turn)
}

/// APPEND, PREPEND.
pub(super) fn concatenate(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    let placement =
        if request.opcode == Opcode::Append { Placement::Back } else { Placement::Front };
    let addition = Addition {
        vbid: request.vbid(),
        key: key.as_key(),
        placement,
        added: incoming(request),
        condition: condition(request, bucket, turn),
    };
    let result = bucket.concatenate(turn.session, addition);
    let result = result.map(|attempted| attempted.map(|it| it.written));
    count_attempt(&turn.bucket.commands.cmd_set, &result);
    answer_mutation(connection, request, result, turn)
}

/// DELETE.
pub(super) fn delete(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    let mut result =
        bucket.delete(turn.session, request.vbid(), key.as_key(), condition(request, bucket, turn));
    count_attempt(&turn.bucket.commands.cmd_delete, &result);
    if let Ok(Attempted::Answered(Written::Done(mutation))) = &mut result {
        count(&turn.bucket.commands.delete_hits);
        if !connection.said_hello {
            *mutation = untold(*mutation);
        }
    }
    match answer_mutation(connection, request, result, turn) {
        Done::Begun(KnownAnswer::Committed) if !connection.said_hello => {
            Done::Begun(KnownAnswer::Deleted)
        }
        done => done,
    }
}

/// A deletion as classic memcached clients are told of it: they insist on no CAS behind one.
fn untold(deletion: Mutation) -> Mutation {
    Mutation { cas: Cas::ANY, ..deletion }
}

fn answer_mutation(
    connection: &mut Connection,
    request: &Request<'_>,
    result: Result<Attempted<Written>, Refused>,
    turn: &mut Turn<'_>,
) -> Done {
    match result {
        Ok(Attempted::Answered(Written::Done(mutation))) => {
            if request.frame.header.cas != 0 {
                count(&turn.bucket.commands.cas_hits);
            }
            if !request.is_quiet {
                request.reply(connection).mutated(turn, mutation, &[]);
            }
            Done::Answered
        }
        Ok(Attempted::Answered(Written::Begun)) => Done::Begun(KnownAnswer::Committed),
        Ok(Attempted::Waits) => Done::Parked,
        Err(refused) => refuse(connection, request, refused, turn),
    }
}

fn mode_of(opcode: Opcode) -> StoreMode {
    match opcode {
        Opcode::Add => StoreMode::Add,
        Opcode::Replace => StoreMode::Replace,
        _ => StoreMode::Set,
    }
}

pub(super) fn incoming<'a>(request: &Request<'a>) -> Incoming<'a> {
    let is_compressed = request.frame.header.datatype & Datatype::SNAPPY.bits() != 0;
    Incoming { body: request.frame.value, is_compressed }
}

/// Which version a write may replace, and how durable it is to be. A counter's CAS means nothing.
pub(super) fn condition(request: &Request<'_>, bucket: &Bucket, turn: &Turn<'_>) -> WriteCondition {
    let sync_write = request.infos.durability.map(|durability| {
        let timeout = durability.timeout_ms.map(|ms| Duration::from_millis(ms.into()));
        let default = bucket.config().durability.timeout_default;
        SyncWriteRequest {
            level: durability.level,
            deadline: turn.now.monotonic.after(timeout.unwrap_or(default)),
            waiter: turn.session.waiter,
        }
    });
    let is_counter = matches!(request.opcode, Opcode::Increment | Opcode::Decrement);
    WriteCondition {
        cas: if is_counter { Cas::ANY } else { request.cas() },
        preserve_expiry: request.infos.preserve_ttl,
        sync_write,
        computed_from: None,
    }
}

/// Answers a durable write that has ended.
pub(crate) fn answer_ended(
    connection: &Connection,
    answer: &ParkedAnswer,
    end: SyncWriteEnd,
    turn: &mut Turn<'_>,
) {
    let reply = answer.reply;
    match end {
        SyncWriteEnd::Committed { .. } if answer.is_quiet => {}
        SyncWriteEnd::Committed { mutation, .. } => match &answer.known {
            KnownAnswer::Committed => reply.mutated(turn, mutation, &[]),
            KnownAnswer::Deleted => reply.mutated(turn, untold(mutation), &[]),
            KnownAnswer::Number(number) => reply.mutated(turn, mutation, &number.to_be_bytes()),
            KnownAnswer::Paths(known) => answer_changed(reply, turn, mutation, known),
        },
        SyncWriteEnd::Ambiguous(why) => {
            reply.fail(turn, Status::SyncWriteAmbiguous, ambiguity(why));
        }
        SyncWriteEnd::Dropped => {
            let context = "the collection was dropped before the durable write was committed";
            reply.fail_with(turn, Status::UnknownCollection, by_manifest(connection, context));
        }
    }
}

/// What people are told of a durable write of which nobody here knows whether it happens.
pub(super) fn ambiguity(why: Ambiguity) -> &'static str {
    match why {
        Ambiguity::TimeIsOver => {
            "the durable write was not committed in time; read to see whether it is"
        }
        Ambiguity::TooFewNodes => {
            "the vBucket has too few nodes for the durable write from now on; read to see whether \
             it is committed"
        }
        Ambiguity::NotActive => {
            "the vBucket is not active here any more, and others may commit the durable write; \
             read to see whether it is"
        }
    }
}
