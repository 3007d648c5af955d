//! How an item lies in memory, behind the eight bytes of [`platform::SharedBytes`].
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

use platform::UniqueBytes;

use super::words::{Deletion, ItemMeta, Operation, U48_MAX};
use crate::datatype::Datatype;
use crate::durability::DurabilityLevel;
use crate::ids::Seqno;
use crate::key::Key;

pub(super) const DATATYPE_BITS: u8 = 0x07;
pub(super) const DELETED: u8 = 0x08;
const DELETED_BY_EXPIRY: u8 = 0x10;
pub(super) const HAS_EXPIRY: u8 = 0x20;
pub(super) const LONG_REVISION: u8 = 0x40;
pub(super) const VALUE_EJECTED: u8 = 0x80;

pub(super) const KEY_LENGTH_AT: usize = 1;
pub(super) const REVISION_AT: usize = 2;
pub(super) const FLAGS_AT: usize = 5;
pub(super) const SEQNO_AT: usize = 9;
pub(super) const CAS_AT: usize = 15;
pub(super) const FIXED_SIZE: usize = 23;
pub(super) const EXPIRY_SIZE: usize = 4;
const OPERATION_SIZE: usize = 1;
const OPERATION_BITS: u8 = 0x03;
const PREPARE: u8 = 1;
const COMMIT: u8 = 2;
const ABORT: u8 = 3;
const LEVEL_SHIFT: u32 = 5;
const LEVEL_BITS: u8 = 0x03;
/// Bytes of the prepare's seqno in a commit or an abort.
const PREPARE_SEQNO_SIZE: usize = 6;
pub(super) const LONG_REVISION_SIZE: usize = 3;
pub(super) const SHORT_REVISION_MAX: u64 = 0xff_ffff;
const HEADER_SIZE_MAX: usize = FIXED_SIZE + EXPIRY_SIZE + OPERATION_SIZE + PREPARE_SEQNO_SIZE;

pub(super) fn header_of(key: Key<'_>, meta: ItemMeta) -> ([u8; FIXED_SIZE + EXPIRY_SIZE], usize) {
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

/// The same of what `operation` says.
pub(super) fn step_header_of(
    key: Key<'_>,
    meta: ItemMeta,
    operation: Operation,
) -> ([u8; HEADER_SIZE_MAX], usize) {
    let (fixed, fixed_size) = header_of(key, meta);
    let mut header = [0; HEADER_SIZE_MAX];
    header[..fixed_size].copy_from_slice(&fixed[..fixed_size]);
    if operation == Operation::Mutation {
        return (header, fixed_size);
    }
    let deleted = header[0] & (DELETED | DELETED_BY_EXPIRY);
    header[0] = (header[0] & !DELETED) | DELETED_BY_EXPIRY;
    header[fixed_size] = code_of(operation) | deleted;
    let mut size = fixed_size + OPERATION_SIZE;
    if let Some(prepare) = operation.ended_prepare() {
        assert!(prepare.0 <= U48_MAX, "a seqno has 48 bits");
        let field = &mut header[size..size + PREPARE_SEQNO_SIZE];
        field.copy_from_slice(&prepare.0.to_be_bytes()[2..]);
        size += PREPARE_SEQNO_SIZE;
    }
    (header, size)
}

fn code_of(operation: Operation) -> u8 {
    match operation {
        Operation::Mutation => 0,
        Operation::Prepare(level) => PREPARE | (level as u8) << LEVEL_SHIFT,
        Operation::Commit { .. } => COMMIT,
        Operation::Abort { .. } => ABORT,
    }
}

/// A block of `parts`, the first of which begins with a whole header: that of a prepare has room
/// for its commit.
pub(super) fn concatenated(parts: &[&[u8]]) -> UniqueBytes {
    let is_prepare = parts.first().is_some_and(|header| is_prepare(header));
    concatenated_as(is_prepare, parts)
}

pub(super) fn concatenated_as(is_prepare: bool, parts: &[&[u8]]) -> UniqueBytes {
    if is_prepare {
        UniqueBytes::concatenated_with_room(parts)
    } else {
        UniqueBytes::concatenated(parts)
    }
}

fn is_prepare(block: &[u8]) -> bool {
    has_operation(block[0]) && block[operation_at(block[0])] & OPERATION_BITS == PREPARE
}

pub(super) fn header_size(block: &[u8]) -> usize {
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

pub(super) fn operation_of(block: &[u8]) -> Operation {
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
pub(super) fn deletion_bits(block: &[u8]) -> u8 {
    if has_operation(block[0]) { block[operation_at(block[0])] } else { block[0] }
}

pub(super) fn meta_of(block: &[u8]) -> ItemMeta {
    let has_expiry = block[0] & HAS_EXPIRY != 0;
    ItemMeta {
        flags: field(block, FLAGS_AT),
        expiry: if has_expiry { u32::from_be_bytes(field(block, FIXED_SIZE)) } else { 0 },
        datatype: Datatype::from_bits(block[0] & DATATYPE_BITS).unwrap_or_default(),
        deletion: deletion_of(deletion_bits(block)),
    }
}

pub(super) fn deletion_of(bits: u8) -> Option<Deletion> {
    match (bits & DELETED != 0, bits & DELETED_BY_EXPIRY != 0) {
        (false, _) => None,
        (true, false) => Some(Deletion::Explicit),
        (true, true) => Some(Deletion::Expired),
    }
}

pub(super) fn field<const SIZE: usize>(block: &[u8], at: usize) -> [u8; SIZE] {
    *block[at..].first_chunk().expect("an item holds its whole header")
}

pub(super) fn u24(bytes: [u8; 3]) -> u64 {
    bytes.iter().fold(0, |number, &byte| (number << 8) | u64::from(byte))
}

pub(super) fn u48(block: &[u8], at: usize) -> u64 {
    let bytes: [u8; 6] = field(block, at);
    bytes.iter().fold(0, |number, &byte| (number << 8) | u64::from(byte))
}
