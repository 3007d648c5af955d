//! SET, ADD, REPLACE.

use document::{ItemBuilder, ItemMeta, Key, Vbid};
use vbucket::{KeptXattrs, Refusal, StoreMode, WriteCondition, Written};

use super::ATTEMPTS_MAX;
use super::value::{Incoming, check_size, inflated_builder, json_bit, with_body};
use crate::core::{Attempted, Bucket, Refused, Session};

/// A document that a client stores.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// What must be there.
    pub mode: StoreMode,
    /// Where it belongs.
    pub vbid: Vbid,
    /// What it is called.
    pub key: Key<'a>,
    /// Flags and expiry; `datatype` is ignored: the server finds out itself.
    pub meta: ItemMeta,
    /// Its body.
    pub value: Incoming<'a>,
    /// Which version it may replace, and how durable it is to be.
    pub condition: WriteCondition,
}

impl<'a> Write<'a> {
    /// A plain SET: whatever was there, without flags and expiry.
    pub fn set(vbid: Vbid, key: Key<'a>, value: Incoming<'a>) -> Self {
        let (meta, condition) = (ItemMeta::default(), WriteCondition::default());
        Self { mode: StoreMode::Set, vbid, key, meta, value, condition }
    }
}

impl Bucket {
    /// Stores a document.
    pub fn store(
        &self,
        session: &mut Session,
        write: Write<'_>,
    ) -> Result<Attempted<Written>, Refused> {
        let Write { mode, vbid, key, meta, value, condition } = write;
        self.check_write_gate(vbid, &condition, value.body.len())?;
        let (stored, datatype) = value.checked(self.0.memory.compression())?;
        let condition = self.as_durable_as_configured(session, condition)?;
        let (meta, operation) = (ItemMeta { datatype, ..meta }, condition.operation());
        let builder = ItemBuilder::step(key, meta, operation, &stored);
        self.store_built(session, mode, vbid, builder, condition)
    }

    /// Whether a store of `key` would have to wait for the file; then it is being read for the
    /// session's waiter. For whoever cannot keep a value that was given away for a store.
    pub fn must_store_wait(&self, session: &mut Session, vbid: Vbid, key: Key<'_>) -> bool {
        let known = self.attempt(session, vbid, |vbucket, _| vbucket.prepare_write(key));
        self.answer(session, vbid, known) == Ok(Attempted::Waits)
    }

    /// Stores a document whose value was received in its final place, not compressed: best in a
    /// builder of what [`Bucket::operation_of`] says.
    pub fn store_received(
        &self,
        session: &mut Session,
        mode: StoreMode,
        vbid: Vbid,
        mut builder: ItemBuilder,
        condition: WriteCondition,
    ) -> Result<Attempted<Written>, Refused> {
        self.check_write_gate(vbid, &condition, builder.value().len())?;
        check_size(builder.value().len())?;
        builder.set_datatype(json_bit(builder.value()));
        let condition = self.as_durable_as_configured(session, condition)?;
        let builder = builder.with_operation(condition.operation());
        self.store_built(session, mode, vbid, builder, condition)
    }

    fn store_built(
        &self,
        session: &mut Session,
        mode: StoreMode,
        vbid: Vbid,
        mut builder: ItemBuilder,
        mut condition: WriteCondition,
    ) -> Result<Attempted<Written>, Refused> {
        for _ in 0..ATTEMPTS_MAX {
            if condition.preserve_expiry {
                builder = builder.with_room_for_expiry();
            }
            let now = self.time_of(session);
            let result = self.attempt(session, vbid, |vbucket, effects| {
                vbucket.store(mode, builder, condition, now, effects)
            });
            let Err(Refusal::KeepsXattrs(kept)) = result else {
                return self.answer(session, vbid, result);
            };
            condition.computed_from = Some(kept.existing.seqno());
            builder = self.keeping_xattrs(&kept)?;
        }
        Err(Refused::Contended)
    }

    fn keeping_xattrs(&self, kept: &KeptXattrs) -> Result<ItemBuilder, Refused> {
        let (body, compression) = (inflated_builder(&kept.stored), self.0.memory.compression());
        let (meta, operation) = (kept.stored.meta(), kept.stored.operation());
        with_body(&kept.existing, &body, meta, operation, compression)
    }
}
