//! An item that is being made.

use platform::UniqueBytes;
use platform::accounts::AccountId;

use super::Item;
use super::layout::{
    CAS_AT, DATATYPE_BITS, EXPIRY_SIZE, FIXED_SIZE, FLAGS_AT, HAS_EXPIRY, LONG_REVISION,
    LONG_REVISION_SIZE, REVISION_AT, SEQNO_AT, SHORT_REVISION_MAX, concatenated, concatenated_as,
    header_of, header_size, meta_of, operation_of, step_header_of,
};
use super::words::{ItemMeta, Operation, U48_MAX};
use crate::datatype::Datatype;
use crate::ids::{Cas, RevSeqno, Seqno};
use crate::key::Key;

/// An item before its vBucket has given it its place in history.
pub struct ItemBuilder {
    block: UniqueBytes,
    value_at: usize,
    account: AccountId,
    heat: u8,
}

impl ItemBuilder {
    /// A document, or a tombstone, with this content.
    pub fn new(key: Key<'_>, meta: ItemMeta, value: &[u8]) -> Self {
        let (header, header_size) = header_of(key, meta);
        let block = UniqueBytes::concatenated(&[&header[..header_size], key.encoded(), value]);
        Self::of(block, header_size + key.encoded().len())
    }

    /// What `operation` says, with this content.
    pub fn step(key: Key<'_>, meta: ItemMeta, operation: Operation, value: &[u8]) -> Self {
        if operation == Operation::Mutation {
            return Self::new(key, meta, value);
        }
        let (header, header_size) = step_header_of(key, meta, operation);
        let block = concatenated(&[&header[..header_size], key.encoded(), value]);
        Self::of(block, header_size + key.encoded().len())
    }

    /// What `operation` says, with a value of `value_size` bytes, zeros at first, that is still to
    /// be filled in through [`ItemBuilder::value_mut`]: large values go from the socket straight to
    /// their place.
    pub fn with_room(
        key: Key<'_>,
        meta: ItemMeta,
        operation: Operation,
        value_size: usize,
    ) -> Self {
        let (header, header_size) = step_header_of(key, meta, operation);
        let value_at = header_size + key.encoded().len();
        let size = value_at + value_size;
        let mut block = match operation {
            Operation::Prepare(_) => UniqueBytes::zeroed_with_room(size),
            _ => UniqueBytes::zeroed(size),
        };
        block[..header_size].copy_from_slice(&header[..header_size]);
        block[header_size..value_at].copy_from_slice(key.encoded());
        Self::of(block, value_at)
    }

    fn of(block: UniqueBytes, value_at: usize) -> Self {
        Self { block, value_at, account: AccountId::NOBODY, heat: 0 }
    }

    /// The value.
    pub fn value(&self) -> &[u8] {
        &self.block[self.value_at..]
    }

    /// The value, to be filled in.
    pub fn value_mut(&mut self) -> &mut [u8] {
        &mut self.block[self.value_at..]
    }

    /// The key.
    pub fn key(&self) -> Key<'_> {
        Key::from_trusted(&self.block[header_size(&self.block)..self.value_at])
    }

    /// What the writer decided.
    pub fn meta(&self) -> ItemMeta {
        meta_of(&self.block)
    }

    /// Says what the value turned out to be.
    pub fn set_datatype(&mut self, datatype: Datatype) {
        self.block[0] = (self.block[0] & !DATATYPE_BITS) | datatype.bits();
    }

    /// Says when the document's time is over, in place.
    ///
    /// # Panics
    /// If it was built without an expiry and without [`ItemBuilder::with_room_for_expiry`].
    pub fn set_expiry(&mut self, expiry: u32) {
        assert!(self.block[0] & HAS_EXPIRY != 0, "there is room for an expiry");
        let field = &mut self.block[FIXED_SIZE..FIXED_SIZE + EXPIRY_SIZE];
        field.copy_from_slice(&expiry.to_be_bytes());
    }

    /// The same content with room for an expiry, which costs a copy unless there is some.
    #[must_use]
    pub fn with_room_for_expiry(self) -> Self {
        if self.block[0] & HAS_EXPIRY != 0 {
            return self;
        }
        let (fixed, rest) = self.block.split_at(FIXED_SIZE);
        let mut header = [0; FIXED_SIZE + EXPIRY_SIZE];
        header[..FIXED_SIZE].copy_from_slice(fixed);
        header[0] |= HAS_EXPIRY;
        let is_prepare = matches!(self.operation(), Operation::Prepare(_));
        let block = concatenated_as(is_prepare, &[&header, rest]);
        Self { block, value_at: self.value_at + EXPIRY_SIZE, ..self }
    }

    /// Bytes that the finished item takes from the allocator.
    pub fn allocation_size(&self) -> usize {
        self.block.allocation_size()
    }

    /// The finished item's memory counts for `account`.
    #[must_use]
    pub fn charged_to(self, account: AccountId) -> Self {
        Self { account, ..self }
    }

    /// The finished item begins with this frequency of use.
    #[must_use]
    pub fn with_heat(self, heat: u8) -> Self {
        Self { heat, ..self }
    }

    /// The same content as what `operation` says, which costs a copy unless it is that already.
    #[must_use]
    pub fn with_operation(self, operation: Operation) -> Self {
        if operation == self.operation() {
            return self;
        }
        let step = Self::step(self.key(), self.meta(), operation, self.value());
        Self { account: self.account, heat: self.heat, ..step }
    }

    /// What the item is to be in the history of its vBucket.
    pub fn operation(&self) -> Operation {
        operation_of(&self.block)
    }

    /// Gives the item its place in the history of its vBucket.
    pub fn finish(self, cas: Cas, seqno: Seqno, revision: RevSeqno) -> Item {
        let (account, heat) = (self.account, self.heat);
        let mut block = self.placed(cas, seqno, revision);
        block.charge(account);
        block.set_heat(heat);
        Item(block.share())
    }

    /// The block with the item's place in history.
    pub(super) fn placed(mut self, cas: Cas, seqno: Seqno, revision: RevSeqno) -> UniqueBytes {
        assert!(seqno.0 <= U48_MAX, "a seqno has 48 bits");
        let revision = revision.0.min(U48_MAX);
        if revision > SHORT_REVISION_MAX {
            self = self.with_long_revision(revision >> 24);
        }
        let block = &mut self.block;
        block[REVISION_AT..FLAGS_AT].copy_from_slice(&revision.to_be_bytes()[5..]);
        block[SEQNO_AT..CAS_AT].copy_from_slice(&seqno.0.to_be_bytes()[2..]);
        block[CAS_AT..FIXED_SIZE].copy_from_slice(&cas.0.to_be_bytes());
        self.block
    }

    fn with_long_revision(self, high_bits: u64) -> Self {
        let old_header_size = header_size(&self.block);
        let high = high_bits.to_be_bytes();
        let (header, rest) = self.block.split_at(old_header_size);
        let mut block = concatenated(&[header, &high[5..], rest]);
        block[0] |= LONG_REVISION;
        Self { block, value_at: self.value_at + LONG_REVISION_SIZE, ..self }
    }
}
