//! Documents as a file has them, for people and tools to look at: nothing is interpreted away.
#![warn(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation
)]

use std::ops::ControlFlow;

use document::CollectionId;
use document::key::decode_collection;

use crate::couchstore::bytes::Fields;
use crate::couchstore::{BODY_IS_SNAPPY, BodyReader, CouchFile, DocumentInfo, FileHeader};
use crate::error::StorageError;
use crate::records::disk_document::{DELETED_BY_EXPIRY, PREPARE_PREFIX};

/// In which order documents are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// By the time of their last change.
    BySeqno,
    /// By collection and name.
    ById,
}

/// Which documents of a state are visited.
#[derive(Clone, Copy, Debug)]
pub struct Selection {
    /// In which order.
    pub order: Order,
    /// Documents with lower seqnos are left out.
    pub start_seqno: u64,
    /// Whether bodies are read.
    pub with_bodies: bool,
}

/// One document.
#[derive(Debug)]
pub struct DocumentView<'a> {
    /// The id as it stands in the trees.
    pub id: &'a [u8],
    /// Whether it is a prepare or an abort of a durable write.
    pub is_prepare: bool,
    /// The collection and the name; `None` if the id is no key.
    pub key: Option<(CollectionId, &'a [u8])>,
    /// Its place in the history of the vBucket.
    pub seqno: u64,
    /// How often it has changed.
    pub revision: u64,
    /// Whether it is a tombstone.
    pub is_deleted: bool,
    /// What the original's server keeps beside the body; `None` if it is not understood.
    pub metadata: Option<MetadataView>,
    /// Where the body's chunk begins in the file, in bytes; 0 for no body.
    pub body_position: u64,
    /// Bytes of the body's chunk in the file; 0 for no body.
    pub body_size: u32,
    /// Whether the file compresses the body. It is shown without that.
    pub is_compressed: bool,
    /// The body.
    pub body: BodyView<'a>,
}

/// A document's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetadataView {
    /// The CAS value.
    pub cas: u64,
    /// Seconds since 1970; of a tombstone, when it was deleted; 0 for never.
    pub expiry: u32,
    /// The client's flags.
    pub flags: u32,
    /// Whether the tombstone is there because the document had expired.
    pub is_expired: bool,
    /// Bits: 1 JSON, 2 snappy, 4 xattrs.
    pub datatype: u8,
    /// What a durable write left behind.
    pub operation: Option<StoredOperation>,
}

/// A step of a durable write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredOperation {
    /// Not decided yet.
    Prepare {
        /// 1 majority, 2 majority and persisted on the active node, 3 persisted on a majority.
        level: u8,
        /// Whether the write is a deletion.
        is_delete: bool,
    },
    /// Done.
    Commit,
    /// Given up.
    Abort {
        /// The seqno of the prepare.
        prepare_seqno: u64,
    },
    /// A number without meaning.
    Unknown(u8),
}

/// What there is of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyView<'a> {
    /// Nobody asked for it.
    NotRead,
    /// The document has none.
    Absent,
    /// Its bytes, without the compression of the file.
    Bytes(&'a [u8]),
    /// It cannot be read: why.
    Damaged(&'static str),
}

/// Visits the documents of a state of a file until `visit` breaks. A body that is damaged is told,
/// and the visit goes on.
///
/// # Errors
/// [`StorageError::Corrupt`] when a tree is damaged: what lies before was visited.
pub fn documents(
    file: &CouchFile,
    header: &FileHeader,
    selection: Selection,
    mut visit: impl FnMut(&DocumentView<'_>) -> ControlFlow<()>,
) -> Result<(), StorageError> {
    let mut visit = |info: &DocumentInfo<'_>, bodies: &mut BodyReader<'_>| {
        if info.seqno < selection.start_seqno {
            return Ok(ControlFlow::Continue(()));
        }
        let mut view = DocumentView::new(info);
        let body = if selection.with_bodies && info.body_position != 0 {
            bodies.read_into(info, |size| vec![0; size], Vec::as_mut_slice).map(Some)
        } else {
            Ok(None)
        };
        view.body = match &body {
            Ok(Some(bytes)) => BodyView::Bytes(bytes),
            Ok(None) if info.body_position == 0 => BodyView::Absent,
            Ok(None) => BodyView::NotRead,
            Err(StorageError::Corrupt { what, .. }) => BodyView::Damaged(what),
            Err(_) => return body.map(|_| ControlFlow::Continue(())),
        };
        Ok(visit(&view))
    };
    let mut reader = file.reader(header);
    let _flow = match selection.order {
        Order::BySeqno => reader.scan_by_seqno(selection.start_seqno, &mut visit)?,
        Order::ById => reader.scan_by_id(&[], &mut visit)?,
    };
    Ok(())
}

impl<'a> DocumentView<'a> {
    pub(crate) fn new(info: &DocumentInfo<'a>) -> Self {
        let (is_prepare, encoded) = match info.id.split_first() {
            Some((&PREPARE_PREFIX, encoded)) => (true, encoded),
            _ => (false, info.id),
        };
        Self {
            id: info.id,
            is_prepare,
            key: decode_collection(encoded).ok(),
            seqno: info.seqno,
            revision: info.rev_seqno,
            is_deleted: info.deleted,
            metadata: MetadataView::decode(info.rev_meta),
            body_position: info.body_position,
            body_size: info.body_size,
            is_compressed: info.content_meta & BODY_IS_SNAPPY != 0,
            body: BodyView::NotRead,
        }
    }

    /// The same without the body's bytes.
    #[must_use]
    pub fn without_body(&self) -> Self {
        let (id, key) = (self.id, self.key);
        Self { id, key, body: BodyView::NotRead, ..*self }
    }
}

impl MetadataView {
    /// Reads rev meta of the four sizes that there are.
    pub(crate) fn decode(meta: &[u8]) -> Option<Self> {
        if !matches!(meta.len(), 16 | 18 | 19 | 25) {
            return None;
        }
        let mut fields = Fields::new(meta);
        let cas = fields.number::<8>()?;
        let expiry = fields.u32()?;
        let flags = fields.u32()?;
        let bits = fields.u8().unwrap_or(0);
        let datatype = fields.u8().unwrap_or(0);
        let operation = match (fields.u8(), fields.number::<6>()) {
            (Some(operation), Some(details)) => Some(StoredOperation::decode(operation, details)),
            _ => None,
        };
        let is_expired = bits & DELETED_BY_EXPIRY != 0;
        Some(Self { cas, expiry, flags, is_expired, datatype, operation })
    }
}

impl StoredOperation {
    fn decode(operation: u8, details: u64) -> Self {
        match operation {
            0 => Self::Prepare {
                level: u8::try_from((details >> 1) & 3).unwrap_or(0),
                is_delete: details & 1 != 0,
            },
            1 => Self::Commit,
            2 => Self::Abort { prepare_seqno: details },
            _ => Self::Unknown(operation),
        }
    }

    /// Whether it belongs under the key of a prepare.
    pub(crate) fn is_under_prepare_key(self) -> bool {
        matches!(self, Self::Prepare { .. } | Self::Abort { .. })
    }
}
