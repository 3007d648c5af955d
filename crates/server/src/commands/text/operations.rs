//! The bucket's operations as commands of the text protocol call them: on documents of vBucket 0.

use bucket::{Addition, Attempted, Bucket, Concatenated, Counter, CounterRequest, Refused, Write};
use document::{Cas, ItemBuilder, Key, Vbid};
use vbucket::{Found, Mutation, StoreMode, WriteCondition, Written};

use crate::connection::{KnownOfLine, Turn};

/// Where documents of memcached's clients are: those know nothing of vBuckets.
pub(crate) const VBID_OF_LINES: Vbid = Vbid(0);

/// Why an operation has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoResult {
    /// It waits under the session's waiter, to be executed again.
    Waits,
    /// It has begun, and the session's waiter hears of its end. Of that so much is known.
    Begun(KnownOfLine),
    /// It was refused.
    Refused(Refused),
}

/// A document that is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    /// Bytes of its body.
    pub(super) size: usize,
    /// The version that holds it.
    pub(super) mutation: Mutation,
}

/// A counter that has changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    pub(super) number: u64,
    /// Its absolute expiry.
    pub(super) expiry: u32,
    /// The version that it was computed from; `None` for one that is new.
    pub(super) computed_from: Option<Cas>,
    /// The version that holds it.
    pub(super) mutation: Mutation,
}

impl From<Refused> for NoResult {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

/// The answer of what has been attempted, if there is one already.
fn answered<T>(attempted: Result<Attempted<T>, Refused>) -> Result<T, NoResult> {
    match attempted? {
        Attempted::Answered(answer) => Ok(answer),
        Attempted::Waits => Err(NoResult::Waits),
    }
}

/// The mutation of a write, if it is done.
fn written(attempted: Result<Attempted<Written>, Refused>) -> Result<Mutation, NoResult> {
    answered(attempted)?.done().ok_or(NoResult::Begun(KnownOfLine::Nothing))
}

/// Reads a document, and gives it the absolute expiry `touch` if that is asked for.
pub(super) fn read(
    bucket: &Bucket,
    key: Key<'_>,
    touch: Option<u32>,
    turn: &mut Turn<'_>,
) -> Result<Found, NoResult> {
    let found = match touch {
        None => bucket.get(turn.session, VBID_OF_LINES, key),
        Some(expiry) => bucket.touch(turn.session, VBID_OF_LINES, key, expiry),
    };
    answered(found)
}

/// The newest version of a document for its metadata, tombstones included.
pub(super) fn metadata(
    bucket: &Bucket,
    key: Key<'_>,
    turn: &mut Turn<'_>,
) -> Result<Found, NoResult> {
    answered(bucket.get_metadata(turn.session, VBID_OF_LINES, key))
}

/// Stores a document.
pub(super) fn store(
    bucket: &Bucket,
    write: Write<'_>,
    turn: &mut Turn<'_>,
) -> Result<Mutation, NoResult> {
    written(bucket.store(turn.session, write))
}

/// Stores a document whose value was received in its place. It must not have to wait for the file:
/// the value is gone then, and the client has to send it again.
pub(super) fn store_received(
    bucket: &Bucket,
    mode: StoreMode,
    builder: ItemBuilder,
    condition: WriteCondition,
    turn: &mut Turn<'_>,
) -> Result<Mutation, NoResult> {
    let stored = bucket.store_received(turn.session, mode, VBID_OF_LINES, builder, condition);
    match written(stored) {
        Err(NoResult::Waits) => Err(NoResult::Refused(Refused::Contended)),
        result => result,
    }
}

/// Adds bytes to a document.
pub(super) fn add_to(
    bucket: &Bucket,
    addition: Addition<'_>,
    turn: &mut Turn<'_>,
) -> Result<Stored, NoResult> {
    let Concatenated { body_size: size, written } =
        answered(bucket.concatenate(turn.session, addition))?;
    let mutation = written.done().ok_or(NoResult::Begun(KnownOfLine::Added(size)))?;
    Ok(Stored { size, mutation })
}

/// Deletes a document.
pub(super) fn delete(
    bucket: &Bucket,
    key: Key<'_>,
    condition: WriteCondition,
    turn: &mut Turn<'_>,
) -> Result<Mutation, NoResult> {
    written(bucket.delete(turn.session, VBID_OF_LINES, key, condition))
}

/// Changes a counter.
pub(super) fn count(
    bucket: &Bucket,
    key: Key<'_>,
    request: CounterRequest,
    condition: WriteCondition,
    turn: &mut Turn<'_>,
) -> Result<Counted, NoResult> {
    let counter = answered(bucket.count(turn.session, VBID_OF_LINES, key, request, condition))?;
    let Counter { number, expiry, computed_from, written } = counter;
    let known = KnownOfLine::Counted { number, computed_from };
    let mutation = written.done().ok_or(NoResult::Begun(known))?;
    Ok(Counted { number, expiry, computed_from, mutation })
}
