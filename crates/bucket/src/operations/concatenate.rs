//! APPEND and PREPEND.

use document::{Item, Key, Vbid};
use vbucket::{Refusal, StoreMode, WriteCondition, Written};

use super::ATTEMPTS_MAX;
use super::value::{Incoming, body_of, check_size, inflated_incoming, with_body};
use crate::core::{Attempted, Bucket, Refused, Session};

/// Where the new bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In front of the body.
    Front,
    /// Behind it.
    Back,
}

/// Bytes that a client adds to a document.
#[derive(Clone, Copy, Debug)]
pub struct Addition<'a> {
    /// Where the document belongs.
    pub vbid: Vbid,
    /// What it is called.
    pub key: Key<'a>,
    /// Where the bytes go.
    pub placement: Placement,
    /// The bytes.
    pub added: Incoming<'a>,
    /// Which version they may be added to, and how durable the new one is to be.
    pub condition: WriteCondition,
}

/// A document to which bytes were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concatenated {
    /// Bytes of its body now, or once it is written.
    pub body_size: usize,
    /// The version that holds it.
    pub written: Written,
}

impl Bucket {
    /// Adds bytes to the body of a document; flags, expiry and xattrs stay.
    pub fn concatenate(
        &self,
        session: &mut Session,
        addition: Addition<'_>,
    ) -> Result<Attempted<Concatenated>, Refused> {
        let Addition { vbid, key, placement, added, condition } = addition;
        self.check_write_gate(vbid, key, &condition, added.body.len())?;
        let condition = self.as_durable_as_configured(session, condition)?;
        let added = inflated_incoming(added)?;
        for _ in 0..ATTEMPTS_MAX {
            let now = self.time_of(session);
            let found = self
                .attempt(session, vbid, |vbucket, _| vbucket.get_for_write(key, condition, now));
            let existing = match self.answer(session, vbid, found) {
                Ok(Attempted::Answered(existing)) => existing,
                Ok(Attempted::Waits) => return Ok(Attempted::Waits),
                Err(Refused::NotFound) => return Err(Refused::NotStored),
                Err(refused) => return Err(refused),
            };
            let body = concatenated(&existing, placement, &added)?;
            let (meta, operation) = (existing.meta(), condition.operation());
            let compression = self.0.memory.compression();
            let builder = with_body(&existing, &body, meta, operation, compression)?;
            let condition = WriteCondition { computed_from: Some(existing.seqno()), ..condition };
            let result = self.attempt(session, vbid, |vbucket, effects| {
                vbucket.store(StoreMode::Replace, builder, condition, now, effects)
            });
            match result {
                Err(Refusal::Changed) => {}
                result => {
                    let body_size = body.len();
                    let result = result.map(|written| Concatenated { body_size, written });
                    return self.answer(session, vbid, result);
                }
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
