//! TOUCH and GET-AND-TOUCH.

use document::{Item, ItemBuilder, ItemMeta, Key, Vbid};
use vbucket::{Found, Refusal, StoreMode, WriteCondition};

use super::ATTEMPTS_MAX;
use crate::bucket::Bucket;
use crate::refused::Refused;
use crate::session::Session;

impl Bucket {
    /// Gives a document another expiry (absolute, 0 for never) and returns it. When it has that
    /// expiry already nothing is written.
    pub fn touch(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
        expiry: u32,
    ) -> Result<Found, Refused> {
        self.check_write_gate(vbid)?;
        let condition = WriteCondition::default();
        for _ in 0..ATTEMPTS_MAX {
            let now = self.time_of(session);
            let found = self
                .attempt(session, vbid, |vbucket, _| vbucket.get_for_write(key, condition, now));
            let existing = self.answer(session, vbid, found)?;
            if existing.expiry() == expiry {
                return Ok(Found { cas: existing.cas(), item: existing });
            }
            let builder = touched(&existing, expiry);
            let condition = WriteCondition { computed_from: Some(existing.seqno()), ..condition };
            let result = self.attempt(session, vbid, |vbucket, effects| {
                vbucket.store(StoreMode::Replace, builder, condition, now, effects)
            });
            match result {
                Err(Refusal::Changed) => {}
                result => {
                    let mutation = self.answer(session, vbid, result)?;
                    return Ok(Found { item: existing, cas: mutation.cas });
                }
            }
        }
        Err(Refused::Contended)
    }
}

fn touched(existing: &Item, expiry: u32) -> ItemBuilder {
    ItemBuilder::new(existing.key(), ItemMeta { expiry, ..existing.meta() }, existing.value())
}
