//! `delete`, `incr`, `decr`, `touch`.

use bucket::{Bucket, CounterRequest, Refused};
use protocol::text::answer::{self, TextOutcome};
use protocol::text::exptime::Exptime;
use protocol::text::request::{Count, Reply};
use vbucket::{Mutation, WriteCondition};

use super::documents::{expiry_of, key_of};
use super::executed::{Executed, outcome};
use super::operations::{self, NoResult};
use super::recaching;
use super::refusals::refuse;
use super::retrieve::count_read;
use crate::connection::{KnownOfLine, Turn};
use crate::statistics;

/// `delete`.
pub(super) fn delete(bucket: &Bucket, name: &[u8], reply: Reply, turn: &mut Turn<'_>) -> Executed {
    let key = match key_of(name, turn) {
        Ok(key) => key,
        Err(executed) => return executed,
    };
    let result = operations::delete(bucket, key.as_key(), WriteCondition::default(), turn);
    count_delete(result.as_ref().map(|_| ()), turn);
    match result {
        Ok(_) => outcome(TextOutcome::Deleted, reply, turn),
        Err(NoResult::Refused(Refused::NotFound)) => outcome(TextOutcome::NotFound, reply, turn),
        Err(why) => refuse(why, reply, turn),
    }
}

/// Counts a deletion that has come to an outcome.
pub(super) fn count_delete(result: Result<(), &NoResult>, turn: &Turn<'_>) {
    let counters = &turn.bucket.commands;
    match result {
        Ok(()) => statistics::count(&counters.delete_hits),
        Err(NoResult::Refused(Refused::NotFound)) => statistics::count(&counters.delete_misses),
        Err(_) => return,
    }
    statistics::count(&counters.cmd_delete);
}

/// `incr`, `decr`.
pub(super) fn count(bucket: &Bucket, count: &Count<'_>, turn: &mut Turn<'_>) -> Executed {
    let key = match key_of(count.key, turn) {
        Ok(key) => key,
        Err(executed) => return executed,
    };
    let Count { is_increment, delta, reply, .. } = *count;
    let order = CounterRequest { is_increment, delta, created_with: None, expiry: None };
    let condition = WriteCondition::default();
    let result = operations::count(bucket, key.as_key(), order, condition, turn);
    count_arithmetic(is_increment, result.as_ref().map(|_| ()), turn);
    match result {
        Ok(counter) => {
            let before = counter.computed_from;
            recaching::carry_on(bucket, count.key, before, counter.mutation.cas, turn);
            number(counter.number, reply, turn)
        }
        Err(NoResult::Refused(Refused::NotFound)) => outcome(TextOutcome::NotFound, reply, turn),
        Err(why) => refuse(why, reply, turn),
    }
}

/// Answers a durable change of a counter that has been committed.
pub(super) fn committed(
    bucket: &Bucket,
    count: &Count<'_>,
    mutation: Mutation,
    known: KnownOfLine,
    turn: &mut Turn<'_>,
) -> Executed {
    recaching::carry_on(bucket, count.key, known.computed_from(), mutation.cas, turn);
    number(known.number().unwrap_or_default(), count.reply, turn)
}

fn number(number: u64, reply: Reply, turn: &mut Turn<'_>) -> Executed {
    if reply == Reply::Wanted {
        answer::number(&mut turn.output.buffer, number);
    }
    Executed::Answered
}

/// Counts a change of a counter that has come to an outcome.
pub(super) fn count_arithmetic(is_increment: bool, result: Result<(), &NoResult>, turn: &Turn<'_>) {
    let counters = &turn.bucket.commands;
    let counter = match (result, is_increment) {
        (Ok(()), true) => &counters.incr_hits,
        (Ok(()), false) => &counters.decr_hits,
        (Err(NoResult::Refused(Refused::NotFound)), true) => &counters.incr_misses,
        (Err(NoResult::Refused(Refused::NotFound)), false) => &counters.decr_misses,
        (Err(_), _) => return,
    };
    statistics::count(counter);
    statistics::count(&counters.cmd_arithmetic);
}

/// `touch`.
pub(super) fn touch(
    bucket: &Bucket,
    name: &[u8],
    exptime: Exptime,
    reply: Reply,
    turn: &mut Turn<'_>,
) -> Executed {
    let key = match key_of(name, turn) {
        Ok(key) => key,
        Err(executed) => return executed,
    };
    let expiry = expiry_of(bucket, exptime, turn);
    let result = operations::read(bucket, key.as_key(), Some(expiry), turn);
    count_read(true, result.as_ref().map(|_| ()), turn);
    match result {
        Ok(found) => {
            recaching::touched(bucket, name, &found, turn);
            outcome(TextOutcome::Touched, reply, turn)
        }
        Err(NoResult::Refused(Refused::NotFound)) => outcome(TextOutcome::NotFound, reply, turn),
        Err(why) => refuse(why, reply, turn),
    }
}
