//! `ms`, `md`, `ma`. Source: memcached's protocol.txt, "Meta Set", "Meta Delete" and "Meta
//! Arithmetic".

use bucket::{Bucket, CounterRequest, Incoming, Refused, Write, body_of};
use document::key::KeyBuf;
use document::{Cas, Item, expiry};
use protocol::text::answer::{Facts, MetaHead, Recaching, TextOutcome, meta_line};
use protocol::text::exptime::Exptime;
use protocol::text::meta::{Meta, MetaVerb};
use protocol::text::request::{Reply, Request, StoreVerb};
use vbucket::{Mutation, StoreMode};

use super::change::{count_arithmetic, count_delete};
use super::documents::{expiry_of, key_of, ttl};
use super::executed::Executed;
use super::operations::{self, NoResult, Stored, VBID_OF_LINES};
use super::refusals::refuse;
use super::store::{StoreOrder, StoredValue, carry_out, condition, not_stored};
use super::{meta_get, recaching};
use crate::connection::{KnownOfLine, Turn};

/// How often a document is read and changed that others change meanwhile.
const ATTEMPTS_MAX: usize = 100;

/// `ms`.
pub(super) fn store(
    bucket: &Bucket,
    request: &Request<'_>,
    meta: &Meta<'_>,
    mut value: StoredValue<'_>,
    turn: &mut Turn<'_>,
) -> Executed {
    let Some(mut order) = StoreOrder::of(request) else { return Executed::Answered };
    let key = match key_of(order.name, turn) {
        Ok(key) => key,
        Err(executed) => return executed,
    };
    let overtaken = match overtaking(bucket, &order, &key, meta, turn) {
        Ok(overtaken) => overtaken,
        Err(executed) => return executed,
    };
    if let Some(cas) = overtaken {
        order.condition.cas = cas;
        order.condition.preserve_expiry = true;
    }
    match add_or_make(bucket, &order, meta.options.vivify, &key, &mut value, turn) {
        Ok(Stored { size, mutation }) => {
            if overtaken.is_some() {
                recaching::mark_stale(bucket, order.name, overtaken, mutation.cas, turn);
            }
            let facts = Facts { cas: mutation.cas.0, size, ..Facts::default() };
            answer(TextOutcome::Stored, meta, Some(facts), turn)
        }
        Err(why) => match (why, overtaken) {
            (NoResult::Begun(_), Some(before)) => Executed::Begun(KnownOfLine::Overtaken(before)),
            _ => not_stored(why, &order, Reply::Wanted, turn)
                .map_or_else(|executed| executed, |was| answer(was, meta, None, turn)),
        },
    }
}

/// Carries out a store. What could not be added to a document (`N`) becomes a new one, unless
/// another client has made that meanwhile.
fn add_or_make(
    bucket: &Bucket,
    order: &StoreOrder<'_>,
    vivify: Option<Exptime>,
    key: &KeyBuf,
    value: &mut StoredValue<'_>,
    turn: &mut Turn<'_>,
) -> Result<Stored, NoResult> {
    for _ in 0..ATTEMPTS_MAX {
        let result = carry_out(bucket, order, key.as_key(), value, turn);
        let was_missing = matches!(result, Err(NoResult::Refused(Refused::NotStored)));
        let Some(exptime) = vivify.filter(|_| was_missing) else { return result };
        let made = StoreOrder { verb: StoreVerb::Add, exptime, ..*order };
        // A copy of what an addition has left where it is, which may have to be added once more.
        let mut copied = StoredValue::Bytes(value.bytes());
        match carry_out(bucket, &made, key.as_key(), &mut copied, turn) {
            Err(NoResult::Refused(Refused::Exists)) => {}
            result => return result,
        }
    }
    Err(Refused::Contended.into())
}

