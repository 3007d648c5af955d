//! INCREMENT, DECREMENT.

use bucket::{Attempted, Counter, CounterRequest};
use protocol::request::CounterExtras;
use protocol::{Opcode, Status};
use vbucket::Written;

use super::documents::{Document, absolute_expiry, count_attempt};
use super::refusals::refuse;
use super::store::condition;
use crate::connection::{Connection, Done, KnownAnswer, Request, Turn};
use crate::statistics;

/// Changes a counter and answers its number.
pub(super) fn count(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    let Some(extras) = CounterExtras::parse(request.frame.extras) else {
        request.reply(connection).fail(turn, Status::Einval, "the extras have the wrong size");
        return Done::Answered;
    };
    let created_with = match extras.create_expiry {
        None => None,
        Some(requested) => match absolute_expiry(connection, request, document, requested, turn) {
            Ok(expiry) => Some((extras.initial, expiry)),
            Err(done) => return done,
        },
    };
    let counter_request = CounterRequest {
        is_increment: request.opcode == Opcode::Increment,
        delta: extras.delta,
        created_with,
        expiry: None,
    };
    let condition = condition(request, bucket, turn);
    let (vbid, key) = (request.vbid(), key.as_key());
    let result = bucket.count(turn.session, vbid, key, counter_request, condition);
    count_attempt(&turn.bucket.commands.cmd_arithmetic, &result);
    match result {
        Ok(Attempted::Answered(Counter { number, written: Written::Done(mutation), .. })) => {
            let counters = &turn.bucket.commands;
            let is_increment = request.opcode == Opcode::Increment;
            statistics::count(if is_increment { &counters.incr_hits } else { &counters.decr_hits });
            if !request.is_quiet {
                request.reply(connection).mutated(turn, mutation, &number.to_be_bytes());
            }
            Done::Answered
        }
        Ok(Attempted::Answered(Counter { number, written: Written::Begun, .. })) => {
            Done::Begun(KnownAnswer::Number(number))
        }
        Ok(Attempted::Waits) => Done::Parked,
        Err(refused) => refuse(connection, request, refused, turn),
    }
}
