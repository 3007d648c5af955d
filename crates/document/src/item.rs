//! One version of a document: key, value and metadata in one immutable, shared allocation.
//!
//! Hash table, checkpoint, flusher and streams hold the same allocation; a mutation makes a new
//! one. In memory, behind the eight bytes of [`SharedBytes`]:
//!
//! ```text
//! offset  size
//!      0     1  bits: 0-2 datatype, 3 deleted, 4 deleted by expiry, 5 has expiry, 6 long revision,
//!               7 value ejected; 4 without 3: part of a durable write, see the operation byte
//!      1     1  key length
//!      2     3  revision, low 24 bits
//!      5     4  flags, as the client sent them
//!      9     6  seqno
//!     15     8  CAS
//!     23     4  expiry (bit 5): seconds since the epoch; of a deleted item, when it was deleted
//!      +     1  operation byte (bit 4 without 3): 0-1 operation, 3 deleted, 4 deleted by expiry,
//!               5-6 durability level of a prepare
//!      +     6  of a commit or an abort, the seqno of the prepare that it ends
//!      +     3  revision, high 24 bits (bit 6)
//!      +        key (collection as LEB128, name), value
//! ```
//!
//! A 16-byte name with a 32-byte value takes 80 bytes, an allocator's size class.

use std::fmt;

use platform::accounts::AccountId;
use platform::{SharedBytes, UniqueBytes};

use crate::datatype::Datatype;
use crate::durability::DurabilityLevel;
use crate::ids::{Cas, RevSeqno, Seqno};
use crate::key::Key;

const DATATYPE_BITS: u8 = 0x07;
const DELETED: u8 = 0x08;
const DELETED_BY_EXPIRY: u8 = 0x10;
const HAS_EXPIRY: u8 = 0x20;
const LONG_REVISION: u8 = 0x40;
const VALUE_EJECTED: u8 = 0x80;

const KEY_LENGTH_AT: usize = 1;
const REVISION_AT: usize = 2;
const FLAGS_AT: usize = 5;
const SEQNO_AT: usize = 9;
const CAS_AT: usize = 15;
const FIXED_SIZE: usize = 23;
const EXPIRY_SIZE: usize = 4;
const OPERATION_SIZE: usize = 1;
const OPERATION_BITS: u8 = 0x03;
const PREPARE: u8 = 1;
const COMMIT: u8 = 2;
const ABORT: u8 = 3;
const LEVEL_SHIFT: u32 = 5;
const LEVEL_BITS: u8 = 0x03;
/// Bytes of the prepare's seqno in a commit or an abort.
const PREPARE_SEQNO_SIZE: usize = 6;
const LONG_REVISION_SIZE: usize = 3;
const SHORT_REVISION_MAX: u64 = 0xff_ffff;
const HEADER_SIZE_MAX: usize = FIXED_SIZE + EXPIRY_SIZE + OPERATION_SIZE + PREPARE_SEQNO_SIZE;

/// Seqnos and revisions have 48 bits on disk and here.
pub const U48_MAX: u64 = 0xffff_ffff_ffff;

/// How a document was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// By a request.
    Explicit,
    /// Because its time was over.
    Expired,
}

/// What an item is in the history of its vBucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    /// A document or its tombstone, visible at once.
    #[default]
    Mutation,
    /// The first half of a durable write of this level: visible to nobody yet.
    Prepare(DurabilityLevel),
    /// The document that a prepare has become.
    Commit {
        /// The seqno of the prepare.
        prepare: Seqno,
    },
    /// The end of a prepare that will never be visible.
    Abort {
        /// The seqno of the prepare.
        prepare: Seqno,
    },
}

impl Operation {
    /// Whether it belongs to a key's prepared namespace rather than to its committed one.
    pub fn is_prepared(self) -> bool {
        matches!(self, Self::Prepare(_) | Self::Abort { .. })
    }

