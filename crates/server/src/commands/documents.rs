//! What all document commands begin with: a bucket, a key, a collection.

use bucket::Bucket;
use document::{CollectionId, expiry};
use protocol::request::DocumentKey;
use protocol::response::ErrorContext;
use protocol::{Feature, Status};

use crate::connection::{Connection, Done, Request, Turn};

/// The manifest that every bucket has: no collections but the default one.
pub(super) const MANIFEST_UID: u64 = 0;

/// The bucket that the connection has selected; answered with NO_BUCKET when there is none.
pub(super) fn bucket_of(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Result<Bucket, Done> {
    connection.bucket.clone().ok_or_else(|| {
        request.reply(connection).fail(turn, Status::NoBucket, "select a bucket first");
        Done::Answered
    })
}

/// The bucket and the key of a document command, or the answer why there are none.
pub(super) fn bucket_and_key<'a>(
    connection: &Connection,
    request: &Request<'a>,
    turn: &mut Turn<'_>,
) -> Result<(Bucket, DocumentKey<'a>), Done> {
    let bucket = bucket_of(connection, request, turn)?;
    let reply = request.reply(connection);
    let Ok(key) = DocumentKey::parse(request.frame.key, connection.features) else {
        reply.fail(turn, Status::Einval, "the key is malformed, empty or too long");
        return Err(Done::Answered);
    };
    if key.as_key().collection() != CollectionId::DEFAULT {
        let context = ErrorContext {
            context: Some("the bucket has no such collection"),
            manifest_uid: Some(MANIFEST_UID),
            ..ErrorContext::default()
        };
        reply.fail_with(turn, Status::UnknownCollection, context);
        return Err(Done::Answered);
    }
    Ok((bucket, key))
}

/// The absolute expiry of a request; answered with EXPIRY_OVERFLOW when it does not fit.
pub(super) fn absolute_expiry(
    connection: &Connection,
    request: &Request<'_>,
    requested: u32,
    turn: &mut Turn<'_>,
) -> Result<u32, Done> {
    expiry::absolute(requested, turn.now.wall.seconds()).ok_or_else(|| {
        let reply = request.reply(connection);
        reply.fail(turn, Status::ExpiryOverflow, "the expiry lies beyond the year 2106");
        Done::Answered
    })
}

/// Whether values may be sent compressed.
pub(super) fn accepts_compression(connection: &Connection) -> bool {
    connection.features.contains(Feature::Snappy)
}
