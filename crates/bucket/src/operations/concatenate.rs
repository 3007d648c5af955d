//! APPEND and PREPEND.

use document::{Item, Key, Vbid};
use vbucket::{Mutation, Refusal, StoreMode, WriteCondition};

use super::ATTEMPTS_MAX;
use crate::bucket::Bucket;
use crate::refused::Refused;
use crate::session::Session;
use crate::value::{Incoming, body_of, check_size, inflated_incoming, with_body};

/// Where the new bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In front of the body.
    Front,
    /// Behind it.
    Back,
}

impl Bucket {
    /// Adds bytes to the body of a document; flags, expiry and xattrs stay.
    pub fn concatenate(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
        placement: Placement,
        added: Incoming<'_>,
        condition: WriteCondition,
    ) -> Result<Mutation, Refused> {
        self.check_write_gate(vbid)?;
        let condition = self.as_durable_as_configured(session, condition)?;
        let added = inflated_incoming(added)?;
        for _ in 0..ATTEMPTS_MAX {
            let now = self.time_of(session);
            let found = self
                .attempt(session, vbid, |vbucket, _| vbucket.get_for_write(key, condition, now));
            let existing = match self.answer(session, vbid, found) {
                Err(Refused::NotFound) => return Err(Refused::NotStored),
                result => result?,
            };
            let body = concatenated(&existing, placement, &added)?;
            let builder = with_body(&existing, &body, existing.meta(), &self.0.compression);
            let condition = WriteCondition { computed_from: Some(existing.seqno()), ..condition };
            let result = self.attempt(session, vbid, |vbucket, effects| {
                vbucket.store(StoreMode::Replace, builder, condition, now, effects)
            });
            match result {
                Err(Refusal::Changed) => {}
                result => return self.answer(session, vbid, result),
            }
        }
        Err(Refused::Contended)
    }
}

fn concatenated(existing: &Item, placement: Placement, added: &[u8]) -> Result<Vec<u8>, Refused> {
    let (body, _) = body_of(existing, false);
    check_size(body.len().saturating_add(added.len()))?;
    Ok(match placement {
        Placement::Front => [added, &body].concat(),
        Placement::Back => [&body, added].concat(),
    })
}