    fn code(self) -> u8 {
        match self {
            Self::Mutation => 0,
            Self::Prepare(level) => PREPARE | (level as u8) << LEVEL_SHIFT,
            Self::Commit { .. } => COMMIT,
            Self::Abort { .. } => ABORT,
        }
    }

    /// The seqno of the prepare that it ends.
    pub fn ended_prepare(self) -> Option<Seqno> {
        match self {
            Self::Mutation | Self::Prepare(_) => None,
            Self::Commit { prepare } | Self::Abort { prepare } => Some(prepare),
        }
    }
}

/// What the writer of a document decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ItemMeta {
    /// Opaque to the server: four bytes in the order in which the client sent them.
    pub flags: [u8; 4],
    /// Seconds since the epoch, 0 for never. Of a deleted item: when it was deleted.
    pub expiry: u32,
    /// What the value is.
    pub datatype: Datatype,
    /// Set for a tombstone.
    pub deletion: Option<Deletion>,
}

/// One version of a document. Cloning shares.
#[derive(Clone)]
pub struct Item(SharedBytes);

/// An item before its vBucket has given it its place in history.
pub struct ItemBuilder {
    block: UniqueBytes,
    value_at: usize,
    account: AccountId,
    heat: u8,
}

impl ItemBuilder {
    /// An item with this content.
    pub fn new(key: Key<'_>, meta: ItemMeta, value: &[u8]) -> Self {
        let (header, header_size) = header_of(key, meta);
        let block = UniqueBytes::concatenated(&[&header[..header_size], key.encoded(), value]);
        Self::of(block, header_size + key.encoded().len())
    }