/// The version that a store of an older one may replace all the same (`I`): what is stored is then
/// stale at once.
fn overtaking(
    bucket: &Bucket,
    order: &StoreOrder<'_>,
    key: &KeyBuf,
    meta: &Meta<'_>,
    turn: &mut Turn<'_>,
) -> Result<Option<Cas>, Executed> {
    let Some(cas) = meta.options.cas.filter(|_| meta.options.invalidates) else { return Ok(None) };
    if !matches!(order.verb, StoreVerb::Set | StoreVerb::Replace) {
        return Ok(None);
    }
    match operations::metadata(bucket, key.as_key(), turn) {
        Ok(found) if is_live(&found.item, turn) && cas < found.item.cas().0 => {
            Ok(Some(found.item.cas()))
        }
        Ok(_) | Err(NoResult::Refused(Refused::NotFound)) => Ok(None),
        Err(why) => Err(refuse(why, Reply::Wanted, turn)),
    }
}

fn is_live(item: &Item, turn: &Turn<'_>) -> bool {
    !item.is_deleted() && !expiry::is_past(item.expiry(), turn.now.wall.seconds())
}

/// `md`: deletes a document, or marks it as stale, or takes its value away.
pub(super) fn delete(bucket: &Bucket, meta: &Meta<'_>, turn: &mut Turn<'_>) -> Executed {
    let name = meta.name.as_bytes();
    let key = match key_of(name, turn) {
        Ok(key) => key,
        Err(executed) => return executed,
    };
    let options = &meta.options;
    let stays = options.invalidates || options.removes_value;
    let result = if stays {
        keep(bucket, &key, meta, turn)
    } else {
        operations::delete(bucket, key.as_key(), condition(options.cas), turn)
    };
    count_delete(result.as_ref().map(|_| ()), turn);
    match result {
        Ok(mutation) => {
            if options.invalidates {
                recaching::mark_stale(bucket, name, None, mutation.cas, turn);
            }
            answer(TextOutcome::Deleted, meta, Some(facts_of(mutation)), turn)
        }
        Err(NoResult::Refused(Refused::NotFound)) => {
            answer(TextOutcome::NotFound, meta, None, turn)
        }
        Err(NoResult::Refused(Refused::CasMismatch)) => {
            answer(TextOutcome::Exists, meta, None, turn)
        }
        Err(why) => refuse(why, Reply::Wanted, turn),
    }
}

/// Gives a document another version: the same, with its new expiry, or without its value.
fn keep(
    bucket: &Bucket,
    key: &KeyBuf,
    meta: &Meta<'_>,
    turn: &mut Turn<'_>,
) -> Result<Mutation, NoResult> {
    let options = &meta.options;
    let exptime = options.exptime.filter(|_| options.invalidates);
    for _ in 0..ATTEMPTS_MAX {
        let item = operations::read(bucket, key.as_key(), None, turn)?.item;
        if options.cas.is_some_and(|cas| cas != item.cas().0) {
            return Err(Refused::CasMismatch.into());
        }
        let (body, _) = body_of(&item, false);
        let mut kept = item.meta();
        kept.expiry = match exptime {
            Some(exptime) => expiry_of(bucket, exptime, turn),
            None => item.expiry(),
        };
        let body = if options.removes_value { &[][..] } else { &*body };
        if options.removes_value {
            kept.flags = [0; 4];
        }
        let write = Write {
            mode: StoreMode::Replace,
            meta: kept,
            condition: condition(Some(item.cas().0)),
            ..Write::set(VBID_OF_LINES, key.as_key(), Incoming::plain(body))
        };
        match operations::store(bucket, write, turn) {
            Err(NoResult::Refused(Refused::CasMismatch)) => {}
            result => return result,
        }
    }
    Err(Refused::Contended.into())
}

