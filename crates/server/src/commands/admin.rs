//! NOOP, VERSION, VERBOSITY, QUIT, FLUSH, EVICT_KEY.

use std::sync::Arc;
use std::time::Duration;

use bucket::Attempted;
use protocol::Status;

use super::documents::Document;
use super::refusals::refuse;
use crate::buckets::BucketPart;
use crate::completed::Completed;
use crate::connection::{Connection, Content, Done, Payload, Request, Turn};
use crate::emptying::Emptying;
use crate::statistics::count;

/// NOOP.
pub(super) fn noop(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    request.reply(connection).done(turn);
    Done::Answered
}

/// VERSION.
pub(super) fn version(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    let version = turn.shared.options.version.as_bytes();
    let content = Content { payload: Payload::Bytes(version), ..Content::default() };
    request.reply(connection).send(turn, content);
    Done::Answered
}

/// VERBOSITY: accepted, as clients expect; the log's level is the operator's business.
pub(super) fn verbosity(
    connection: &Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    request.reply(connection).done(turn);
    Done::Answered
}

/// QUIT.
pub(super) fn quit(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    if !request.is_quiet {
        request.reply(connection).done(turn);
    }
    Done::Close
}

/// FLUSH: empties the bucket, where the operator has enabled that. A thread that may wait for files
/// and other nodes does it.
pub(super) fn flush(
    connection: &mut Connection,
    request: &Request<'_>,
    part: &Arc<BucketPart>,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let Some(delay) = delay_of(request.frame.extras, turn) else {
        reply.fail(turn, Status::Einval, "the extras are a time of 4 bytes, or nothing");
        return Done::Answered;
    };
    match order_flush(part, delay, turn) {
        FlushOrder::Begun => return Done::Parked,
        FlushOrder::Taken if request.is_quiet => {}
        FlushOrder::Taken => reply.done(turn),
        FlushOrder::Stopping => reply.fail(turn, Status::Etmpfail, "the node is stopping"),
    }
    Done::Answered
}

/// What becomes of an order to empty the bucket.
pub(super) enum FlushOrder {
    /// The bucket is emptied later.
    Taken,
    /// It is being emptied, and the session's waiter hears of the end.
    Begun,
    /// Not any more.
    Stopping,
}

/// Has the bucket emptied after `delay`.
pub(super) fn order_flush(part: &BucketPart, delay: Duration, turn: &Turn<'_>) -> FlushOrder {
    let shared = turn.shared;
    count(&turn.bucket.commands.cmd_flush);
    let threads = (&shared.pool, &shared.owner);
    let emptying = Emptying::new(&part.bucket, shared.administrator.get());
    if !delay.is_zero() {
        let ordered = part.delayed_flush.order(threads, emptying, delay);
        return ordered.map_or(FlushOrder::Stopping, |()| FlushOrder::Taken);
    }
    part.delayed_flush.withdraw();
    let (waiter, mailboxes) = (turn.session.waiter, shared.mailboxes.clone());
    let done = move |result| mailboxes.complete_with(waiter, Completed::Flushed(result));
    let begun = emptying.begin(threads, Box::new(done));
    begun.map_or(FlushOrder::Stopping, |()| FlushOrder::Begun)
}

/// How long the client wants FLUSH to wait: seconds, or from 30 days on a time since 1970. Source:
/// memcached's protocol.txt, "Expiration times".
fn delay_of(extras: &[u8], turn: &Turn<'_>) -> Option<Duration> {
    const RELATIVE_SECONDS_MAX: u32 = 30 * 24 * 60 * 60;
    let seconds = match extras {
        [] => 0,
        _ => u32::from_be_bytes(extras.try_into().ok()?),
    };
    let is_absolute = seconds > RELATIVE_SECONDS_MAX;
    let past = if is_absolute { turn.now.wall.seconds() } else { 0 };
    Some(Duration::from_secs(seconds.saturating_sub(past).into()))
}

/// The bucket is empty, or could not be emptied.
pub(super) fn flushed(
    connection: &Connection,
    request: &Request<'_>,
    result: Result<(), String>,
    turn: &mut Turn<'_>,
) {
    let reply = request.reply(connection);
    match result {
        Ok(()) if request.is_quiet => {}
        Ok(()) => reply.done(turn),
        Err(why) => reply.fail(turn, Status::Etmpfail, &why),
    }
}

/// EVICT_KEY.
pub(super) fn evict(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    match bucket.evict(turn.session, request.vbid(), key.as_key()) {
        Ok(Attempted::Answered(())) => {
            request.reply(connection).done(turn);
            Done::Answered
        }
        Ok(Attempted::Waits) => Done::Parked,
        Err(refused) => refuse(connection, request, refused, turn),
    }
}
