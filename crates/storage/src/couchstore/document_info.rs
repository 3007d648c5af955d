//! What the trees say about a document, in the two forms in which they say it.
//!
//! ```text
//! by-id:    key id
//!           value 6 seqno, 4 body size, 6 (deleted << 47 | body position),
//!                 6 rev seqno, 1 content meta, rev meta
//! by-seqno: key 6 seqno
//!           value 5 lengths (12 bits id, 28 bits body size), 6 (deleted << 47 | body position),
//!                 6 rev seqno, 1 content meta, id, rev meta
//! ```
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use crate::couchstore::bytes::{Fields, index, length_pair, put_length_pair, put_u48};

/// Set in [`DocumentInfo::content_meta`] when the body is compressed by the file.
pub(crate) const BODY_IS_SNAPPY: u8 = 0x80;

const DELETED: u64 = 1 << 47;

/// Bytes of rev meta that we write, at most.
pub(crate) const REV_META_SIZE_MAX: usize = 25;

/// One document's entry in the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentInfo<'a> {
    /// The document's id: an encoded key.
    pub id: &'a [u8],
    /// Its place in the history of the file.
    pub seqno: u64,
    /// How often it has changed.
    pub rev_seqno: u64,
    /// Whether it is a tombstone.
    pub deleted: bool,
    /// What the body is: bit 7 compressed; low bits 0 JSON, 3 anything.
    pub content_meta: u8,
    /// Where the body's chunk begins; 0 for no body.
    pub body_position: u64,
    /// Bytes of the body's chunk, head included; 0 for no body.
    pub body_size: u32,
    /// Metadata that the file does not look into.
    pub rev_meta: &'a [u8],
}

impl<'a> DocumentInfo<'a> {
    /// Bytes that count as the document's size on disk: body chunk, id and rev meta.
    pub(crate) fn disk_size(&self) -> u64 {
        let (id, meta) = (self.id.len() as u64, self.rev_meta.len() as u64);
        u64::from(self.body_size).saturating_add(id).saturating_add(meta)
    }

    pub(crate) fn from_by_id(id: &'a [u8], value: &'a [u8]) -> Option<Self> {
        let mut fields = Fields::new(value);
        let seqno = fields.number::<6>()?;
        let body_size = fields.u32()?;
        let position = fields.number::<6>()?;
        let rev_seqno = fields.number::<6>()?;
        let content_meta = fields.u8()?;
        let rev_meta = fields.rest();
        Some(Self {
            id,
            seqno,
            rev_seqno,
            deleted: position & DELETED != 0,
            content_meta,
            body_position: position & !DELETED,
            body_size,
            rev_meta,
        })
    }

    pub(crate) fn from_by_seqno(key: &[u8], value: &'a [u8]) -> Option<Self> {
        let mut key = Fields::new(key);
        let seqno = key.number::<6>()?;
        if !key.rest().is_empty() {
            return None;
        }
        let mut fields = Fields::new(value);
        let (id_length, body_size) = length_pair(&mut fields)?;
        let position = fields.number::<6>()?;
        let rev_seqno = fields.number::<6>()?;
        let content_meta = fields.u8()?;
        let id = fields.take(id_length)?;
        Some(Self {
            id,
            seqno,
            rev_seqno,
            deleted: position & DELETED != 0,
            content_meta,
            body_position: position & !DELETED,
            body_size: u32::try_from(body_size).ok()?,
            rev_meta: fields.rest(),
        })
    }

    pub(crate) fn encode_by_id(&self, value: &mut Vec<u8>) {
        put_u48(value, self.seqno);
        value.extend_from_slice(&self.body_size.to_be_bytes());
        self.encode_common(value);
        value.extend_from_slice(self.rev_meta);
    }

    pub(crate) fn encode_by_seqno(&self, value: &mut Vec<u8>) {
        put_length_pair(value, self.id.len(), index(u64::from(self.body_size)));
        self.encode_common(value);
        value.extend_from_slice(self.id);
        value.extend_from_slice(self.rev_meta);
    }

    fn encode_common(&self, value: &mut Vec<u8>) {
        assert!(self.body_position < DELETED, "a body lies in the first 128 TiB");
        let deleted = if self.deleted { DELETED } else { 0 };
        put_u48(value, self.body_position | deleted);
        put_u48(value, self.rev_seqno);
        value.push(self.content_meta);
    }
}

/// Rev meta on the stack.
#[derive(Clone, Copy)]
pub(crate) struct RevMeta {
    bytes: [u8; REV_META_SIZE_MAX],
    length: u8,
}

impl RevMeta {
    pub(crate) fn new(meta: &[u8]) -> Self {
        let mut bytes = [0; REV_META_SIZE_MAX];
        let target = bytes.get_mut(..meta.len()).expect("rev meta has at most 25 bytes");
        target.copy_from_slice(meta);
        Self { bytes, length: u8::try_from(meta.len()).expect("at most 25, see above") }
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}
