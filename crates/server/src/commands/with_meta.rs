//! SET_WITH_META, ADD_WITH_META, DEL_WITH_META, MUTATE_WITH_META, RETURN_META.

use bucket::{Attempted, Bucket, ConflictResolution, ForeignKind, ForeignVersion, Incoming, Write};
use document::compression::inflate;
use document::placeholders::PLACEHOLDER_TEXT_SIZE;
use document::{
    Cas, Datatype, Deletion, ItemMeta, Operation, PlaceholderKind, Placeholders, RevSeqno, xattr,
};
use protocol::validate::Invalid;
use protocol::with_meta::{
    MetaCommand, MutateWithMeta, ReturnMeta, ReturnMetaKind, WithMeta, WithMetaOptions,
};
use protocol::{Opcode, Status};
use vbucket::{StoreMode, WriteCondition};

use super::documents::{Document, absolute_expiry, limited_expiry};
use super::refusals::refuse;
use super::store::incoming;
use crate::connection::{Connection, Content, Done, Request, Turn};
use crate::statistics::count;

/// A version that a client brings, and what is to be done with it.
struct Brought<'a> {
    command: MetaCommand,
    version: WithMeta<'a>,
    /// Where its value says CAS and seqno.
    placeholders: Option<&'a Placeholders>,
}

/// SET_WITH_META, ADD_WITH_META, DEL_WITH_META.
pub(super) fn store(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(version) = WithMeta::parse(&request.frame) else {
        let context = "the options are unknown, or the extended metadata is longer than the value";
        request.reply(connection).fail(turn, Status::Einval, context);
        return Done::Answered;
    };
    let command = match request.opcode {
        Opcode::AddWithMeta => MetaCommand::Add,
        Opcode::DelWithMeta => MetaCommand::Delete,
        _ => MetaCommand::Set,
    };
    store_brought(
        connection,
        request,
        document,
        Brought { command, version, placeholders: None },
        turn,
    )
}

/// MUTATE_WITH_META: the same, whose value may say the CAS and the seqno that it gets.
pub(super) fn mutate(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let datatype = request.frame.header.datatype;
    let read = MutateWithMeta::parse(&request.frame).and_then(|asked| {
        check_deletion(&asked, datatype)?;
        let placed = with_places(&asked, datatype)?;
        Ok((asked, placed))
    });
    let (asked, placed) = match read {
        Ok(read) => read,
        Err(invalid) => {
            request.reply(connection).fail(turn, invalid.status, invalid.context);
            return Done::Answered;
        }
    };
    let MutateWithMeta { command, version, .. } = asked;
    let brought = match &placed {
        None => Brought { command, version, placeholders: None },
        Some((value, places)) => {
            let version = WithMeta { value, ..version };
            Brought { command, version, placeholders: Some(places) }
        }
    };
    store_brought(connection, request, document, brought, turn)
}

/// Whether the value of a deletion is one that it may have: attributes of the system alone.
fn check_deletion(asked: &MutateWithMeta<'_>, datatype: u8) -> Result<(), Invalid> {
    let value = asked.version.value;
    if asked.command != MetaCommand::Delete || value.is_empty() {
        return Ok(());
    }
    let inflated = match datatype & Datatype::SNAPPY.bits() {
        0 => None,
        _ => Some(inflate(value).ok_or(Invalid::argument("the value cannot be inflated"))?),
    };
    let plain = inflated.as_deref().unwrap_or(value);
    let has_xattrs = datatype & Datatype::XATTR.bits() != 0;
    if has_xattrs && xattr::system_only(plain) == plain {
        return Ok(());
    }
    Err(Invalid::argument("a deletion has no body, and no attributes but those of the system"))
}

/// The value with places for CAS and seqno, if it is to say them.
fn with_places(
    asked: &MutateWithMeta<'_>,
    datatype: u8,
) -> Result<Option<(Vec<u8>, Placeholders)>, Invalid> {
    let cas = asked.cas_offsets.iter().map(|&at| (PlaceholderKind::Cas, at));
    let seqno = asked.seqno_offsets.iter().map(|&at| (PlaceholderKind::Seqno, at));
    let texts = || cas.clone().chain(seqno.clone());
    if texts().next().is_none() {
        return Ok(None);
    }
    if datatype & Datatype::SNAPPY.bits() != 0 {
        return Err(Invalid::argument("offsets are those of a value that is not compressed"));
    }
    let mut value = asked.version.value.to_vec();
    let has_xattrs = datatype & Datatype::XATTR.bits() != 0;
    let is_text = |at| {
        let has_section = xattr::split(&value).is_some_and(|(section, _)| section.len() > 4);
        !has_xattrs || (has_section && xattr::is_within_text(&value, at, PLACEHOLDER_TEXT_SIZE))
    };
    let are_texts = texts().all(|(_, at)| is_text(at));
    let places = Placeholders::in_place_of(&mut value, texts()).filter(|_| are_texts);
    let context = "at each offset there is `0x` and 16 hexadecimal digits, once, in the body or \
                   in the value of an attribute";
    places.map(|places| Some((value, places))).ok_or(Invalid::argument(context))
}

fn store_brought(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    brought: Brought<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    let reply = request.reply(connection);
    let Brought { command, version: asked, placeholders } = brought;
    if let Err(invalid) = check_options(asked.options, command, bucket) {
        reply.fail(turn, invalid.status, invalid.context);
        return Done::Answered;
    }
    let datatype = request.frame.header.datatype;
    let kind = kind_of(command, asked.options);
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
        placeholders,
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
fn check_options(
    options: WithMetaOptions,
    command: MetaCommand,
    bucket: &Bucket,
) -> Result<(), Invalid> {
    if options.regenerates_cas() && !options.skips_conflict_resolution() {
        let context = "REGENERATE_CAS goes with SKIP_CONFLICT_RESOLUTION";
        return Err(Invalid::argument(context));
    }
    if options.is_expiration() && command != MetaCommand::Delete {
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

fn kind_of(command: MetaCommand, options: WithMetaOptions) -> ForeignKind {
    match command {
        MetaCommand::Set => ForeignKind::Set,
        MetaCommand::Add => ForeignKind::Add,
        MetaCommand::Delete if options.is_expiration() => ForeignKind::Delete(Deletion::Expired),
        MetaCommand::Delete => ForeignKind::Delete(Deletion::Explicit),
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
