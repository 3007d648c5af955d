//! SET, ADD, REPLACE.

use document::{ItemBuilder, ItemMeta, Key, Vbid};
use vbucket::{KeptXattrs, Mutation, Refusal, StoreMode, WriteCondition};

use super::ATTEMPTS_MAX;
use crate::bucket::Bucket;
use crate::refused::Refused;
use crate::session::Session;
use crate::value::{Incoming, check_size, inflated_builder, json_bit, with_body};

impl Bucket {
    /// Stores a document. `meta.datatype` is ignored: the server finds out itself.
    #[expect(clippy::too_many_arguments, reason = "each is a part of one request")]
    pub fn store(
        &self,
        session: &mut Session,
        mode: StoreMode,
        vbid: Vbid,
        key: Key<'_>,
        meta: ItemMeta,
        value: Incoming<'_>,
        condition: WriteCondition,
    ) -> Result<Mutation, Refused> {
        self.check_write_gate(vbid)?;
        let (stored, datatype) = value.checked(&self.0.compression)?;
        let builder = ItemBuilder::new(key, ItemMeta { datatype, ..meta }, &stored);
        self.store_built(session, mode, vbid, builder, condition)
    }

    /// Whether a store of `key` would have to wait for the file; then it is being read for the
    /// session's waiter. For whoever cannot keep a value that was given away for a store.
    pub fn must_store_wait(&self, session: &mut Session, vbid: Vbid, key: Key<'_>) -> bool {
        let known = self.attempt(session, vbid, |vbucket, _| vbucket.prepare_write(key));
        self.answer(session, vbid, known) == Err(Refused::Pending)
    }

    /// Stores a document whose value was received in its final place, not compressed.
    pub fn store_received(
        &self,
        session: &mut Session,
        mode: StoreMode,
        vbid: Vbid,
        mut builder: ItemBuilder,
        condition: WriteCondition,
    ) -> Result<Mutation, Refused> {
        self.check_write_gate(vbid)?;
        check_size(builder.value().len())?;
        builder.set_datatype(json_bit(builder.value()));
        self.store_built(session, mode, vbid, builder, condition)
    }

    fn store_built(
        &self,
        session: &mut Session,
        mode: StoreMode,
        vbid: Vbid,
        mut builder: ItemBuilder,
        condition: WriteCondition,
    ) -> Result<Mutation, Refused> {
        let mut condition = self.as_durable_as_configured(session, condition)?;
        for _ in 0..ATTEMPTS_MAX {
            let now = self.time_of(session);
            let result = self.attempt(session, vbid, |vbucket, effects| {
                vbucket.store(mode, builder, condition, now, effects)
            });
            let Err(Refusal::KeepsXattrs(kept)) = result else {
                return self.answer(session, vbid, result);
            };
            condition.computed_from = Some(kept.existing.seqno());
            builder = self.keeping_xattrs(&kept);
        }
        Err(Refused::Contended)
    }

    fn keeping_xattrs(&self, kept: &KeptXattrs) -> ItemBuilder {
        let body = inflated_builder(&kept.stored);
        with_body(&kept.existing, &body, kept.stored.meta(), &self.0.compression)
    }
}
