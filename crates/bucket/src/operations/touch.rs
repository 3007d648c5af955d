//! TOUCH and GET-AND-TOUCH.

use document::{Cas, Item, ItemBuilder, ItemMeta, Key, Vbid};
use vbucket::{Found, Refusal, StoreMode, WriteCondition, Written};

use super::ATTEMPTS_MAX;
use crate::core::{Attempted, Bucket, Refused, Session};

impl Bucket {
    /// Gives a document another expiry (absolute, 0 for never) and returns it. When it has that
    /// expiry already nothing is written.
    pub fn touch(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
        expiry: u32,
    ) -> Result<Attempted<Found>, Refused> {
        let condition = WriteCondition::default();
        self.check_write_gate(vbid, key, &condition, 0)?;
        for _ in 0..ATTEMPTS_MAX {
            let now = self.time_of(session);
            let found = self
                .attempt(session, vbid, |vbucket, _| vbucket.get_for_write(key, condition, now));
            let Attempted::Answered(existing) = self.answer(session, vbid, found)? else {
                return Ok(Attempted::Waits);
            };
            if existing.expiry() == expiry {
                let found = Found { cas: existing.cas(), item: existing };
                return Ok(Attempted::Answered(found));
            }
            let builder = touched(&existing, expiry);
            let condition = WriteCondition { computed_from: Some(existing.seqno()), ..condition };
            let result = self.attempt(session, vbid, |vbucket, effects| {
                vbucket.store(StoreMode::Replace, builder, condition, now, effects)
            });
            match result {
                Err(Refusal::Changed) => {}
                result => {
                    let touched =
                        result.map(|written| Found { cas: cas_of(written), item: existing });
                    return self.answer(session, vbid, touched);
                }
            }
        }
        Err(Refused::Contended)
    }
}

fn cas_of(written: Written) -> Cas {
    written.done().expect("a document is not touched durably").cas
}

fn touched(existing: &Item, expiry: u32) -> ItemBuilder {
    ItemBuilder::new(existing.key(), ItemMeta { expiry, ..existing.meta() }, existing.value())
}
