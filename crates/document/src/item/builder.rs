//! An item that is being made.

use platform::UniqueBytes;
use platform::accounts::AccountId;

use super::Item;
use super::layout::{
    CAS_AT, DATATYPE_BITS, EXPIRY_SIZE, FIXED_SIZE, HAS_EXPIRY, Header, concatenated,
    concatenated_as, has_room_for, header_size, meta_of, operation_of, put_place, widened,
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
        let header = Header::new(key, meta, Operation::Mutation, value.len());
        let block = UniqueBytes::concatenated(&[header.bytes(), key.encoded(), value]);
        Self::of(block, header.bytes().len() + key.encoded().len())
    }

    /// What `operation` says, with this content.
    pub fn step(key: Key<'_>, meta: ItemMeta, operation: Operation, value: &[u8]) -> Self {
        if operation == Operation::Mutation {
            return Self::new(key, meta, value);
        }
        let header = Header::new(key, meta, operation, value.len());
        let block = concatenated(&[header.bytes(), key.encoded(), value]);
        Self::of(block, header.bytes().len() + key.encoded().len())
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
        let header = Header::new(key, meta, operation, value_size);
        let header_size = header.bytes().len();
        let value_at = header_size + key.encoded().len();
        let size = value_at + value_size;
        let mut block = match operation {
            Operation::Prepare(_) => UniqueBytes::zeroed_with_room(size),
            _ => UniqueBytes::zeroed(size),
        };
        block[..header_size].copy_from_slice(header.bytes());
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
        if !has_room_for(&self.block, revision, seqno.0) {
            let header = widened(&self.block);
            let rest = &self.block[header_size(&self.block)..];
            self.block = concatenated(&[header.bytes(), rest]);
        }
        put_place(&mut self.block, revision, seqno.0);
        self.block[CAS_AT..FIXED_SIZE].copy_from_slice(&cas.0.to_be_bytes());
        self.block
    }
}
