//! `set`, `add`, `replace`, `append`, `prepend`, `cas`, and what `ms` has in common with them.

use bucket::{Addition, Bucket, Incoming, Placement, Refused, Write};
use document::{Cas, ItemBuilder, ItemMeta, Key};
use protocol::text::answer::TextOutcome;
use protocol::text::exptime::Exptime;
use protocol::text::request::{Reply, Request, StoreVerb};
use vbucket::{StoreMode, WriteCondition};

use super::documents::{expiry_of, key_of};
use super::executed::{Executed, outcome};
use super::operations::{self, NoResult, Stored, VBID_OF_LINES};
use super::refusals::refuse;
use crate::connection::Turn;
use crate::statistics::count;

/// A data block.
pub(crate) enum StoredValue<'a> {
    /// As it was received.
    Bytes(&'a [u8]),
    /// A large one, in the item that it was received into. Taken by the store that uses it.
    Built(&'a mut Option<ItemBuilder>),
}

/// What a store is to do, by whatever command it was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreOrder<'a> {
    pub(crate) verb: StoreVerb,
    pub(crate) name: &'a [u8],
    pub(crate) flags: u32,
    pub(crate) exptime: Exptime,
    pub(crate) condition: WriteCondition,
}

impl<'a> StoreOrder<'a> {
    /// What a request asks to be stored, if it does.
    pub(crate) fn of(request: &'a Request<'_>) -> Option<Self> {
        let (verb, name, flags, exptime, cas) = match request {
            Request::Store(store) => (store.verb, store.key, store.flags, store.exptime, store.cas),
            Request::Meta(meta) => {
                let options = &meta.options;
                let exptime = options.exptime.unwrap_or(Exptime(0));
                let name = meta.name.as_bytes();
                (options.store_verb, name, options.client_flags, exptime, options.cas)
            }
            _ => return None,
        };
        Some(Self { verb, name, flags, exptime, condition: condition(cas) })
    }

    /// Flags and expiry of a new document.
    pub(crate) fn meta(&self, bucket: &Bucket, turn: &Turn<'_>) -> ItemMeta {
        let expiry = expiry_of(bucket, self.exptime, turn);
        ItemMeta { flags: self.flags.to_be_bytes(), expiry, ..ItemMeta::default() }
    }
}

impl StoredValue<'_> {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Built(place) => (**place).as_ref().map_or(&[][..], ItemBuilder::value),
        }
    }

    /// Bytes of the block.
    pub(super) fn size(&self) -> usize {
        self.bytes().len()
    }
}

/// The condition of a write that may change one version, or any.
pub(super) fn condition(cas: Option<u64>) -> WriteCondition {
    let cas = match cas {
        None => Cas::ANY,
        // In lines this stands for itself, and no version has it.
        Some(0) => Cas::LOCKED,
        Some(cas) => Cas(cas),
    };
    WriteCondition { cas, ..WriteCondition::default() }
}

/// Carries out a classic store.
pub(super) fn store(
    bucket: &Bucket,
    request: &Request<'_>,
    mut value: StoredValue<'_>,
    turn: &mut Turn<'_>,
) -> Executed {
    let (Request::Store(store), Some(order)) = (request, StoreOrder::of(request)) else {
        return Executed::Answered;
    };
    let key = match key_of(store.key, turn) {
        Ok(key) => key,
        Err(executed) => return executed,
    };
    match carry_out(bucket, &order, key.as_key(), &mut value, turn) {
        Ok(_) => outcome(TextOutcome::Stored, store.reply, turn),
        Err(why) => not_stored(why, &order, store.reply, turn)
            .map_or_else(|executed| executed, |was| outcome(was, store.reply, turn)),
    }
}