    /// An item whose value of `value_size` bytes, zeros at first, is still to be filled in through
    /// [`ItemBuilder::value_mut`]: large values go from the socket straight to their place.
    pub fn with_room(key: Key<'_>, meta: ItemMeta, value_size: usize) -> Self {
        let (header, header_size) = header_of(key, meta);
        let value_at = header_size + key.encoded().len();
        let mut block = UniqueBytes::zeroed(value_at + value_size);
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

    /// Bytes that the finished item takes from the allocator.
    pub fn allocation_size(&self) -> usize {
        SharedBytes::allocation_size(self.block.len())
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

    /// A step of a durable write with this content.
    pub fn step(key: Key<'_>, meta: ItemMeta, operation: Operation, value: &[u8]) -> Self {
        if operation == Operation::Mutation {
            return Self::new(key, meta, value);
        }
        let (fixed, fixed_size) = header_of(key, meta);
        let mut header = [0; HEADER_SIZE_MAX];
        header[..fixed_size].copy_from_slice(&fixed[..fixed_size]);
        let deleted = header[0] & (DELETED | DELETED_BY_EXPIRY);
        header[0] = (header[0] & !DELETED) | DELETED_BY_EXPIRY;
        header[fixed_size] = operation.code() | deleted;
        let mut size = fixed_size + OPERATION_SIZE;
        if let Some(prepare) = operation.ended_prepare() {
            assert!(prepare.0 <= U48_MAX, "a seqno has 48 bits");
            let field = &mut header[size..size + PREPARE_SEQNO_SIZE];
            field.copy_from_slice(&prepare.0.to_be_bytes()[2..]);
            size += PREPARE_SEQNO_SIZE;
        }
        let block = UniqueBytes::concatenated(&[&header[..size], key.encoded(), value]);
        Self::of(block, size + key.encoded().len())
    }

    /// The same content as a step of a durable write, which costs a copy.
    #[must_use]
    pub fn with_operation(self, operation: Operation) -> Self {
        assert!(self.operation() == Operation::Mutation, "an item is one operation");
        if operation == Operation::Mutation {
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
    pub fn finish(mut self, cas: Cas, seqno: Seqno, revision: RevSeqno) -> Item {
        assert!(seqno.0 <= U48_MAX, "a seqno has 48 bits");
        let revision = revision.0.min(U48_MAX);
        if revision > SHORT_REVISION_MAX {
            self = self.with_long_revision(revision >> 24);
        }
        let block = &mut self.block;
        block[REVISION_AT..FLAGS_AT].copy_from_slice(&revision.to_be_bytes()[5..]);
        block[SEQNO_AT..CAS_AT].copy_from_slice(&seqno.0.to_be_bytes()[2..]);
        block[CAS_AT..FIXED_SIZE].copy_from_slice(&cas.0.to_be_bytes());
        block.charge(self.account);
        let block = self.block.share();
        if self.heat > 0 {
            block.set_heat(self.heat);
        }
        Item(block)
    }

    fn with_long_revision(self, high_bits: u64) -> Self {
        let old_header_size = header_size(&self.block);
        let high = high_bits.to_be_bytes();
        let (header, rest) = self.block.split_at(old_header_size);
        let mut block = UniqueBytes::concatenated(&[header, &high[5..], rest]);
        block[0] |= LONG_REVISION;
        Self { block, value_at: self.value_at + LONG_REVISION_SIZE, ..self }
    }
}

impl Item {
    /// The key.
    pub fn key(&self) -> Key<'_> {
        let start = header_size(&self.0);
        Key::from_trusted(&self.0[start..start + usize::from(self.0[KEY_LENGTH_AT])])
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
        field(&self.0, FLAGS_AT)
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
        operation_of(&self.0)
    }

    /// How much the document is used: the eviction's probabilistic counter.
    pub fn heat(&self) -> u8 {
        self.0.heat()
    }

    /// Sets how much the document is used, for all who share this version.
    pub fn set_heat(&self, heat: u8) {
        self.0.set_heat(heat);
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

    /// Whether somebody else holds it, too. Only a hint where other threads clone and drop.
    pub fn is_shared(&self) -> bool {
        self.0.owner_count() > 1
    }

    fn copied_to(&self, account: AccountId) -> Self {
        let mut block = UniqueBytes::concatenated(&[&self.0]);
        block.charge(account);
        let copy = block.share();
        copy.set_heat(self.heat());
        Self(copy)
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
        Seqno(u48(&self.0, SEQNO_AT))
    }

    /// How often the document has changed.
    pub fn revision(&self) -> RevSeqno {
        let low: [u8; 3] = field(&self.0, REVISION_AT);
        let mut revision = u24(low);
        if self.0[0] & LONG_REVISION != 0 {
            let high_at = header_size(&self.0) - LONG_REVISION_SIZE;
            revision |= u24(field(&self.0, high_at)) << 24;
        }
        RevSeqno(revision)
    }

    /// The content of a prepare as what ends it at `seqno`: the document that it has become, with
    /// the prepare's CAS and revision, which costs a copy.
    ///
    /// # Panics
    /// If this is no prepare.
    #[must_use]
    pub fn committed(&self, seqno: Seqno) -> Self {
        let operation = Operation::Commit { prepare: self.seqno() };
        let meta = self.prepared_meta();
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
        let mut block = UniqueBytes::concatenated(&[&self.0[..self.value_offset()]]);
        block[0] |= VALUE_EJECTED;
        block.charge(self.account());
        Self(block.share())
    }

    /// This version with its value in another form, which `datatype` names. It counts for the same
    /// account and is used as much.
    #[must_use]
    pub fn with_value(&self, datatype: Datatype, value: &[u8]) -> Self {
        let mut block = UniqueBytes::concatenated(&[&self.0[..self.value_offset()], value]);
        block[0] = (block[0] & !DATATYPE_BITS & !VALUE_EJECTED) | datatype.bits();
        block.charge(self.account());
        let copy = block.share();
        copy.set_heat(self.heat());
        Self(copy)
    }

    /// Bytes that this item takes from the allocator, its rounding left out.
    pub fn allocation_size(&self) -> usize {
        SharedBytes::allocation_size(self.0.len())
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

fn header_of(key: Key<'_>, meta: ItemMeta) -> ([u8; FIXED_SIZE + EXPIRY_SIZE], usize) {
    let mut header = [0; FIXED_SIZE + EXPIRY_SIZE];
    header[0] = meta.datatype.bits();
    match meta.deletion {
        None => {}
        Some(Deletion::Explicit) => header[0] |= DELETED,
        Some(Deletion::Expired) => header[0] |= DELETED | DELETED_BY_EXPIRY,
    }
    header[KEY_LENGTH_AT] =
        u8::try_from(key.encoded().len()).expect("an encoded key has at most 251 bytes");
    header[FLAGS_AT..SEQNO_AT].copy_from_slice(&meta.flags);
    if meta.expiry == 0 {
        return (header, FIXED_SIZE);
    }
    header[0] |= HAS_EXPIRY;
    header[FIXED_SIZE..].copy_from_slice(&meta.expiry.to_be_bytes());
    (header, FIXED_SIZE + EXPIRY_SIZE)
}

fn header_size(block: &[u8]) -> usize {
    let bits = block[0];
    let mut operation = 0;
    if has_operation(bits) {
        operation = OPERATION_SIZE;
        let code = block[operation_at(bits)] & OPERATION_BITS;
        operation += if code == PREPARE { 0 } else { PREPARE_SEQNO_SIZE };
    }
    let revision = if bits & LONG_REVISION == 0 { 0 } else { LONG_REVISION_SIZE };
    operation_at(bits) + operation + revision
}

fn operation_at(bits: u8) -> usize {
    FIXED_SIZE + if bits & HAS_EXPIRY == 0 { 0 } else { EXPIRY_SIZE }
}

fn has_operation(bits: u8) -> bool {
    bits & (DELETED | DELETED_BY_EXPIRY) == DELETED_BY_EXPIRY
}

fn operation_of(block: &[u8]) -> Operation {
    if !has_operation(block[0]) {
        return Operation::Mutation;
    }
    let at = operation_at(block[0]);
    let prepare = || Seqno(u48(block, at + OPERATION_SIZE));
    match block[at] & OPERATION_BITS {
        COMMIT => Operation::Commit { prepare: prepare() },
        ABORT => Operation::Abort { prepare: prepare() },
        _ => {
            let level = DurabilityLevel::from_byte(block[at] >> LEVEL_SHIFT & LEVEL_BITS);
            Operation::Prepare(level.expect("a prepare has a level"))
        }
    }
}

/// The byte that says whether and how the item is deleted.
fn deletion_bits(block: &[u8]) -> u8 {
    if has_operation(block[0]) { block[operation_at(block[0])] } else { block[0] }
}

fn meta_of(block: &[u8]) -> ItemMeta {
    let has_expiry = block[0] & HAS_EXPIRY != 0;
    ItemMeta {
        flags: field(block, FLAGS_AT),
        expiry: if has_expiry { u32::from_be_bytes(field(block, FIXED_SIZE)) } else { 0 },
        datatype: Datatype::from_bits(block[0] & DATATYPE_BITS).unwrap_or_default(),
        deletion: deletion_of(deletion_bits(block)),
    }
}

fn deletion_of(bits: u8) -> Option<Deletion> {
    match (bits & DELETED != 0, bits & DELETED_BY_EXPIRY != 0) {
        (false, _) => None,
        (true, false) => Some(Deletion::Explicit),
        (true, true) => Some(Deletion::Expired),
    }
}

fn field<const SIZE: usize>(block: &[u8], at: usize) -> [u8; SIZE] {
    *block[at..].first_chunk().expect("an item holds its whole header")
}

fn u24(bytes: [u8; 3]) -> u64 {
    bytes.iter().fold(0, |number, &byte| (number << 8) | u64::from(byte))
}

fn u48(block: &[u8], at: usize) -> u64 {
    let bytes: [u8; 6] = field(block, at);
    bytes.iter().fold(0, |number, &byte| (number << 8) | u64::from(byte))
}

#[cfg(test)]
mod tests;
