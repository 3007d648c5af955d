//! One version of a document: key, value and metadata in one immutable, shared allocation.
//!
//! Hash table, checkpoint, flusher and streams hold the same allocation; a mutation makes a new
//! one. A 16-byte name with a 32-byte value takes 72 bytes.
//!
//! A prepare's block has room for the seqno of its commit: the commit is that block's sequel, with
//! the prepare's content, CAS and revision in place. Elsewhere, and where a copy was made of it, a
//! commit is a block of its own.

mod builder;
mod form;
mod layout;
mod words;

use std::fmt;

use platform::accounts::AccountId;
use platform::{SharedBytes, UniqueBytes};

use self::layout::{
    CAS_AT, DATATYPE_BITS, DELETED, KEY_LENGTH_AT, VALUE_EJECTED, concatenated, deletion_bits,
    deletion_of, field, flags_of, header_size, meta_of, operation_of, revision_of, seqno_of,
};
use crate::datatype::Datatype;
use crate::ids::{Cas, RevSeqno, Seqno};
use crate::key::Key;

pub use self::builder::ItemBuilder;
pub use self::words::{Deletion, ItemMeta, Operation, U48_MAX};

/// One version of a document. Cloning shares.
#[derive(Clone)]
pub struct Item(SharedBytes);

impl Item {
    /// The key.
    pub fn key(&self) -> Key<'_> {
        let start = header_size(&self.0);
        Key::from_trusted(&self.0[start..start + usize::from(self.0[KEY_LENGTH_AT])])
    }

    /// Has metadata and key fetched while the caller does something else.
    #[inline]
    pub fn prefetch(&self) {
        self.0.prefetch();
    }

    /// The value: xattr section and body, compressed when the datatype says so. Empty when
    /// [`Item::is_ejected`].
    pub fn value(&self) -> &[u8] {
        &self.0[self.value_offset()..]
    }

    /// What the writer decided.
    pub fn meta(&self) -> ItemMeta {
        meta_of(&self.0)
    }

    /// What the value is.
    pub fn datatype(&self) -> Datatype {
        Datatype::from_bits(self.0[0] & DATATYPE_BITS).unwrap_or_default()
    }

    /// The client's flags.
    pub fn flags(&self) -> [u8; 4] {
        flags_of(&self.0)
    }

    /// Seconds since the epoch, 0 for never; of a deleted item, when it was deleted.
    pub fn expiry(&self) -> u32 {
        self.meta().expiry
    }

    /// Set for a tombstone.
    pub fn deletion(&self) -> Option<Deletion> {
        deletion_of(deletion_bits(&self.0))
    }

    /// Whether this is a tombstone.
    pub fn is_deleted(&self) -> bool {
        deletion_bits(&self.0) & DELETED != 0
    }

    /// What it is in the history of its vBucket.
    pub fn operation(&self) -> Operation {
        match self.0.sequel() {
            None => operation_of(&self.0),
            Some(_) => Operation::Commit { prepare: Seqno(seqno_of(&self.0)) },
        }
    }

    /// How much the document is used: the eviction's probabilistic counter.
    pub fn heat(&self) -> u8 {
        self.0.heat()
    }

    /// Sets how much the document is used, for all who share this version.
    pub fn set_heat(&self, heat: u8) {
        self.0.set_heat(heat);
    }

    /// What was set last for this handle of it, or the one that it was cloned from; 0 at first.
    /// Read without touching the document.
    #[inline]
    pub fn tag(&self) -> u16 {
        self.0.tag()
    }

    /// Sets a tag, for what the keeper of this handle would keep beside it.
    #[inline]
    pub fn set_tag(&mut self, tag: u16) {
        self.0.set_tag(tag);
    }

    /// For whom its memory counts.
    pub fn account(&self) -> AccountId {
        self.0.account()
    }

    /// The same version, counted for `account`: a copy if somebody else holds it, or it counts for
    /// another account already.
    #[must_use]
    pub fn charged_to(mut self, account: AccountId) -> Self {
        if self.0.charge_if_alone(account) {
            return self;
        }
        self.copied_to(account)
    }

    /// The same version in memory of its own, wherever the allocator has room now.
    #[must_use]
    pub fn moved(&self) -> Self {
        self.copied_to(self.account())
    }

    /// Where it is in memory: a number to be compared with others, until it moves.
    pub fn address(&self) -> usize {
        self.0.as_ptr().addr()
    }

    /// Whether somebody else holds it, or of a prepare what it has become, or the other way round.
    /// Only a hint where other threads clone and drop.
    pub fn is_shared(&self) -> bool {
        self.0.owner_count() > 1
    }

    /// The same for who holds both halves of durable writes: those are no others.
    pub fn is_shared_beyond_its_write(&self) -> bool {
        let half_count = match self.operation() {
            Operation::Prepare(_) | Operation::Commit { .. } => 2,
            Operation::Mutation | Operation::Abort { .. } => 1,
        };
        self.0.owner_count() > half_count
    }

    fn copied_to(&self, account: AccountId) -> Self {
        let mut block = self.block_with(self.value());
        block.charge(account);
        let copy = block.share();
        copy.set_heat(self.heat());
        Self(copy)
    }

    /// A block of its own for this version with another value.
    fn block_with(&self, value: &[u8]) -> UniqueBytes {
        if self.0.sequel().is_some() {
            let builder = ItemBuilder::step(self.key(), self.meta(), self.operation(), value);
            return builder.placed(self.cas(), self.seqno(), self.revision());
        }
        concatenated(&[&self.0[..self.value_offset()], value])
    }

    /// Whether the value is only in the file, this being the metadata.
    pub fn is_ejected(&self) -> bool {
        self.0[0] & VALUE_EJECTED != 0
    }

    /// The version.
    pub fn cas(&self) -> Cas {
        Cas(u64::from_be_bytes(field(&self.0, CAS_AT)))
    }

    /// The place in the history of the vBucket.
    pub fn seqno(&self) -> Seqno {
        Seqno(self.0.sequel().unwrap_or_else(|| seqno_of(&self.0)))
    }

    /// How often the document has changed.
    pub fn revision(&self) -> RevSeqno {
        RevSeqno(revision_of(&self.0))
    }

    /// What a prepare has become as of `seqno`: the document, with the prepare's content, CAS and
    /// revision. Both share their memory; only a prepare that has been committed at another seqno,
    /// and is still in memory after a rollback, is copied.
    ///
    /// # Panics
    /// If this is no prepare.
    #[must_use]
    pub fn committed(&self, seqno: Seqno) -> Self {
        assert!(seqno.0 <= U48_MAX, "a seqno has 48 bits");
        let meta = self.prepared_meta();
        if let Some(commit) = self.0.with_sequel(seqno.0) {
            // How much the document is used is not known of its prepare.
            commit.set_heat(0);
            return Self(commit);
        }
        let operation = Operation::Commit { prepare: self.seqno() };
        let builder = ItemBuilder::step(self.key(), meta, operation, self.value());
        builder.charged_to(self.account()).finish(self.cas(), seqno, self.revision())
    }

    /// The end at `seqno` of a prepare that becomes nothing, at `now` in seconds since 1970. It has
    /// no value.
    ///
    /// # Panics
    /// If this is no prepare.
    #[must_use]
    pub fn aborted(&self, seqno: Seqno, now: u32) -> Self {
        let operation = Operation::Abort { prepare: self.seqno() };
        let meta = ItemMeta {
            expiry: now,
            datatype: Datatype::RAW,
            deletion: Some(Deletion::Explicit),
            ..self.prepared_meta()
        };
        let builder = ItemBuilder::step(self.key(), meta, operation, &[]);
        builder.charged_to(self.account()).finish(self.cas(), seqno, self.revision())
    }

    fn prepared_meta(&self) -> ItemMeta {
        assert!(matches!(self.operation(), Operation::Prepare(_)), "a prepare is ended");
        self.meta()
    }

    /// This version without its value, for a document whose value stays in the file alone. It
    /// counts for the same account and has not been used yet.
    #[must_use]
    pub fn ejected(&self) -> Self {
        let mut block = self.block_with(&[]);
        block[0] |= VALUE_EJECTED;
        block.charge(self.account());
        Self(block.share())
    }

    /// This version with its value in another form, which `datatype` names. It counts for the same
    /// account and is used as much.
    #[must_use]
    pub fn with_value(&self, datatype: Datatype, value: &[u8]) -> Self {
        let mut block = self.block_with(value);
        block[0] = (block[0] & !DATATYPE_BITS & !VALUE_EJECTED) | datatype.bits();
        block.charge(self.account());
        let copy = block.share();
        copy.set_heat(self.heat());
        Self(copy)
    }

    /// Bytes that this item takes from the allocator, its rounding left out.
    pub fn allocation_size(&self) -> usize {
        self.0.allocation_size()
    }

    fn value_offset(&self) -> usize {
        header_size(&self.0) + usize::from(self.0[KEY_LENGTH_AT])
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Item")
            .field("key", &self.key())
            .field("seqno", &self.seqno().0)
            .field("cas", &self.cas().0)
            .field("revision", &self.revision().0)
            .field("operation", &self.operation())
            .field("meta", &self.meta())
            .field("value_bytes", &self.value().len())
            .finish()
    }
}

#[cfg(test)]
mod tests;
