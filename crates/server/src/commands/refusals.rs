//! How a bucket's refusals are said on the wire.

use bucket::{Refused, WriteBlock};
use document::Datatype;
use protocol::response::ErrorContext;
use protocol::{Feature, Opcode, Status};

use crate::connection::{Connection, Done, Request, Turn};
use crate::statistics::count;

/// Answers a request that the bucket refused.
pub(super) fn refuse(
    connection: &mut Connection,
    request: &Request<'_>,
    refused: Refused,
    turn: &mut Turn<'_>,
) -> Done {
    match refused {
        Refused::NotMyVbucket => {
            not_my_vbucket(connection, request, turn);
            return Done::Answered;
        }
        Refused::CasMismatch => count(&turn.bucket.commands.cas_badval),
        Refused::NotFound => count_miss(request, turn),
        Refused::UnknownCollection => {
            unknown(connection, request, UNKNOWN_COLLECTION, turn);
            return Done::Answered;
        }
        _ => {}
    }
    let reply = request.reply(connection);
    let (status, context) = told(refused);
    match context {
        Some(context) => reply.fail(turn, status, context),
        None => reply.fail_with(turn, status, Default::default()),
    }
    Done::Answered
}

/// What there is not in the bucket's manifest.
pub(super) type Unknown = (Status, &'static str);

/// See [`unknown`].
pub(super) const UNKNOWN_COLLECTION: Unknown =
    (Status::UnknownCollection, "the bucket has no such collection");
/// See [`unknown`].
pub(super) const UNKNOWN_SCOPE: Unknown = (Status::UnknownScope, "the bucket has no such scope");

/// Says that the bucket has no such thing, and by which manifest: a client that knows a newer one
/// tries again.
pub(super) fn unknown(
    connection: &Connection,
    request: &Request<'_>,
    (status, context): Unknown,
    turn: &mut Turn<'_>,
) {
    request.reply(connection).fail_with(turn, status, by_manifest(connection, context));
}

/// `context`, and the manifest that says so.
pub(super) fn by_manifest<'a>(connection: &Connection, context: &'a str) -> ErrorContext<'a> {
    let manifest_uid = connection.bucket.as_ref().map(|part| part.bucket.manifest().uid);
    ErrorContext { context: Some(context), manifest_uid, ..Default::default() }
}

/// The status of a refusal, and what a person reads.
pub(super) fn told(refused: Refused) -> (Status, Option<&'static str>) {
    match refused {
        Refused::NotMyVbucket => (Status::NotMyVbucket, Some("the vBucket is not on this node")),
        Refused::NotFound => (Status::KeyEnoent, None),
        Refused::NotMet => (Status::Etmpfail, Some("no document was met; try again")),
        Refused::UnknownCollection => (Status::UnknownCollection, Some(UNKNOWN_COLLECTION.1)),
        Refused::CasMismatch | Refused::Exists => (Status::KeyEexists, None),
        Refused::NotNewer => {
            (Status::KeyEexists, Some("the version that is here is the same or wins"))
        }
        Refused::InvalidCas => {
            (Status::CasValueInvalid, Some("no version can have this CAS, or not yet"))
        }
        Refused::BadXattrs => (Status::XattrEinval, Some("the xattrs cannot be read")),
        Refused::Locked => (Status::Locked, None),
        Refused::NotLocked => (Status::NotLocked, None),
        Refused::NotStored => (Status::NotStored, None),
        Refused::NotANumber => (Status::DeltaBadval, Some("the document is not a number")),
        Refused::TooLarge => (Status::E2big, Some("a document holds at most 20 MiB")),
        Refused::BadCompression => (Status::Einval, Some("the value cannot be inflated")),
        Refused::NotPersisted => (Status::KeyEexists, Some("the document is not on disk yet")),
        Refused::Contended => (Status::Etmpfail, Some("the document keeps changing; try again")),
        Refused::Warming => (Status::Etmpfail, Some("the vBucket is being loaded; try again")),
        Refused::TooManyFetches => {
            (Status::Etmpfail, Some("too many requests wait for the disk; try again"))
        }
        Refused::TooManyParked => {
            (Status::Etmpfail, Some("too many requests wait for the vBucket; try again"))
        }
        Refused::TooManyLookups => {
            (Status::Etmpfail, Some("too many documents are looked up on the disk; try again"))
        }
        Refused::SyncWriteInProgress => (
            Status::SyncWriteInProgress,
            Some("a durable write of the document has not ended; try again"),
        ),
        Refused::RecommitInProgress => (
            Status::SyncWriteReCommitInProgress,
            Some("a durable write of the document is being committed again; try again"),
        ),
        Refused::DurabilityImpossible => {
            (Status::DurabilityImpossible, Some("there are not enough replicas for this level"))
        }
        Refused::InvalidDurabilityLevel => {
            (Status::DurabilityInvalidLevel, Some("an ephemeral bucket persists nothing"))
        }
        Refused::NoTopology => {
            (Status::Etmpfail, Some("the vBucket's replicas are not known yet; try again"))
        }
        Refused::Ephemeral => {
            (Status::NotSupported, Some("an ephemeral bucket keeps nothing on disk"))
        }
        Refused::Blocked(block @ WriteBlock::NoMemory) => (Status::Enomem, Some(block.context())),
        Refused::Blocked(block) => (Status::Etmpfail, Some(block.context())),
    }
}

/// The map goes with the refusal, unless the client has it already and said that this is enough.
fn not_my_vbucket(connection: &mut Connection, request: &Request<'_>, turn: &mut Turn<'_>) {
    count(&turn.bucket.commands.ep_num_not_my_vbuckets);
    let reply = request.reply(connection);
    let map = connection.map(turn.shared);
    let dedupes = connection.features.contains(Feature::DedupeNotMyVbucketClustermap);
    if dedupes && connection.known_map >= Some(map.revision) {
        let content = crate::connection::Content {
            status: Status::NotMyVbucket,
            datatype: Datatype::RAW,
            ..Default::default()
        };
        reply.send(turn, content);
        return;
    }
    connection.known_map = Some(map.revision);
    reply.json(turn, Status::NotMyVbucket, &map.config);
}

/// Counts a request whose document is not there. Reads and touches are counted where they are
/// answered.
fn count_miss(request: &Request<'_>, turn: &Turn<'_>) {
    match request.opcode {
        Opcode::Delete => count(&turn.bucket.commands.delete_misses),
        Opcode::Increment => count(&turn.bucket.commands.incr_misses),
        Opcode::Decrement => count(&turn.bucket.commands.decr_misses),
        _ => {}
    }
    if request.frame.header.cas != 0 {
        count(&turn.bucket.commands.cas_misses);
    }
}
