//! Documents as clients of the text protocol address and see them.

use bucket::{Bucket, body_of};
use document::key::KeyBuf;
use document::{Cas, CollectionId, Item};
use protocol::text::answer::{Facts, LINE_END};
use protocol::text::exptime::Exptime;
use protocol::text::request::{Reply, TextError};

use super::executed::Executed;
use super::refusals;
use crate::commands::documents::limited_expiry;
use crate::connection::{Payload, Turn};

/// The key of a document, or the answer that it is none.
pub(super) fn key_of(name: &[u8], turn: &mut Turn<'_>) -> Result<KeyBuf, Executed> {
    KeyBuf::in_default_collection(name)
        .map_err(|_| refusals::wrong(TextError::BadFormat, Reply::Wanted, turn))
}

/// The expiry that a document gets: never is as late as the bucket allows.
pub(super) fn expiry_of(bucket: &Bucket, exptime: Exptime, turn: &Turn<'_>) -> u32 {
    let now = turn.now.wall.seconds();
    limited_expiry(bucket, CollectionId::DEFAULT, exptime.absolute(now), now)
}

/// Answers with the body of a document, behind the head that is written for its size.
pub(super) fn send_value(item: &Item, head: impl FnOnce(&mut Vec<u8>, usize), turn: &mut Turn<'_>) {
    let (body, _) = body_of(item, false);
    head(&mut turn.output.buffer, body.len());
    Payload::of_body(item, body).append_to(turn.output);
    turn.output.buffer.extend_from_slice(LINE_END);
}

/// What is known of a version of a document that has the expiry `expiry` by now.
pub(super) fn facts_of(item: &Item, cas: Cas, expiry: u32, turn: &Turn<'_>) -> Facts {
    let size = body_of(item, false).0.len();
    let flags = u32::from_be_bytes(item.flags());
    Facts { cas: cas.0, flags, size, ttl_seconds: ttl(expiry, turn) }
}

/// Seconds until an expiry; `None` for never.
pub(super) fn ttl(expiry: u32, turn: &Turn<'_>) -> Option<u32> {
    (expiry != 0).then(|| expiry.saturating_sub(turn.now.wall.seconds()))
}
