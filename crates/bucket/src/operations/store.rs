//! SET, ADD, REPLACE.

use document::{ItemBuilder, ItemMeta, Key, RevSeqno, Vbid};
use vbucket::{KeptXattrs, Mutation, Refusal, StoreMode, Vbucket, WriteCondition, Written};

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
        self.store_telling(session, write, Demands::Any, |_, written| written)
    }

    /// Stores a document and says how often it has changed by then.
    ///
    /// # Errors
    /// [`Refused::InvalidDurabilityLevel`] where the write is, or has to be, a durable one.
    pub fn store_counted(
        &self,
        session: &mut Session,
        write: Write<'_>,
    ) -> Result<Attempted<(Mutation, RevSeqno)>, Refused> {
        let key = write.key;
        let tell = |vbucket: &Vbucket, written| counted(vbucket, key, written);
        self.store_telling(session, write, Demands::NoDurability, tell)
    }

    /// Stores a document, and answers what `tell` makes of that under the vBucket's lock.
    fn store_telling<T>(
        &self,
        session: &mut Session,
        write: Write<'_>,
        demands: Demands,
        tell: impl Fn(&Vbucket, Written) -> T,
    ) -> Result<Attempted<T>, Refused> {
        let Write { mode, vbid, key, meta, value, condition } = write;
        self.check_write_gate(vbid, key, &condition, value.body.len())?;
        let (stored, datatype) = value.checked(self.0.memory.compression())?;
        let condition = self.as_durable_as_configured(session, condition)?;
        demands.check(&condition)?;
        let (meta, operation) = (ItemMeta { datatype, ..meta }, condition.operation());
        let builder = ItemBuilder::step(key, meta, operation, &stored);
        self.store_built(session, (mode, vbid), builder, condition, tell)
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
        self.check_write_gate(vbid, builder.key(), &condition, builder.value().len())?;
        check_size(builder.value().len())?;
        builder.set_datatype(json_bit(builder.value()));
        let condition = self.as_durable_as_configured(session, condition)?;
        let builder = builder.with_operation(condition.operation());
        self.store_built(session, (mode, vbid), builder, condition, |_, written| written)
    }

    fn store_built<T>(
        &self,
        session: &mut Session,
        (mode, vbid): (StoreMode, Vbid),
        mut builder: ItemBuilder,
        mut condition: WriteCondition,
        tell: impl Fn(&Vbucket, Written) -> T,
    ) -> Result<Attempted<T>, Refused> {
        // What the client has sent, while the builder has the xattrs of a version with it.
        let mut sent = None;
        for _ in 0..ATTEMPTS_MAX {
            if condition.preserve_expiry {
                builder = builder.with_room_for_expiry();
            }
            let now = self.time_of(session);
            let result = self.attempt(session, vbid, |vbucket, effects| {
                let written = vbucket.store(mode, builder, condition, now, effects)?;
                Ok(tell(vbucket, written))
            });
            match result {
                Err(Refusal::KeepsXattrs(kept)) => {
                    // What is kept are the xattrs of this version: another one may have others.
                    condition.computed_from = Some(kept.existing.seqno());
                    builder = self.keeping_xattrs(&kept)?;
                    sent = Some(kept.stored);
                }
                Err(Refusal::Changed) => {
                    let Some(plain) = sent.take() else { return Err(Refused::Contended) };
                    condition.computed_from = None;
                    builder = plain;
                }
                result => return self.answer(session, vbid, result),
            }
        }
        Err(Refused::Contended)
    }

    /// Deletes a document and says how often it had changed by then. The bucket must not demand
    /// durable writes.
    ///
    /// # Errors
    /// As those of [`Self::store_counted`].
    pub fn delete_counted(
        &self,
        session: &mut Session,
        vbid: Vbid,
        key: Key<'_>,
        condition: WriteCondition,
    ) -> Result<Attempted<(Mutation, RevSeqno)>, Refused> {
        self.check_disk(vbid, Some(key))?;
        let condition = self.as_durable_as_configured(session, condition)?;
        Demands::NoDurability.check(&condition)?;
        let now = self.time_of(session);
        let result = self.attempt(session, vbid, |vbucket, effects| {
            let written = vbucket.delete(key, condition, now, effects)?;
            Ok(counted(vbucket, key, written))
        });
        self.answer(session, vbid, result)
    }

    fn keeping_xattrs(&self, kept: &KeptXattrs) -> Result<ItemBuilder, Refused> {
        let (body, compression) = (inflated_builder(&kept.stored), self.0.memory.compression());
        let (meta, operation) = (kept.stored.meta(), kept.stored.operation());
        with_body(&kept.existing, &body, meta, operation, compression)
    }
}

/// What whoever asks for a write makes of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Demands {
    Any,
    /// It must be done at once. What a bucket demands may have changed since that was looked at.
    NoDurability,
}

impl Demands {
    fn check(self, condition: &WriteCondition) -> Result<(), Refused> {
        if self == Self::NoDurability && condition.sync_write.is_some() {
            return Err(Refused::InvalidDurabilityLevel);
        }
        Ok(())
    }
}

/// A write that is done, and how often its document has changed by then.
fn counted(vbucket: &Vbucket, key: Key<'_>, written: Written) -> (Mutation, RevSeqno) {
    let mutation = written.done().expect("no durable write was let in");
    let revision = vbucket.revision_in_memory(key).expect("what was written is in memory");
    (mutation, revision)
}
