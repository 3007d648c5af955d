//! How an item lies in memory, behind the eight bytes of [`platform::SharedBytes`].
//!
//! ```text
//! offset  size
//!      0     1  bits: 0-2 datatype, 3 deleted, 4 deleted by expiry, 5 has expiry, 6 has form,
//!               7 value ejected; 4 without 3: part of a durable write, see the operation byte
//!      1     1  key length
//!      2     1  revision, low 8 bits
//!      3     4  seqno, low 32 bits
//!      7     8  CAS
//!     15     4  expiry (bit 5): seconds since the epoch; of a deleted item, when it was deleted
//!      +     1  operation byte (bit 4 without 3): 0-1 operation, 3 deleted, 4 deleted by expiry,
//!               5-6 durability level of a prepare
//!      +     6  of a commit or an abort, the seqno of the prepare that it ends
//!      +     1  form (bit 6): which of the next three there are; see `form`
//!      +     4  flags, as the client sent them
//!      +  1, 5  revision, the bits above
//!      +     2  seqno, the bits above
//!      +        key (collection as LEB128, name), value
//! ```
//!
//! Revision and seqno are known when the item is built already and gets its place. There is more
//! room for them than the form needs where that costs nothing: where the block stays one of the
//! same size, and in large ones. Elsewhere the few items that need it are copied.

use platform::UniqueBytes;
use platform::allocator::shared_block_size;

use super::form::{FORM_SIZE, Form, RARE_SIZE_MAX, Width};
use super::words::{Deletion, ItemMeta, Operation, U48_MAX};
use crate::datatype::Datatype;
use crate::durability::DurabilityLevel;
use crate::ids::Seqno;
use crate::key::Key;

pub(super) const DATATYPE_BITS: u8 = 0x07;
pub(super) const DELETED: u8 = 0x08;
const DELETED_BY_EXPIRY: u8 = 0x10;
pub(super) const HAS_EXPIRY: u8 = 0x20;
const HAS_FORM: u8 = 0x40;
pub(super) const VALUE_EJECTED: u8 = 0x80;

pub(super) const KEY_LENGTH_AT: usize = 1;
const REVISION_AT: usize = 2;
const SEQNO_AT: usize = 3;
pub(super) const CAS_AT: usize = 7;
pub(super) const FIXED_SIZE: usize = 15;
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
const HEADER_SIZE_MAX: usize =
    FIXED_SIZE + EXPIRY_SIZE + OPERATION_SIZE + PREPARE_SEQNO_SIZE + FORM_SIZE + RARE_SIZE_MAX;

/// In blocks of this size and more there is room for any revision and seqno: copying them would
/// cost more than the few bytes.
const WIDE_MIN: usize = 2048;
/// What [`platform::SharedBytes`] has before the header.
const PREFIX_SIZE: usize = 8;

/// A header that is being made.
pub(super) struct Header {
    bytes: [u8; HEADER_SIZE_MAX],
    size: usize,
}

impl Header {
    /// That of an item with a value of so many bytes, without its place in history.
    pub(super) fn new(
        key: Key<'_>,
        meta: ItemMeta,
        operation: Operation,
        value_size: usize,
    ) -> Self {
        let mut header = Self { bytes: [0; HEADER_SIZE_MAX], size: FIXED_SIZE };
        let deletion = match meta.deletion {
            None => 0,
            Some(Deletion::Explicit) => DELETED,
            Some(Deletion::Expired) => DELETED | DELETED_BY_EXPIRY,
        };
        header.bytes[0] = meta.datatype.bits() | deletion;
        header.bytes[KEY_LENGTH_AT] =
            u8::try_from(key.encoded().len()).expect("an encoded key has at most 251 bytes");
        if meta.expiry != 0 {
            header.bytes[0] |= HAS_EXPIRY;
            header.push(&meta.expiry.to_be_bytes());
        }
        if operation != Operation::Mutation {
            header.bytes[0] = (header.bytes[0] & !DELETED) | DELETED_BY_EXPIRY;
            header.push(&[code_of(operation) | deletion]);
        }
        if let Some(prepare) = operation.ended_prepare() {
            assert!(prepare.0 <= U48_MAX, "a seqno has 48 bits");
            header.push(&prepare.0.to_be_bytes()[2..]);
        }
        header.push_form(meta.flags, key.encoded().len() + value_size);
        header
    }

    fn push_form(&mut self, flags: [u8; 4], content_size: usize) {
        let narrow = Form::new(flags, Width::Narrow);
        let form = narrow.with_width(width_for(PREFIX_SIZE + self.size + content_size, narrow));
        if form == Form::default() {
            return;
        }
        self.bytes[0] |= HAS_FORM;
        self.push(&[form.0]);
        if form.has_other_flags() {
            self.push(&flags);
        }
        self.size += form.revision_size() + form.seqno_size();
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.size..self.size + bytes.len()].copy_from_slice(bytes);
        self.size += bytes.len();
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.size]
    }
}

