//! INCREMENT and DECREMENT.

use document::{Cas, Datatype, Item, ItemBuilder, ItemMeta, Key, Operation, Vbid};
use vbucket::{Refusal, StoreMode, WriteCondition, Written};

use super::ATTEMPTS_MAX;
use super::value::{body_of, with_body};
use crate::core::{Attempted, Bucket, Refused, Session};

/// A change of a counter: a document whose body is a decimal number of 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct CounterRequest {
    /// Up (wrapping at 2^64) or down (stopping at 0).
    pub is_increment: bool,
    /// By how much.
    pub delta: u64,
    /// What a counter is created with: its number and its absolute expiry. `None`: not created.
    pub created_with: Option<(u64, u32)>,
    /// The absolute expiry that a counter which is there has from now on. `None`: as before.
    pub expiry: Option<u32>,
}

/// A counter that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its number now, or once it is written.
    pub number: u64,
    /// Its absolute expiry.
    pub expiry: u32,
    /// The version that it was computed from; `None` for one that is new.
    pub computed_from: Option<Cas>,
    /// The version that holds it.
    pub written: Written,
}

impl Bucket {
    /// Changes a counter.
    pub fn count(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
        request: CounterRequest,
        condition: WriteCondition,
    ) -> Result<Attempted<Counter>, Refused> {
        self.check_write_gate(vbid, key, &condition, 0)?;
        let condition = self.as_durable_as_configured(session, condition)?;
        for _ in 0..ATTEMPTS_MAX {
            let now = self.time_of(session);
            let found = self
                .attempt(session, vbid, |vbucket, _| vbucket.get_for_write(key, condition, now));
            let (number, builder, mode, computed_from) = match self.answer(session, vbid, found) {
                Ok(Attempted::Answered(existing)) => {
                    let number = request.applied_to(number_of(&existing)?);
                    let operation = condition.operation();
                    let builder =
                        self.counter_version(&existing, number, request.expiry, operation)?;
                    let computed_from = Some((existing.seqno(), existing.cas()));
                    (number, builder, StoreMode::Replace, computed_from)
                }
                Ok(Attempted::Waits) => return Ok(Attempted::Waits),
                Err(Refused::NotFound) => {
                    let (number, expiry) = request.created_with.ok_or(Refused::NotFound)?;
                    let builder = new_counter(key, number, expiry, condition.operation());
                    (number, builder, StoreMode::Add, None)
                }
                Err(refused) => return Err(refused),
            };
            let expiry = builder.meta().expiry;
            let (seqno, computed_from) = computed_from.unzip();
            let condition = WriteCondition { computed_from: seqno, ..condition };
            let result = self.attempt(session, vbid, |vbucket, effects| {
                vbucket.store(mode, builder, condition, now, effects)
            });
            match result {
                Err(Refusal::Changed | Refusal::Exists) => {}
                result => {
                    let counted =
                        result.map(|written| Counter { number, expiry, computed_from, written });
                    return self.answer(session, vbid, counted);
                }
            }
        }
        Err(Refused::Contended)
    }

    fn counter_version(
        &self,
        existing: &Item,
        number: u64,
        expiry: Option<u32>,
        operation: Operation,
    ) -> Result<ItemBuilder, Refused> {
        let (text, meta) = (number.to_string(), existing.meta());
        let meta = ItemMeta { expiry: expiry.unwrap_or(meta.expiry), ..meta };
        with_body(existing, text.as_bytes(), meta, operation, self.0.memory.compression())
    }
}

impl CounterRequest {
    fn applied_to(self, number: u64) -> u64 {
        if self.is_increment {
            number.wrapping_add(self.delta)
        } else {
            number.saturating_sub(self.delta)
        }
    }
}

fn new_counter(key: Key<'_>, number: u64, expiry: u32, operation: Operation) -> ItemBuilder {
    let meta = ItemMeta { expiry, datatype: Datatype::JSON, ..ItemMeta::default() };
    ItemBuilder::step(key, meta, operation, number.to_string().as_bytes())
}

/// The number in a document: digits and nothing else, of a value that 64 bits hold.
fn number_of(item: &Item) -> Result<u64, Refused> {
    let (body, _) = body_of(item, false);
    let is_digits = !body.is_empty() && body.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(&body).ok().filter(|_| is_digits);
    text.and_then(|text| text.parse().ok()).ok_or(Refused::NotANumber)
}