/// `ma`.
pub(super) fn count(bucket: &Bucket, meta: &Meta<'_>, turn: &mut Turn<'_>) -> Executed {
    let key = match key_of(meta.name.as_bytes(), turn) {
        Ok(key) => key,
        Err(executed) => return executed,
    };
    let options = &meta.options;
    let absolute = |exptime: Exptime| expiry_of(bucket, exptime, turn);
    let order = CounterRequest {
        is_increment: !options.is_decrement,
        delta: options.delta,
        created_with: options.vivify.map(|exptime| (options.initial, absolute(exptime))),
        expiry: options.exptime.map(absolute),
    };
    let condition = condition(options.cas);
    let result = operations::count(bucket, key.as_key(), order, condition, turn);
    count_arithmetic(order.is_increment, result.as_ref().map(|_| ()), turn);
    match result {
        Ok(counter) => {
            let (name, before) = (meta.name.as_bytes(), counter.computed_from);
            recaching::carry_on(bucket, name, before, counter.mutation.cas, turn);
            let ttl_seconds = ttl(counter.expiry, turn);
            let facts = Facts { ttl_seconds, ..facts_of(counter.mutation) };
            answer_number(counter.number, meta, facts, turn)
        }
        Err(NoResult::Refused(Refused::NotFound)) => {
            answer(TextOutcome::NotFound, meta, None, turn)
        }
        Err(NoResult::Refused(Refused::CasMismatch)) => {
            answer(TextOutcome::Exists, meta, None, turn)
        }
        Err(why) => refuse(why, Reply::Wanted, turn),
    }
}

/// Answers a durable write that has been committed.
pub(super) fn committed(
    bucket: &Bucket,
    meta: &Meta<'_>,
    mutation: Mutation,
    known: KnownOfLine,
    turn: &mut Turn<'_>,
) -> Executed {
    let mut facts = facts_of(mutation);
    let name = meta.name.as_bytes();
    if let Ok(key) = KeyBuf::in_default_collection(name)
        && let Ok(found) = operations::metadata(bucket, key.as_key(), turn)
    {
        facts.ttl_seconds = ttl(found.item.expiry(), turn);
        facts.size = body_of(&found.item, false).0.len();
    }
    // Another client may have changed the document meanwhile.
    facts.size = known.body_size().unwrap_or(facts.size);
    if let (MetaVerb::Store, KnownOfLine::Overtaken(before)) = (meta.verb, known) {
        recaching::mark_stale(bucket, name, Some(before), mutation.cas, turn);
    }
    recaching::carry_on(bucket, name, known.computed_from(), mutation.cas, turn);
    match meta.verb {
        MetaVerb::Get => meta_get::vivified(bucket, meta, mutation, turn),
        MetaVerb::Count => answer_number(known.number().unwrap_or_default(), meta, facts, turn),
        MetaVerb::Delete if meta.options.invalidates => {
            recaching::mark_stale(bucket, name, None, mutation.cas, turn);
            answer(TextOutcome::Deleted, meta, Some(facts), turn)
        }
        MetaVerb::Store | MetaVerb::Delete | MetaVerb::Debug => {
            answer(TextOutcome::Stored, meta, Some(facts), turn)
        }
    }
}

fn facts_of(mutation: Mutation) -> Facts {
    Facts { cas: mutation.cas.0, ..Facts::default() }
}

fn answer_number(number: u64, meta: &Meta<'_>, facts: Facts, turn: &mut Turn<'_>) -> Executed {
    if !meta.options.wants_value {
        return answer(TextOutcome::Stored, meta, Some(facts), turn);
    }
    if meta.options.is_quiet {
        return Executed::Answered;
    }
    let digits = number.to_string();
    let out = &mut turn.output.buffer;
    let head = MetaHead::Value(digits.len());
    meta_line(out, head, meta, Some(facts), Recaching::default());
    protocol::text::answer::line(out, &digits);
    Executed::Answered
}

/// Answers an outcome, unless it is the usual one and the client does not want to hear of that.
fn answer(
    outcome: TextOutcome,
    meta: &Meta<'_>,
    facts: Option<Facts>,
    turn: &mut Turn<'_>,
) -> Executed {
    let is_usual = facts.is_some();
    if !(is_usual && meta.options.is_quiet) {
        let head = MetaHead::Code(outcome.code());
        meta_line(&mut turn.output.buffer, head, meta, facts, Recaching::default());
    }
    Executed::Answered
}
