//! Items as documents of a file, and back.
//!
//! ```text
//! id:       the item's encoded key; prepares and aborts have 0x02 in front
//! rev meta: 8 CAS, 4 expiry (of a tombstone: when it was deleted), 4 flags as the client sent them
//!           1 bit 7: deleted because it had expired
//!           1 datatype                                            (V1: 18 bytes; V0 ends before)
//!           V2: 1 conflict resolution mode; V3: 1 operation, 6 details of a prepare or an abort
//! details:  of a prepare bit 0: it deletes, bits 1-2: its level; of an abort the prepare's seqno
//! ```
//! All numbers are big-endian. We write V1, and V3 for prepares and aborts. A prepare that deletes
//! is no tombstone to the file; an abort is one. A commit is written as the document that it is.

use std::borrow::Cow;

use document::key::decode_collection;
use document::limits::ENCODED_KEY_SIZE_MAX;
use document::{
    Cas, Datatype, Deletion, DurabilityLevel, Item, ItemBuilder, ItemMeta, Key, Operation,
    RevSeqno, Seqno,
};

use crate::couchstore::{BODY_IS_SNAPPY, BodyReader, DocumentInfo, NewDocument, RevMeta};
use crate::error::StorageError;

/// In front of the keys of prepares and aborts.
pub(crate) const PREPARE_PREFIX: u8 = 0x02;

/// Content meta of JSON bodies.
const CONTENT_JSON: u8 = 0x00;

/// Content meta of bodies that are not JSON, or that nobody has looked at.
const CONTENT_NOT_JSON: u8 = 0x03;

/// Set in rev meta when the document was deleted because it had expired.
pub(crate) const DELETED_BY_EXPIRY: u8 = 0x80;

/// Bytes of rev meta V1, which we write.
const REV_META_V1_SIZE: usize = 18;

/// Bytes of rev meta V3, which we write for prepares and aborts.
const REV_META_V3_SIZE: usize = 25;

/// Bytes of rev meta V0 to V3.
const REV_META_SIZES: [usize; 4] = [16, REV_META_V1_SIZE, 19, REV_META_V3_SIZE];

/// Where V3 says what a document under a prepare's id is, and the details of that.
const OPERATION_AT: usize = 18;
const DETAILS_AT: usize = 19;
const PREPARE: u8 = 0;
const ABORT: u8 = 2;
/// In the last byte of a prepare's details.
const PREPARE_DELETES: u8 = 0x01;
const LEVEL_SHIFT: u32 = 1;
const LEVEL_BITS: u8 = 0x03;

/// Rev meta, as far as an item needs it.
struct Metadata {
    cas: Cas,
    meta: ItemMeta,
    operation: Operation,
}

/// The document that holds an item.
pub(crate) fn from_item(item: &Item) -> NewDocument<'_> {
    assert!(!item.is_ejected(), "what is written has its value");
    let (meta, operation) = (item.meta(), item.operation());
    let value = item.value();
    let is_prepare = matches!(operation, Operation::Prepare(_));
    let deleted = item.is_deleted() && !is_prepare;
    let encoded = item.key().encoded();
    NewDocument {
        id: match operation.is_prepared() {
            true => Cow::Owned([&[PREPARE_PREFIX], encoded].concat()),
            false => Cow::Borrowed(encoded),
        },
        seqno: item.seqno().0,
        rev_seqno: item.revision().0,
        deleted,
        content_meta: content_meta(meta.datatype, value),
        rev_meta: rev_meta(item.cas(), meta, operation),
        body: (!deleted || !value.is_empty()).then_some(value),
    }
}

/// Bytes of the id, the rev meta and the body of [`from_item`]'s document.
pub(crate) fn encoded_size(item: &Item) -> usize {
    let has_details = item.operation().is_prepared();
    let (prefix_size, rev_meta_size) =
        if has_details { (1, REV_META_V3_SIZE) } else { (0, REV_META_V1_SIZE) };
    prefix_size + item.key().encoded().len() + rev_meta_size + item.value().len()
}

/// Whether a document is a prepare or an abort.
pub(crate) fn is_prepare(info: &DocumentInfo<'_>) -> bool {
    info.id.first() == Some(&PREPARE_PREFIX)
}

/// The item that a document holds; without its value if `bodies` is `None`.
pub(crate) fn to_item(
    info: &DocumentInfo<'_>,
    bodies: &mut BodyReader<'_>,
    with_value: bool,
) -> Result<Item, StorageError> {
    let corrupt = |what| bodies.corrupt(info.body_position, what);
    let key = key_of(info).ok_or_else(|| corrupt("an id that is no key"))?;
    let Metadata { cas, mut meta, operation } = decode_rev_meta(info).map_err(corrupt)?;
    let finish =
        |builder: ItemBuilder| builder.finish(cas, Seqno(info.seqno), RevSeqno(info.rev_seqno));
    if info.body_position == 0 || (!with_value && !is_event(info)) {
        let item = finish(ItemBuilder::step(key, meta, operation, &[]));
        return Ok(if info.body_position == 0 { item } else { item.ejected() });
    }
    let builder = bodies.read_into(
        info,
        |size| {
            if size == 0 {
                // An empty value is nothing in particular, whatever was said of it.
                meta.datatype = Datatype::RAW;
            }
            ItemBuilder::with_room(key, meta, operation, size)
        },
        ItemBuilder::value_mut,
    )?;
    Ok(finish(builder))
}

/// Whether a document is an event of the manifest's history. There are few, and without its body
/// none of them says anything.
fn is_event(info: &DocumentInfo<'_>) -> bool {
    Key::from_trusted(info.id).is_of_event()
}

