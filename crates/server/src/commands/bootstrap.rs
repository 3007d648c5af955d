//! What a client does before its first document: HELLO, error map, bucket, cluster map.

use std::sync::Arc;

use auth::Privilege;
use cluster::Revision;
use document::Datatype;
use protocol::hello::{Agent, negotiate};
use protocol::request::{BucketSelection, error_map_version, known_map};
use protocol::{Feature, FeatureSet, Status, error_map};

use crate::buckets::BucketPart;
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};

/// What this server does when a client asks for it. A feature is listed when it works, not
/// before: clients take the grant as a promise.
const SUPPORTED: FeatureSet = FeatureSet::NONE
    .with(Feature::TcpNoDelay)
    .with(Feature::MutationSeqno)
    .with(Feature::Xerror)
    .with(Feature::SelectBucket)
    .with(Feature::Snappy)
    .with(Feature::Json)
    .with(Feature::Duplex)
    .with(Feature::ClustermapChangeNotification)
    .with(Feature::UnorderedExecution)
    .with(Feature::Tracing)
    .with(Feature::AltRequestSupport)
    .with(Feature::Collections)
    .with(Feature::SnappyEverywhere)
    .with(Feature::PreserveTtl)
    .with(Feature::SyncReplication)
    .with(Feature::GetClusterConfigWithKnownVersion)
    .with(Feature::DedupeNotMyVbucketClustermap)
    .with(Feature::RangeScanIncludeXattr)
    .with(Feature::GetRandomKeyIncludeXattr)
    .with(Feature::Xattr)
    .with(Feature::VAttr)
    .with(Feature::SubdocCreateAsDeleted)
    .with(Feature::SubdocDocumentMacroSupport)
    .with(Feature::SubdocReplaceBodyWithXattr)
    .with(Feature::SubdocReplicaRead)
    .with(Feature::SubdocAllowsAccessOnMultipleXattrKeys)
    .with(Feature::SubdocBinaryXattr)
    .with(Feature::SubdocAllowReplicaReadOnDeletedDocs)
    .with(Feature::MutateWithMeta)
    .with(Feature::DcpSkipDeletesInInitialBackfill)
    .with(Feature::ClustermapChangeNotificationBrief);

/// HELLO.
pub(super) fn hello(
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    // What DCP_OPEN looked at stays: its streams are of it, and it refuses some features.
    if connection.is_of_replication() {
        reply.fail(turn, Status::NotSupported, "a connection of replication keeps its features");
        return Done::Answered;
    }
    let agreed = Agent::parse(request.frame.key)
        .and_then(|agent| Ok((agent, negotiate(request.frame.value, SUPPORTED)?)));
    let (agent, agreement) = match agreed {
        Ok(agreed) => agreed,
        Err(invalid) => {
            reply.fail(turn, invalid.status, invalid.context);
            return Done::Answered;
        }
    };
    connection.leave_unasked_bucket(turn);
    connection.agent = agent.name.into_boxed_str();
    connection.said_hello = true;
    connection.features = agreement.enabled;
    let mut granted = Vec::new();
    agreement.granted.encode(&mut granted);
    let content = Content { payload: Payload::Bytes(&granted), ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}

/// GET_ERROR_MAP.
pub(super) fn error_map(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let Some(version) = error_map_version(request.frame.value) else {
        reply.fail(turn, Status::Einval, "the value is a version of two bytes");
        return Done::Answered;
    };
    match error_map::json(version) {
        Some(json) => reply.json(turn, Status::Success, json),
        None => reply.fail(turn, Status::KeyEnoent, "error maps begin with version 1"),
    }
    Done::Answered
}

/// SELECT_BUCKET.
pub(super) fn select_bucket(
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    if connection.is_of_replication() {
        reply.fail(turn, Status::NotSupported, "a connection of replication keeps its bucket");
        return Done::Answered;
    }
    match BucketSelection::parse(request.frame.key) {
        None => reply.fail(turn, Status::Einval, "no bucket can have this name"),
        Some(BucketSelection::None) => {
            connection.select(None, turn);
            reply.done(turn);
        }
        Some(BucketSelection::Bucket(name)) => match selectable(connection, name, turn) {
            Some(bucket) => {
                connection.select(Some(bucket), turn);
                reply.done(turn);
            }
            // Most clients fail fast on this status and keep trying on KEY_ENOENT.
            None => {
                let context = "there is no such bucket, or no right to use it";
                reply.fail(turn, Status::Eaccess, context);
            }
        },
    }
    Done::Answered
}

/// The bucket of that name. One in which the user may do nothing looks like one that is not there.
pub(super) fn selectable(
    connection: &Connection,
    name: &str,
    turn: &Turn<'_>,
) -> Option<Arc<BucketPart>> {
    let access = connection.access(turn.shared)?;
    if access.in_bucket(name).is_any() { turn.shared.buckets.get(name) } else { None }
}

/// LIST_BUCKETS: the names of those that the user may use, with spaces between them.
pub(super) fn list_buckets(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let access = connection.access(turn.shared).unwrap_or_default();
    let mut buckets = turn.shared.buckets.all();
    buckets.retain(|bucket| access.in_bucket(bucket.name()).is_any());
    let names: Vec<&str> = buckets.iter().map(|bucket| bucket.name()).collect();
    let names = names.join(" ");
    let content = Content { payload: Payload::Bytes(names.as_bytes()), ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}

/// GET_CLUSTER_CONFIG: the bucket's map, or the global one where no bucket is selected.
pub(super) fn cluster_config(
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let Some(known) = known_map(request.frame.extras) else {
        reply.fail(turn, Status::Einval, "the extras are epoch and revision, or nothing");
        return Done::Answered;
    };
    if connection.bucket.is_none() && !connection.privileges().contains(Privilege::SystemSettings) {
        let context = "the user may not see the cluster without a bucket";
        reply.fail(turn, Status::Eaccess, context);
        return Done::Answered;
    }
    let current = connection.map(turn.shared);
    let known = known.map(|map| Revision { epoch: map.epoch, revision: map.revision });
    connection.known_map = Some(current.revision);
    if known >= Some(current.revision) {
        reply.send(turn, Content { datatype: Datatype::RAW, ..Content::default() });
        return Done::Answered;
    }
    reply.json(turn, Status::Success, &current.config);
    Done::Answered
}
