//! `mg` and `me`. Source: memcached's protocol.txt, "Meta Get" and "Meta Debug".

use bucket::{Bucket, Incoming, Refused, Write};
use document::ItemMeta;
use document::key::KeyBuf;
use protocol::text::answer::{self, Facts, LINE_END, MetaHead, Recaching, debug_line, meta_line};
use protocol::text::exptime::Exptime;
use protocol::text::meta::Meta;
use protocol::text::request::Reply;
use vbucket::{Found, Mutation, StoreMode};

use super::documents::{expiry_of, facts_of, key_of, send_value, ttl};
use super::executed::Executed;
use super::operations::{self, NoResult, VBID_OF_LINES};
use super::recaching;
use super::refusals::refuse;
use super::retrieve::count_read;
use crate::connection::Turn;
use crate::recache_marks::MarkedRead;

/// How often a document is looked for that comes and goes.
const ATTEMPTS_MAX: usize = 3;
const MISS: &str = "EN";

/// `mg`.
pub(super) fn get(bucket: &Bucket, meta: &Meta<'_>, turn: &mut Turn<'_>) -> Executed {
    let key = match key_of(meta.name.as_bytes(), turn) {
        Ok(key) => key,
        Err(executed) => return executed,
    };
    for _ in 0..ATTEMPTS_MAX {
        let found = find(bucket, &key, meta.options.exptime, turn);
        match found {
            Ok(found) => return answer_with(bucket, meta, &found, turn),
            Err(NoResult::Refused(Refused::NotFound)) => {}
            Err(why) => return refuse(why, Reply::Wanted, turn),
        }
        let Some(exptime) = meta.options.vivify else { return miss(meta, turn) };
        match vivify(bucket, &key, exptime, turn) {
            Ok(mutation) => return vivified(bucket, meta, mutation, turn),
            // Another client has made it meanwhile.
            Err(NoResult::Refused(Refused::Exists)) => {}
            Err(why) => return refuse(why, Reply::Wanted, turn),
        }
    }
    refuse(Refused::Contended.into(), Reply::Wanted, turn)
}

fn find(
    bucket: &Bucket,
    key: &KeyBuf,
    touch: Option<Exptime>,
    turn: &mut Turn<'_>,
) -> Result<Found, NoResult> {
    let touch = touch.map(|exptime| expiry_of(bucket, exptime, turn));
    let found = operations::read(bucket, key.as_key(), touch, turn);
    count_read(touch.is_some(), found.as_ref().map(|_| ()), turn);
    found
}

fn answer_with(bucket: &Bucket, meta: &Meta<'_>, found: &Found, turn: &mut Turn<'_>) -> Executed {
    let Found { item, cas } = found;
    let touched = meta.options.exptime.map(|exptime| expiry_of(bucket, exptime, turn));
    let expiry = touched.unwrap_or(item.expiry());
    let facts = facts_of(item, *cas, expiry, turn);
    // What was found is the version in front of the touch: how long that one had left decides.
    let may_win = match (meta.options.recache_seconds, ttl(item.expiry(), turn)) {
        (Some(least), Some(left)) => i64::from(left) < least,
        _ => false,
    };
    let (cas, cas_after) = (item.cas(), recaching::cas_behind(found));
    let read = MarkedRead { cas, cas_after, may_win, now: turn.now.monotonic };
    let recaching = recaching::read(bucket, meta.name.as_bytes(), read, turn);
    if meta.options.wants_value && meta.options.cas != Some(cas.0) {
        let head = |out: &mut Vec<u8>, size| {
            meta_line(out, MetaHead::Value(size), meta, Some(facts), recaching);
        };
        send_value(item, head, turn);
    } else {
        let out = &mut turn.output.buffer;
        meta_line(out, MetaHead::Code("HD"), meta, Some(facts), recaching);
    }
    Executed::Answered
}

fn miss(meta: &Meta<'_>, turn: &mut Turn<'_>) -> Executed {
    if !meta.options.is_quiet {
        let out = &mut turn.output.buffer;
        meta_line(out, MetaHead::Code(MISS), meta, None, Recaching::default());
    }
    Executed::Answered
}

/// Makes an empty document, which the client that wanted it is to fill.
fn vivify(
    bucket: &Bucket,
    key: &KeyBuf,
    exptime: Exptime,
    turn: &mut Turn<'_>,
) -> Result<Mutation, NoResult> {
    let expiry = expiry_of(bucket, exptime, turn);
    let meta = ItemMeta { expiry, ..ItemMeta::default() };
    let set = Write::set(VBID_OF_LINES, key.as_key(), Incoming::plain(&[]));
    operations::store(bucket, Write { mode: StoreMode::Add, meta, ..set }, turn)
}

/// Answers that the document was made.
pub(super) fn vivified(
    bucket: &Bucket,
    meta: &Meta<'_>,
    mutation: Mutation,
    turn: &mut Turn<'_>,
) -> Executed {
    let recaching = recaching::mark_vivified(bucket, meta.name.as_bytes(), mutation.cas, turn);
    let exptime = meta.options.vivify.unwrap_or(Exptime(0));
    let ttl_seconds = ttl(expiry_of(bucket, exptime, turn), turn);
    let facts = Facts { cas: mutation.cas.0, ttl_seconds, ..Facts::default() };
    let out = &mut turn.output.buffer;
    if meta.options.wants_value {
        meta_line(out, MetaHead::Value(0), meta, Some(facts), recaching);
        out.extend_from_slice(LINE_END);
    } else {
        meta_line(out, MetaHead::Code("HD"), meta, Some(facts), recaching);
    }
    Executed::Answered
}

/// `me`: what is known of a document, for people.
pub(super) fn debug(bucket: &Bucket, meta: &Meta<'_>, turn: &mut Turn<'_>) -> Executed {
    let key = match key_of(meta.name.as_bytes(), turn) {
        Ok(key) => key,
        Err(executed) => return executed,
    };
    match operations::read(bucket, key.as_key(), None, turn) {
        Ok(Found { item, cas }) => {
            let facts = facts_of(&item, cas, item.expiry(), turn);
            debug_line(&mut turn.output.buffer, meta, facts);
            Executed::Answered
        }
        Err(NoResult::Refused(Refused::NotFound)) => {
            answer::line(&mut turn.output.buffer, MISS);
            Executed::Answered
        }
        Err(why) => refuse(why, Reply::Wanted, turn),
    }
}
