//! Documents and their keys, as people ask for them and see them.

use document::CollectionId;

/// Which document.
#[derive(Clone, Copy, Debug)]
pub struct DocumentId<'a> {
    /// Its collection.
    pub collection: CollectionId,
    /// What clients call it.
    pub name: &'a str,
}

/// Which keys are asked for: from a vBucket on, there behind a key.
#[derive(Clone, Debug)]
pub struct KeyQuery {
    /// The documents' collection.
    pub collection: CollectionId,
    /// What the keys begin with.
    pub prefix: String,
    /// Where to go on.
    pub from: KeyPosition,
    /// How many, at most.
    pub count_max: usize,
}

/// Between two keys: those of the vBuckets in front of it, and in its vBucket those up to `behind`,
/// have been seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPosition {
    /// The vBucket.
    pub vbid: u16,
    /// The last key that was seen there; empty for none.
    pub behind: String,
}

/// Some of the keys that were asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyPage {
    /// The keys. Those that are no text are left out.
    pub keys: Vec<String>,
    /// Where to go on; `None` at the end.
    pub next: Option<KeyPosition>,
    /// The vBuckets whose files could not be read.
    pub unreadable: Vec<u16>,
}

/// A document as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownDocument {
    /// Its version.
    pub cas: u64,
    /// What clients have noted about its value.
    pub flags: u32,
    /// Seconds since 1970; 0 for never.
    pub expiry_seconds: u32,
    /// Whether its value is JSON.
    pub is_json: bool,
    /// The value, without extended attributes.
    pub value: Vec<u8>,
}

/// A document that is to be stored.
#[derive(Clone, Copy, Debug)]
pub struct NewDocument<'a> {
    /// The version that it replaces; 0 for any, or none.
    pub cas: u64,
    /// Whether there must be none yet.
    pub is_new: bool,
    /// What clients note about its value.
    pub flags: u32,
    /// The value.
    pub value: &'a [u8],
}

/// Why a document was not read or written. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentError {
    /// There is none.
    NotFound,
    /// There is one already.
    Exists,
    /// It is of another version.
    OtherVersion,
    /// It belongs to another node.
    NotHere(String),
    /// What is asked for cannot be.
    Refused(String),
    /// Whoever asks may try again.
    Failed(String),
}
