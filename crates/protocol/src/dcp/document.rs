//! What a document is while it travels.

use document::{Cas, Datatype, DurabilityLevel, RevSeqno, Seqno};

/// A live document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// Its key, with its collection when collections were negotiated.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// What the value is.
    pub datatype: Datatype,
    /// Its version.
    pub cas: Cas,
    /// Its place in history. Never 0.
    pub seqno: Seqno,
    /// How often it was changed.
    pub revision: RevSeqno,
    /// The client's own.
    pub flags: [u8; 4],
    /// Seconds since the epoch, 0 for never.
    pub expiry: u32,
    /// Seconds for which it is locked; always 0 in what is sent.
    pub lock_seconds: u32,
    /// How much it is used.
    pub heat: u8,
}

/// A tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DcpDeletion<'a> {
    /// The key, with its collection when collections were negotiated.
    pub key: &'a [u8],
    /// Xattrs that outlive the document, or nothing.
    pub value: &'a [u8],
    /// What the value is.
    pub datatype: Datatype,
    /// The version.
    pub cas: Cas,
    /// Its place in history. Never 0.
    pub seqno: Seqno,
    /// How often the document was changed.
    pub revision: RevSeqno,
    /// How it travels. An expiration has always its time.
    pub form: DeletionForm,
}

/// Which of two forms a deletion has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionForm {
    /// The older one.
    WithoutTime,
    /// The one that says when: seconds since the epoch.
    WithTime(u32),
}

/// The first half of a durable write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepare<'a> {
    /// The document as it is to become; of a deletion, what the tombstone keeps.
    pub document: Document<'a>,
    /// Whether the document is to be deleted.
    pub is_deletion: bool,
    /// Where it must be.
    pub level: DurabilityLevel,
}

/// The second half of a durable write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolution<'a> {
    /// The key, with its collection when collections were negotiated.
    pub key: &'a [u8],
    /// The seqno of the prepare that it ends.
    pub prepare: Seqno,
    /// Its own place in history.
    pub seqno: Seqno,
}