/// The most room that costs nothing in a block of `size` bytes with what the form adds.
fn width_for(size: usize, narrow: Form) -> Width {
    let size_with = |width| size + form_size_of(narrow.with_width(width));
    if size >= WIDE_MIN {
        return Width::Wide;
    }
    let block = shared_block_size(size_with(Width::Narrow));
    let is_free = |width: &Width| shared_block_size(size_with(*width)) == block;
    [Width::Wide, Width::Medium].into_iter().find(is_free).unwrap_or(Width::Narrow)
}

/// Bytes of a form with the parts that it names.
fn form_size_of(form: Form) -> usize {
    if form == Form::default() { 0 } else { FORM_SIZE + form.rare_size() }
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

#[inline]
pub(super) fn header_size(block: &[u8]) -> usize {
    let form_at = form_at(block);
    if block[0] & HAS_FORM == 0 {
        return form_at;
    }
    form_at + FORM_SIZE + Form(block[form_at]).rare_size()
}

/// Where the form is, or where it would be.
#[inline]
fn form_at(block: &[u8]) -> usize {
    let bits = block[0];
    let mut operation = 0;
    if has_operation(bits) {
        operation = OPERATION_SIZE;
        let code = block[operation_at(bits)] & OPERATION_BITS;
        operation += if code == PREPARE { 0 } else { PREPARE_SEQNO_SIZE };
    }
    operation_at(bits) + operation
}

#[inline]
fn form_of(block: &[u8]) -> Form {
    if block[0] & HAS_FORM == 0 { Form::default() } else { Form(block[form_at(block)]) }
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
    let prepare = || Seqno(number::<6>(block, at + OPERATION_SIZE));
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
        flags: flags_of(block),
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

#[inline]
pub(super) fn flags_of(block: &[u8]) -> [u8; 4] {
    let common = form_of(block).common_flags();
    common.unwrap_or_else(|| field(block, form_at(block) + FORM_SIZE))
}

pub(super) fn revision_of(block: &[u8]) -> u64 {
    let (form, low) = (form_of(block), u64::from(block[REVISION_AT]));
    let at = header_size(block) - form.seqno_size() - form.revision_size();
    match form.width() {
        Width::Narrow => low,
        Width::Medium => number::<1>(block, at) << 8 | low,
        Width::Wide => number::<5>(block, at) << 8 | low,
    }
}

#[inline]
pub(super) fn seqno_of(block: &[u8]) -> u64 {
    let low = number::<4>(block, SEQNO_AT);
    match form_of(block).seqno_size() {
        0 => low,
        size => number::<2>(block, header_size(block) - size) << 32 | low,
    }
}

/// Whether the block has room for this place in history.
pub(super) fn has_room_for(block: &[u8], revision: u64, seqno: u64) -> bool {
    form_of(block).width() >= Width::for_place(revision, seqno)
}

/// The same header, which begins `block`, with room for any place in history.
pub(super) fn widened(block: &[u8]) -> Header {
    let narrow = form_of(block);
    let form = narrow.with_width(Width::Wide);
    let mut header = Header { bytes: [0; HEADER_SIZE_MAX], size: 0 };
    header.push(&block[..form_at(block)]);
    header.bytes[0] |= HAS_FORM;
    header.push(&[form.0]);
    if form.has_other_flags() {
        header.push(&flags_of(block));
    }
    header.size += form.revision_size() + form.seqno_size();
    header
}

/// Writes a place in history that there is room for.
pub(super) fn put_place(block: &mut [u8], revision: u64, seqno: u64) {
    assert!(has_room_for(block, revision, seqno), "there is room for revision and seqno");
    let (form, end) = (form_of(block), header_size(block));
    let (revision, seqno) = (revision.to_be_bytes(), seqno.to_be_bytes());
    block[REVISION_AT] = revision[7];
    block[SEQNO_AT..CAS_AT].copy_from_slice(&seqno[4..]);
    let seqno_at = end - form.seqno_size();
    block[seqno_at..end].copy_from_slice(&seqno[4 - form.seqno_size()..4]);
    let revision_at = seqno_at - form.revision_size();
    block[revision_at..seqno_at].copy_from_slice(&revision[7 - form.revision_size()..7]);
}

pub(super) fn field<const SIZE: usize>(block: &[u8], at: usize) -> [u8; SIZE] {
    *block[at..].first_chunk().expect("an item holds its whole header")
}

#[inline]
fn number<const SIZE: usize>(block: &[u8], at: usize) -> u64 {
    let bytes: [u8; SIZE] = field(block, at);
    bytes.iter().fold(0, |number, &byte| (number << 8) | u64::from(byte))
}
