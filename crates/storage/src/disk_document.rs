//! Items as documents of a file, and back.
//!
//! ```text
//! id:       the item's encoded key; prepares and aborts have 0x02 in front
//! rev meta: 8 CAS, 4 expiry (of a tombstone: when it was deleted), 4 flags as the client sent them
//!           1 bit 7: deleted because it had expired
//!           1 datatype                                            (V1: 18 bytes; V0 ends before)
//!           V2: 1 conflict resolution mode; V3: 1 operation, 6 details of a prepare or an abort
//! ```
//! All numbers are big-endian. We write V1.

use document::key::decode_collection;
use document::limits::ENCODED_KEY_SIZE_MAX;
use document::{Cas, Datatype, Deletion, Item, ItemBuilder, ItemMeta, Key, RevSeqno, Seqno};

use crate::StorageError;
use crate::couchstore::{BODY_IS_SNAPPY, BodyReader, DocumentInfo, NewDocument, RevMeta};

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

/// Rev meta, as far as an item needs it.
struct Metadata {
    cas: Cas,
    meta: ItemMeta,
}

/// The document that holds an item.
pub(crate) fn from_item(item: &Item) -> NewDocument<'_> {
    assert!(!item.is_ejected(), "what is written has its value");
    let meta = item.meta();
    let value = item.value();
    NewDocument {
        id: item.key().encoded(),
        seqno: item.seqno().0,
        rev_seqno: item.revision().0,
        deleted: item.is_deleted(),
        content_meta: content_meta(meta.datatype, value),
        rev_meta: rev_meta(item.cas(), meta),
        body: (!item.is_deleted() || !value.is_empty()).then_some(value),
    }
}

/// Whether a document is a prepare or an abort, which items cannot be.
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
    let key = checked_key(info.id).ok_or_else(|| corrupt("an id that is no key"))?;
    let Metadata { cas, mut meta } = decode_rev_meta(info).map_err(corrupt)?;
    let finish =
        |builder: ItemBuilder| builder.finish(cas, Seqno(info.seqno), RevSeqno(info.rev_seqno));
    if info.body_position == 0 || !with_value {
        let item = finish(ItemBuilder::new(key, meta, &[]));
        return Ok(if info.body_position == 0 { item } else { item.ejected() });
    }
    let builder = bodies.read_into(
        info,
        |size| {
            if size == 0 {
                // An empty value is nothing in particular, whatever was said of it.
                meta.datatype = Datatype::RAW;
            }
            ItemBuilder::with_room(key, meta, size)
        },
        ItemBuilder::value_mut,
    )?;
    Ok(finish(builder))
}

/// The item that a document holds whose body, without the compression of the file, is at hand.
pub(crate) fn item_with_body(
    info: &DocumentInfo<'_>,
    body: Option<&[u8]>,
) -> Result<Item, &'static str> {
    let key = checked_key(info.id).ok_or("an id that is no key")?;
    let Metadata { cas, mut meta } = decode_rev_meta(info)?;
    if body.is_some_and(<[u8]>::is_empty) {
        meta.datatype = Datatype::RAW;
    }
    let builder = ItemBuilder::new(key, meta, body.unwrap_or_default());
    Ok(builder.finish(cas, Seqno(info.seqno), RevSeqno(info.rev_seqno)))
}

fn content_meta(datatype: Datatype, value: &[u8]) -> u8 {
    let content = if datatype.contains(Datatype::JSON) { CONTENT_JSON } else { CONTENT_NOT_JSON };
    let compresses = !value.is_empty() && !datatype.contains(Datatype::SNAPPY);
    if compresses { content | BODY_IS_SNAPPY } else { content }
}

fn rev_meta(cas: Cas, meta: ItemMeta) -> RevMeta {
    let mut bytes = [0; REV_META_V1_SIZE];
    bytes[..8].copy_from_slice(&cas.0.to_be_bytes());
    bytes[8..12].copy_from_slice(&meta.expiry.to_be_bytes());
    bytes[12..16].copy_from_slice(&meta.flags);
    bytes[16] = if meta.deletion == Some(Deletion::Expired) { DELETED_BY_EXPIRY } else { 0 };
    bytes[17] = meta.datatype.bits();
    RevMeta::new(&bytes)
}

fn decode_rev_meta(info: &DocumentInfo<'_>) -> Result<Metadata, &'static str> {
    let meta = info.rev_meta;
    if !matches!(meta.len(), 16 | 18 | 19 | 25) {
        return Err("rev meta of unknown size");
    }
    let field = |at: usize| -> [u8; 4] {
        meta.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or_default()
    };
    let cas =
        u64::from(u32::from_be_bytes(field(0))) << 32 | u64::from(u32::from_be_bytes(field(4)));
    let by_expiry = meta.get(16).is_some_and(|bits| bits & DELETED_BY_EXPIRY != 0);
    let deletion = match (info.deleted, by_expiry) {
        (false, _) => None,
        (true, false) => Some(Deletion::Explicit),
        (true, true) => Some(Deletion::Expired),
    };
    let datatype = Datatype::from_bits(meta.get(17).copied().unwrap_or(0));
    let datatype = datatype.ok_or("a datatype of undefined bits")?;
    let expiry = u32::from_be_bytes(field(8));
    Ok(Metadata { cas: Cas(cas), meta: ItemMeta { flags: field(12), expiry, datatype, deletion } })
}

/// An id that can be a key in memory. Keys of system events are among them.
pub(crate) fn checked_key(id: &[u8]) -> Option<Key<'_>> {
    let (_, name) = decode_collection(id).ok()?;
    let fits = !name.is_empty() && id.len() <= ENCODED_KEY_SIZE_MAX;
    fits.then(|| Key::from_trusted(id))
}
