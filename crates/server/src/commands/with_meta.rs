//! SET_WITH_META, ADD_WITH_META, DEL_WITH_META, RETURN_META.

use bucket::{Attempted, Bucket, ConflictResolution, ForeignKind, ForeignVersion, Incoming, Write};
use document::{Cas, Datatype, Deletion, ItemMeta, Operation, RevSeqno};
use protocol::validate::Invalid;
use protocol::with_meta::{ReturnMeta, ReturnMetaKind, WithMeta, WithMetaOptions};
use protocol::{Opcode, Status};
use vbucket::{StoreMode, WriteCondition};

use super::documents::{Document, absolute_expiry, limited_expiry};
use super::refusals::refuse;
use super::store::incoming;
use crate::connection::{Connection, Content, Done, Request, Turn};
use crate::statistics::count;

/// SET_WITH_META, ADD_WITH_META, DEL_WITH_META.
pub(super) fn store(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    let reply = request.reply(connection);
    let Some(asked) = WithMeta::parse(&request.frame) else {
        let context = "the options are unknown, or the extended metadata is longer than the value";
        reply.fail(turn, Status::Einval, context);
        return Done::Answered;
    };
    if let Err(invalid) = check_options(asked.options, request.opcode, bucket) {
        reply.fail(turn, invalid.status, invalid.context);
        return Done::Answered;
    }
    let datatype = request.frame.header.datatype;
    let kind = kind_of(request.opcode, asked.options);
    let expiry = match kind {
        ForeignKind::Delete(_) => asked.expiry,
        ForeignKind::Set | ForeignKind::Add => {
            let collection = key.as_key().collection();
            limited_expiry(bucket, collection, asked.expiry, turn.now.wall.seconds())
        }
    };
    let version = ForeignVersion {
        kind,
        vbid: request.vbid(),
        key: key.as_key(),
        flags: asked.flags,
        expiry,
        cas: Cas(asked.cas),
        revision: RevSeqno(asked.revision),
        value: Incoming { body: asked.value, ..incoming(request) },
        has_xattrs: datatype & Datatype::XATTR.bits() != 0,
        replaces: request.cas(),
        always_wins: asked.options.skips_conflict_resolution(),
        renames: asked.options.regenerates_cas(),
    };
    match bucket.store_foreign(turn.session, version) {
        Ok(Attempted::Answered(mutation)) => {
            if !request.is_quiet {
                request.reply(connection).mutated(turn, mutation, &[]);
            }
            Done::Answered
        }
        Ok(Attempted::Waits) => Done::Parked,
        Err(refused) => refuse(connection, request, refused, turn),
    }
}

/// Whether the options go together, with the command and with the bucket.
fn check_options(options: WithMetaOptions, opcode: Opcode, bucket: &Bucket) -> Result<(), Invalid> {
    if options.regenerates_cas() && !options.skips_conflict_resolution() {
        let context = "REGENERATE_CAS goes with SKIP_CONFLICT_RESOLUTION";
        return Err(Invalid::argument(context));
    }
    if options.is_expiration() && opcode != Opcode::DelWithMeta {
        return Err(Invalid::argument("only a deletion is an expiration"));
    }
    let by_revision = bucket.conflict_resolution() == ConflictResolution::Seqno;
    match (options.accepts_last_write_wins(), by_revision) {
        (true, true) => {
            let context = "the bucket resolves conflicts by revision, FORCE_ACCEPT is for others";
            Err(Invalid::argument(context))
        }
        (false, false) if !options.regenerates_cas() => {
            let context = "the bucket resolves conflicts by time: FORCE_ACCEPT says that you know";
            Err(Invalid::argument(context))
        }
        _ => Ok(()),
    }
}

fn kind_of(opcode: Opcode, options: WithMetaOptions) -> ForeignKind {
    match opcode {
        Opcode::AddWithMeta => ForeignKind::Add,
        Opcode::DelWithMeta if options.is_expiration() => ForeignKind::Delete(Deletion::Expired),
        Opcode::DelWithMeta => ForeignKind::Delete(Deletion::Explicit),
        _ => ForeignKind::Set,
    }
}

/// RETURN_META: a plain SET, ADD or DELETE whose answer tells the metadata.
pub(super) fn return_meta(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    let reply = request.reply(connection);
    if bucket.operation_of(None) != Operation::Mutation {
        let context = "all writes of the bucket are durable ones, which tell no metadata";
        reply.fail(turn, Status::NotSupported, context);
        return Done::Answered;
    }
    let Some(asked) = ReturnMeta::parse(request.frame.extras) else {
        reply.fail(turn, Status::Einval, "the kind is 1 for SET, 2 for ADD or 3 for DELETE");
        return Done::Answered;
    };
    let expiry = match absolute_expiry(connection, request, document, asked.expiry, turn) {
        Ok(expiry) => expiry,
        Err(done) => return done,
    };
    let condition = WriteCondition { cas: request.cas(), ..WriteCondition::default() };
    let write = |mode| Write {
        mode,
        vbid: request.vbid(),
        key: key.as_key(),
        meta: ItemMeta { flags: asked.flags, expiry, ..ItemMeta::default() },
        value: incoming(request),
        condition,
    };
    let result = match asked.kind {
        ReturnMetaKind::Set => bucket.store_counted(turn.session, write(StoreMode::Set)),
        ReturnMetaKind::Add => bucket.store_counted(turn.session, write(StoreMode::Add)),
        ReturnMetaKind::Delete => {
            bucket.delete_counted(turn.session, request.vbid(), key.as_key(), condition)
        }
    };
    let (mutation, revision) = match result {
        Ok(Attempted::Answered(counted)) => counted,
        Ok(Attempted::Waits) => return Done::Parked,
        Err(refused) => return refuse(connection, request, refused, turn),
    };
    match asked.kind {
        ReturnMetaKind::Delete => count(&turn.bucket.commands.cmd_delete),
        ReturnMetaKind::Set | ReturnMetaKind::Add => count(&turn.bucket.commands.cmd_set),
    }
    let mut extras = [0; 16];
    extras[..4].copy_from_slice(&asked.flags);
    extras[4..8].copy_from_slice(&expiry.to_be_bytes());
    extras[8..].copy_from_slice(&revision.0.to_be_bytes());
    let content = Content { cas: mutation.cas, extras: &extras, ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}
