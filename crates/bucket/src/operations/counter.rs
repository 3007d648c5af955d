//! INCREMENT and DECREMENT.

use document::{Datatype, Item, ItemBuilder, ItemMeta, Key, Vbid};
use vbucket::{Mutation, Refusal, StoreMode, WriteCondition};

use super::ATTEMPTS_MAX;
use crate::bucket::Bucket;
use crate::refused::Refused;
use crate::session::Session;
use crate::value::{body_of, with_body};

/// A change of a counter: a document whose body is a decimal number of 64 bits.
#[derive(Clone, Copy, Debug)]
pub struct CounterRequest {
    /// Up (wrapping at 2^64) or down (stopping at 0).
    pub is_increment: bool,
    /// By how much.
    pub delta: u64,
    /// What a counter is created with: its number and its absolute expiry. `None`: not created.
    pub created_with: Option<(u64, u32)>,
}

/// A counter that has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its number now.
    pub number: u64,
    /// The version that holds it.
    pub mutation: Mutation,
}

impl Bucket {
    /// Changes a counter. The condition's CAS is ignored: counters have none.
    pub fn count(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
        request: CounterRequest,
        condition: WriteCondition,
    ) -> Result<Counter, Refused> {
        self.check_write_gate(vbid)?;
        let condition = self.as_durable_as_configured(session, condition)?;
        for _ in 0..ATTEMPTS_MAX {
            let now = self.time_of(session);
            let found = self
                .attempt(session, vbid, |vbucket, _| vbucket.get_for_write(key, condition, now));
            let (number, builder, mode, computed_from) = match self.answer(session, vbid, found) {
                Ok(existing) => {
                    let number = request.applied_to(number_of(&existing)?);
                    let builder = self.counter_version(&existing, number);
                    (number, builder, StoreMode::Replace, Some(existing.seqno()))
                }
                Err(Refused::NotFound) => {
                    let (number, expiry) = request.created_with.ok_or(Refused::NotFound)?;
                    (number, new_counter(key, number, expiry), StoreMode::Add, None)
                }
                Err(refused) => return Err(refused),
            };
            let condition = WriteCondition { computed_from, ..condition };
            let result = self.attempt(session, vbid, |vbucket, effects| {
                vbucket.store(mode, builder, condition, now, effects)
            });
            match result {
                Err(Refusal::Changed | Refusal::Exists) => {}
                Err(Refusal::SyncWriteBegun) => return Err(Refused::SyncWriteBegun(Some(number))),
                result => {
                    let mutation = self.answer(session, vbid, result)?;
                    return Ok(Counter { number, mutation });
                }
            }
        }
        Err(Refused::Contended)
    }

    fn counter_version(&self, existing: &Item, number: u64) -> ItemBuilder {
        let text = number.to_string();
        with_body(existing, text.as_bytes(), existing.meta(), &self.0.compression)
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

fn new_counter(key: Key<'_>, number: u64, expiry: u32) -> ItemBuilder {
    let meta = ItemMeta { expiry, datatype: Datatype::JSON, ..ItemMeta::default() };
    ItemBuilder::new(key, meta, number.to_string().as_bytes())
}

/// The number in a document: one to twenty digits and nothing else.
fn number_of(item: &Item) -> Result<u64, Refused> {
    let (body, _) = body_of(item, false);
    let is_digits = !body.is_empty() && body.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(&body).ok().filter(|_| is_digits);
    text.and_then(|text| text.parse().ok()).ok_or(Refused::NotANumber)
}
