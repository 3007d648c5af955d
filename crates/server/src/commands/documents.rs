//! What commands on documents and buckets begin with: a bucket, a key, a collection.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bucket::{Attempted, Bucket, Refused};
use document::{CollectionId, expiry};
use protocol::request::DocumentKey;
use protocol::{Feature, Status};

use crate::buckets::BucketPart;
use crate::connection::{Connection, Done, Request, Turn};
use crate::statistics::count;

/// What a document command addresses.
pub(super) struct Document<'a> {
    pub(super) bucket: &'a Bucket,
    pub(super) key: DocumentKey<'a>,
}

/// Runs a command that needs a bucket, and what the data port has of it, on the one that the
/// connection has selected; answers NO_BUCKET when there is none.
pub(super) fn on_part(
    command: impl FnOnce(&mut Connection, &Request<'_>, &Arc<BucketPart>, &mut Turn<'_>) -> Done,
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(part) = connection.bucket.clone() else {
        request.reply(connection).fail(turn, Status::NoBucket, "select a bucket first");
        return Done::Answered;
    };
    command(connection, request, &part, turn)
}

/// Runs a command that needs a bucket alone.
pub(super) fn on_bucket(
    command: impl FnOnce(&mut Connection, &Request<'_>, &Bucket, &mut Turn<'_>) -> Done,
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    on_part(
        |connection, request, part, turn| command(connection, request, &part.bucket, turn),
        connection,
        request,
        turn,
    )
}

/// Runs a document command, or answers why the request addresses no document.
pub(super) fn on_document(
    command: impl FnOnce(&mut Connection, &Request<'_>, &Document<'_>, &mut Turn<'_>) -> Done,
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    on_bucket(
        |connection, request, bucket, turn| match addressed(connection, request, bucket, turn) {
            Some(document) => command(connection, request, &document, turn),
            None => Done::Answered,
        },
        connection,
        request,
        turn,
    )
}

/// The document that a request addresses; answered when there can be none.
fn addressed<'a>(
    connection: &Connection,
    request: &Request<'a>,
    bucket: &'a Bucket,
    turn: &mut Turn<'_>,
) -> Option<Document<'a>> {
    let reply = request.reply(connection);
    let Ok(key) = DocumentKey::parse(request.frame.key, connection.features) else {
        reply.fail(turn, Status::Einval, "the key is malformed, empty or too long");
        return None;
    };
    Some(Document { bucket, key })
}

/// Counts a command once, however often it is executed: not where it only begins to wait.
pub(super) fn count_attempt<T>(counter: &AtomicU64, result: &Result<Attempted<T>, Refused>) {
    if !matches!(result, Ok(Attempted::Waits)) {
        count(counter);
    }
}

/// The absolute expiry of a request, in a collection that may limit lives; answered with
/// EXPIRY_OVERFLOW when it does not fit.
pub(super) fn absolute_expiry(
    connection: &Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    requested: u32,
    turn: &mut Turn<'_>,
) -> Result<u32, Done> {
    let now = turn.now.wall.seconds();
    let Some(expiry) = expiry::absolute(requested, now) else {
        let reply = request.reply(connection);
        reply.fail(turn, Status::ExpiryOverflow, "the expiry lies beyond the year 2106");
        return Err(Done::Answered);
    };
    Ok(limited_expiry(document.bucket, document.key.as_key().collection(), expiry, now))
}

/// The expiry that a document gets: never is as late as its collection or its bucket allows.
pub(crate) fn limited_expiry(
    bucket: &Bucket,
    collection: CollectionId,
    expiry: u32,
    now_seconds: u32,
) -> u32 {
    let Some(seconds) = bucket.max_ttl(collection) else { return expiry };
    let latest = now_seconds.saturating_add(seconds);
    if expiry == 0 { latest } else { expiry.min(latest) }
}

/// Whether values may be sent compressed.
pub(super) fn accepts_compression(connection: &Connection) -> bool {
    connection.features.contains(Feature::Snappy)
}