/// The outcome of a store that did not happen, or the answer to one that was refused.
pub(super) fn not_stored(
    why: NoResult,
    order: &StoreOrder<'_>,
    reply: Reply,
    turn: &mut Turn<'_>,
) -> Result<TextOutcome, Executed> {
    let wants_version = order.condition.cas != Cas::ANY;
    match why {
        NoResult::Refused(Refused::CasMismatch) => Ok(TextOutcome::Exists),
        NoResult::Refused(Refused::NotFound) if wants_version => Ok(TextOutcome::NotFound),
        NoResult::Refused(Refused::NotFound | Refused::Exists | Refused::NotStored) => {
            Ok(TextOutcome::NotStored)
        }
        why => Err(refuse(why, reply, turn)),
    }
}

/// Has the bucket do what the order says.
pub(super) fn carry_out(
    bucket: &Bucket,
    order: &StoreOrder<'_>,
    key: Key<'_>,
    value: &mut StoredValue<'_>,
    turn: &mut Turn<'_>,
) -> Result<Stored, NoResult> {
    let result = match order.verb {
        StoreVerb::Set => put(bucket, StoreMode::Set, order, key, value, turn),
        StoreVerb::Add => put(bucket, StoreMode::Add, order, key, value, turn),
        StoreVerb::Replace => put(bucket, StoreMode::Replace, order, key, value, turn),
        StoreVerb::Append => add_to(bucket, Placement::Back, order, key, value, turn),
        StoreVerb::Prepend => add_to(bucket, Placement::Front, order, key, value, turn),
    };
    count_store(&result, order.condition.cas, turn);
    result
}

fn put(
    bucket: &Bucket,
    mode: StoreMode,
    order: &StoreOrder<'_>,
    key: Key<'_>,
    value: &mut StoredValue<'_>,
    turn: &mut Turn<'_>,
) -> Result<Stored, NoResult> {
    let (condition, size) = (order.condition, value.size());
    let mutation = match value {
        StoredValue::Bytes(bytes) => {
            let (meta, value) = (order.meta(bucket, turn), Incoming::plain(bytes));
            let write = Write { mode, vbid: VBID_OF_LINES, key, meta, value, condition };
            operations::store(bucket, write, turn)?
        }
        StoredValue::Built(place) => {
            // Before the value is given away: a store that waits keeps it, to be executed again.
            if place.is_some() && bucket.must_store_wait(turn.session, VBID_OF_LINES, key) {
                return Err(NoResult::Waits);
            }
            let Some(builder) = place.take() else { return Err(Refused::Contended.into()) };
            let builder = with_expiry(builder, order.meta(bucket, turn).expiry);
            operations::store_received(bucket, mode, builder, condition, turn)?
        }
    };
    Ok(Stored { size, mutation })
}

/// The item with the expiry of the order that is carried out: it was begun, when its block began to
/// come, with that of the order that was asked for.
fn with_expiry(builder: ItemBuilder, expiry: u32) -> ItemBuilder {
    if builder.meta().expiry == expiry {
        return builder;
    }
    let mut builder = builder.with_room_for_expiry();
    builder.set_expiry(expiry);
    builder
}

fn add_to(
    bucket: &Bucket,
    placement: Placement,
    order: &StoreOrder<'_>,
    key: Key<'_>,
    value: &StoredValue<'_>,
    turn: &mut Turn<'_>,
) -> Result<Stored, NoResult> {
    let added = Incoming::plain(value.bytes());
    let condition = order.condition;
    let addition = Addition { vbid: VBID_OF_LINES, key, placement, added, condition };
    operations::add_to(bucket, addition, turn)
}

fn count_store(result: &Result<Stored, NoResult>, cas: Cas, turn: &Turn<'_>) {
    let counters = &turn.bucket.commands;
    match result {
        Err(NoResult::Waits) => return,
        Ok(_) if cas != Cas::ANY => count(&counters.cas_hits),
        Err(NoResult::Refused(Refused::CasMismatch)) => count(&counters.cas_badval),
        Err(NoResult::Refused(Refused::NotFound)) if cas != Cas::ANY => {
            count(&counters.cas_misses);
        }
        _ => {}
    }
    count(&counters.cmd_set);
}
