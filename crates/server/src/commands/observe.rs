//! Where documents and histories are: OBSERVE, OBSERVE_SEQNO, SEQNO_PERSISTENCE, seqnos, failover
//! logs.

use std::time::Duration;

use auth::Privilege;
use bucket::{Attempted, Bucket, ObservedState, Refused};
use document::{Cas, CollectionId, Seqno, Vbid, VbucketState};
use protocol::request::{AllVbSeqnos, DocumentKey, awaited_seqno, observed_keys, observed_uuid};
use protocol::{Feature, Status};
use vbucket::SeqnoStatus;

use super::refusals::{UNKNOWN_COLLECTION, refuse, unknown};
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};

/// Keys of one OBSERVE at most. Each takes a lock and may take a read of a file, after which the
/// request begins again.
const OBSERVED_KEYS_MAX: usize = 128;

/// How long an OBSERVE goes on beginning again. What is found of deleted documents is remembered
/// for a bounded number of them: where it names more, or others ask at the same time, it might
/// never come to its end.
const OBSERVE_TIME_MAX: Duration = Duration::from_secs(5);

const MICROS_PER_MILLI: u64 = 1000;

/// OBSERVE.
pub(super) fn observe(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let count = observed_keys(request.frame.value).take(OBSERVED_KEYS_MAX + 1).count();
    if count > OBSERVED_KEYS_MAX {
        const CONTEXT: &str = "an OBSERVE has at most 128 keys; ask for more in another one";
        request.reply(connection).fail(turn, Status::E2big, CONTEXT);
        return Done::Answered;
    }
    if turn.now.monotonic.since(turn.request_started) >= OBSERVE_TIME_MAX {
        const CONTEXT: &str = "too many deleted documents to look up together; ask for fewer";
        request.reply(connection).fail(turn, Status::Etmpfail, CONTEXT);
        return Done::Answered;
    }
    let mut answer = Vec::new();
    for observed in observed_keys(request.frame.value) {
        let parsed = observed.and_then(|(vbucket, bytes)| {
            let key = DocumentKey::parse(bytes, connection.features).ok()?;
            Some((vbucket, bytes, key))
        });
        let Some((vbucket, bytes, key)) = parsed else {
            let reply = request.reply(connection);
            reply.fail(turn, Status::Einval, "the value is vBucket, size and key, repeated");
            return Done::Answered;
        };
        if !connection.has_in(key.as_key().collection(), Privilege::Read, request, turn) {
            return Done::Answered;
        }
        let seen = match bucket.observe(turn.session, Vbid(vbucket), key.as_key()) {
            Ok(Attempted::Answered(seen)) => seen,
            Ok(Attempted::Waits) => return Done::Parked,
            Err(refused) => return refuse(connection, request, refused, turn),
        };
        answer.extend_from_slice(&vbucket.to_be_bytes());
        answer.extend_from_slice(&u16::try_from(bytes.len()).unwrap_or(0).to_be_bytes());
        answer.extend_from_slice(bytes);
        answer.push(state_byte(seen.state));
        answer.extend_from_slice(&seen.cas.0.to_be_bytes());
    }
    let cas = Cas(observed_times(bucket));
    let content = Content { cas, payload: Payload::Bytes(&answer), ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}

/// Milliseconds until a write is durable, on average, in the upper half; and until a replica has
/// it, which is not measured, in the lower one. Source: docs/specification/protocol.md, section
/// 14.1.
fn observed_times(bucket: &Bucket) -> u64 {
    let persistence_ms = bucket.timings().storage_age.mean() / MICROS_PER_MILLI;
    persistence_ms.min(u32::MAX.into()) << u32::BITS
}

/// Source: docs/specification/protocol.md, section 14.1.
fn state_byte(state: ObservedState) -> u8 {
    match state {
        ObservedState::NotPersisted => 0x00,
        ObservedState::Persisted => 0x01,
        ObservedState::NotFound => 0x80,
        ObservedState::Deleted => 0x81,
    }
}

/// OBSERVE_SEQNO.
pub(super) fn observe_seqno(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(uuid) = observed_uuid(request.frame.value) else {
        request.reply(connection).fail(turn, Status::Einval, "the value is a vBucket uuid");
        return Done::Answered;
    };
    match bucket.observe_seqno(turn.session, request.vbid(), uuid) {
        Ok(Attempted::Answered(status)) => {
            let answer = status_bytes(request.vbid(), status);
            let content = Content { payload: Payload::Bytes(&answer), ..Content::default() };
            request.reply(connection).send(turn, content);
            Done::Answered
        }
        Ok(Attempted::Waits) => Done::Parked,
        Err(refused) => refuse(connection, request, refused, turn),
    }
}

/// Source: docs/specification/protocol.md, section 14.2.
fn status_bytes(vbid: Vbid, status: SeqnoStatus) -> Vec<u8> {
    let mut answer = Vec::with_capacity(43);
    answer.push(u8::from(status.older_branch.is_some()));
    answer.extend_from_slice(&vbid.0.to_be_bytes());
    answer.extend_from_slice(&status.uuid.0.to_be_bytes());
    answer.extend_from_slice(&status.persisted.0.to_be_bytes());
    answer.extend_from_slice(&status.high.0.to_be_bytes());
    if let Some((uuid, end)) = status.older_branch {
        answer.extend_from_slice(&uuid.0.to_be_bytes());
        answer.extend_from_slice(&end.0.to_be_bytes());
    }
    answer
}

/// SEQNO_PERSISTENCE.
pub(super) fn seqno_persistence(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(seqno) = awaited_seqno(request.frame.extras) else {
        request.reply(connection).fail(turn, Status::Einval, "the extras are a seqno");
        return Done::Answered;
    };
    match bucket.wait_for_persistence(turn.session, request.vbid(), Seqno(seqno)) {
        Ok(Attempted::Answered(())) => {
            request.reply(connection).done(turn);
            Done::Answered
        }
        Ok(Attempted::Waits) => Done::Parked,
        Err(refused) => refuse(connection, request, refused, turn),
    }
}

/// What SEQNO_PERSISTENCE waited for is persisted.
pub(super) fn persisted(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) {
    let took = turn.shared.clock.now().since(turn.request_started);
    if let Some(part) = &connection.bucket {
        let histogram = &part.bucket.timings().seqno_persistence;
        histogram.record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }
    request.reply(connection).done(turn);
}

/// GET_FAILOVER_LOG.
pub(super) fn failover_log(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let mut log = Vec::new();
    bucket.with_vbucket(request.vbid(), |vbucket| {
        for entry in vbucket.failover_entries() {
            log.extend_from_slice(&entry.uuid.0.to_be_bytes());
            log.extend_from_slice(&entry.seqno.0.to_be_bytes());
        }
    });
    if log.is_empty() {
        return refuse(connection, request, Refused::NotMyVbucket, turn);
    }
    let content = Content { payload: Payload::Bytes(&log), ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}

/// GET_ALL_VB_SEQNOS.
pub(super) fn all_seqnos(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let Some(asked) = AllVbSeqnos::parse(request.frame.extras) else {
        let reply = request.reply(connection);
        reply.fail(turn, Status::Einval, "the extras are a state and a collection, or less");
        return Done::Answered;
    };
    let knows_collections = connection.features.contains(Feature::Collections);
    if asked.collection.is_some() && !knows_collections {
        let reply = request.reply(connection);
        reply.fail(turn, Status::Einval, "collections were not negotiated");
        return Done::Answered;
    }
    let named = asked.collection.map(CollectionId);
    if let Some(id) = named {
        let is_known =
            id == CollectionId::DEFAULT || bucket.manifest().collection_of_id(id).is_some();
        if !is_known {
            unknown(connection, request, UNKNOWN_COLLECTION, turn);
            return Done::Answered;
        }
        if !connection.has_in(id, Privilege::Read, request, turn) {
            return Done::Answered;
        }
    }
    // Who does not know collections sees the default one alone.
    let collection = if knows_collections { named } else { Some(CollectionId::DEFAULT) };
    let receives_prepares = connection.receives_prepares();
    let mut seqnos = Vec::new();
    bucket.for_each_vbucket(|vbid, vbucket| {
        let is_asked_for = match asked.state {
            0 => vbucket.state() != VbucketState::Dead,
            state => vbucket.state() as u32 == state,
        };
        // What a client waits for has to be something that it can see.
        let seqno = match collection {
            None if receives_prepares => Some(vbucket.comparable_high_seqno()),
            None => Some(vbucket.comparable_visible_seqno()),
            Some(id) => vbucket.collection_high_seqno(id),
        };
        if let Some(seqno) = seqno.filter(|_| is_asked_for) {
            seqnos.extend_from_slice(&vbid.0.to_be_bytes());
            seqnos.extend_from_slice(&seqno.0.to_be_bytes());
        }
    });
    let content = Content { payload: Payload::Owned(seqnos), ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}