/// The item that a document holds whose body, without the compression of the file, is at hand.
pub(crate) fn item_with_body(
    info: &DocumentInfo<'_>,
    body: Option<&[u8]>,
) -> Result<Item, &'static str> {
    let key = key_of(info).ok_or("an id that is no key")?;
    let Metadata { cas, mut meta, operation } = decode_rev_meta(info)?;
    if body.is_some_and(<[u8]>::is_empty) {
        meta.datatype = Datatype::RAW;
    }
    let builder = ItemBuilder::step(key, meta, operation, body.unwrap_or_default());
    Ok(builder.finish(cas, Seqno(info.seqno), RevSeqno(info.rev_seqno)))
}

/// When a document's time is over, or of a tombstone, when it was made, in seconds since 1970; 0
/// for never and for unknown. `None` for metadata that is not understood.
pub(crate) fn expiry_of(info: &DocumentInfo<'_>) -> Option<u32> {
    if !REV_META_SIZES.contains(&info.rev_meta.len()) {
        return None;
    }
    info.rev_meta.get(8..)?.first_chunk().copied().map(u32::from_be_bytes)
}

fn content_meta(datatype: Datatype, value: &[u8]) -> u8 {
    let content = if datatype.contains(Datatype::JSON) { CONTENT_JSON } else { CONTENT_NOT_JSON };
    let compresses = !value.is_empty() && !datatype.contains(Datatype::SNAPPY);
    if compresses { content | BODY_IS_SNAPPY } else { content }
}

fn rev_meta(cas: Cas, meta: ItemMeta, operation: Operation) -> RevMeta {
    let mut bytes = [0; REV_META_V3_SIZE];
    bytes[..8].copy_from_slice(&cas.0.to_be_bytes());
    bytes[8..12].copy_from_slice(&meta.expiry.to_be_bytes());
    bytes[12..16].copy_from_slice(&meta.flags);
    bytes[16] = if meta.deletion == Some(Deletion::Expired) { DELETED_BY_EXPIRY } else { 0 };
    bytes[17] = meta.datatype.bits();
    let (code, details) = match operation {
        Operation::Mutation | Operation::Commit { .. } => {
            return RevMeta::new(&bytes[..REV_META_V1_SIZE]);
        }
        Operation::Prepare(level) => {
            let deletes = if meta.deletion.is_some() { PREPARE_DELETES } else { 0 };
            (PREPARE, u64::from((level as u8) << LEVEL_SHIFT | deletes))
        }
        Operation::Abort { prepare } => (ABORT, prepare.0),
    };
    bytes[OPERATION_AT] = code;
    bytes[DETAILS_AT..].copy_from_slice(&details.to_be_bytes()[2..]);
    RevMeta::new(&bytes)
}

fn decode_rev_meta(info: &DocumentInfo<'_>) -> Result<Metadata, &'static str> {
    let meta = info.rev_meta;
    if !REV_META_SIZES.contains(&meta.len()) {
        return Err("rev meta of unknown size");
    }
    let field = |at: usize| -> [u8; 4] {
        meta.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
    };
    let cas =
        u64::from(u32::from_be_bytes(field(0))) << 32 | u64::from(u32::from_be_bytes(field(4)));
    let by_expiry = meta.get(16).is_some_and(|bits| bits & DELETED_BY_EXPIRY != 0);
    let operation = decode_operation(info)?;
    let is_deleted = match operation {
        Operation::Prepare(_) => meta.last().is_some_and(|last| last & PREPARE_DELETES != 0),
        _ => info.deleted,
    };
    let deletion = match (is_deleted, by_expiry) {
        (false, _) => None,
        (true, false) => Some(Deletion::Explicit),
        (true, true) => Some(Deletion::Expired),
    };
    let datatype = Datatype::from_bits(meta.get(17).copied().unwrap_or(0));
    let datatype = datatype.ok_or("a datatype of undefined bits")?;
    let expiry = u32::from_be_bytes(field(8));
    let meta = ItemMeta { flags: field(12), expiry, datatype, deletion };
    Ok(Metadata { cas: Cas(cas), meta, operation })
}

/// What a document is in the history of its vBucket.
fn decode_operation(info: &DocumentInfo<'_>) -> Result<Operation, &'static str> {
    if !is_prepare(info) {
        // Files of old versions mark commits; they are documents like any other.
        return Ok(Operation::Mutation);
    }
    let (Some(&code), Some(details)) =
        (info.rev_meta.get(OPERATION_AT), info.rev_meta.get(DETAILS_AT..))
    else {
        return Err("a prepare without details");
    };
    match (code, info.deleted) {
        (PREPARE, false) => {
            let bits = details.last().copied().unwrap_or(0);
            let level = DurabilityLevel::from_byte(bits >> LEVEL_SHIFT & LEVEL_BITS);
            level.map(Operation::Prepare).ok_or("a prepare without a level")
        }
        (ABORT, true) => {
            let number = details.iter().fold(0, |number, &byte| (number << 8) | u64::from(byte));
            Ok(Operation::Abort { prepare: Seqno(number) })
        }
        _ => Err("neither a prepare nor an abort under the id of one"),
    }
}

/// The key under which a document, a prepare or an abort is kept.
pub(crate) fn key_of<'a>(info: &DocumentInfo<'a>) -> Option<Key<'a>> {
    checked_key(if is_prepare(info) { info.id.get(1..)? } else { info.id })
}

/// An id that can be a key in memory. Keys of system events are among them.
pub(crate) fn checked_key(id: &[u8]) -> Option<Key<'_>> {
    let (_, name) = decode_collection(id).ok()?;
    let fits = !name.is_empty() && id.len() <= ENCODED_KEY_SIZE_MAX;
    fits.then(|| Key::from_trusted(id))
}
