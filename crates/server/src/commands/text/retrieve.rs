//! `get`, `gets`, `gat`, `gats`: one key of them.

use bucket::{Bucket, Refused};
use protocol::text::answer::value_head;
use protocol::text::request::{Reply, Retrieval};

use super::documents::{expiry_of, key_of, send_value};
use super::executed::Executed;
use super::operations::{NoResult, read};
use super::recaching;
use super::refusals::refuse;
use crate::connection::Turn;
use crate::statistics::count;

/// Answers with the document, if there is one.
pub(super) fn get(
    bucket: &Bucket,
    name: &[u8],
    retrieval: Retrieval,
    turn: &mut Turn<'_>,
) -> Executed {
    let key = match key_of(name, turn) {
        Ok(key) => key,
        Err(executed) => return executed,
    };
    let touch = retrieval.touch.map(|exptime| expiry_of(bucket, exptime, turn));
    let found = read(bucket, key.as_key(), touch, turn);
    count_read(retrieval.touch.is_some(), found.as_ref().map(|_| ()), turn);
    let found = match found {
        Ok(found) => found,
        Err(NoResult::Refused(Refused::NotFound)) => return Executed::Answered,
        Err(why) => return refuse(why, Reply::Wanted, turn),
    };
    if touch.is_some() {
        recaching::touched(bucket, name, &found, turn);
    }
    let flags = u32::from_be_bytes(found.item.flags());
    let cas = retrieval.with_cas.then_some(found.cas.0);
    send_value(&found.item, |out, size| value_head(out, name, flags, size, cas), turn);
    Executed::Answered
}

/// Counts a read that has come to an outcome.
pub(super) fn count_read(touches: bool, found: Result<(), &NoResult>, turn: &Turn<'_>) {
    let counters = &turn.bucket.commands;
    let is_hit = match found {
        Ok(()) => true,
        Err(NoResult::Refused(Refused::NotFound)) => false,
        Err(_) => return,
    };
    if touches {
        count(&counters.cmd_touch);
        count(if is_hit { &counters.touch_hits } else { &counters.touch_misses });
    } else {
        count(&counters.cmd_get);
        count(if is_hit { &counters.get_hits } else { &counters.get_misses });
    }
}
