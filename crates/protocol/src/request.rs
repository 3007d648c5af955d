//! The fields of the requests, by command. Sources: docs/specification/protocol.md, sections 8 to
//! 10, 14 and 17.
//!
//! Every function takes the bytes of one section and answers `None` when they are not what the
//! command needs: EINVAL, unless its documentation says otherwise.

use document::key::{Key, KeyBuf, KeyError};
use document::limits::BUCKET_NAME_SIZE_MAX;
use document::{CollectionId, VbUuid};

use crate::fields::Fields;
use crate::frame::Frame;
use crate::hello::{Feature, FeatureSet};

/// The expiry with which a counter is not to be created.
const DO_NOT_CREATE: u32 = u32::MAX;
/// The name that stands for no bucket.
const NO_BUCKET: &[u8] = b"@no bucket@";

/// A key as its document has it.
#[expect(clippy::large_enum_variant, reason = "lives on the stack for one request")]
pub enum DocumentKey<'a> {
    /// Collections were negotiated: the key is encoded already.
    Encoded(Key<'a>),
    /// They were not: the name was given the default collection.
    Plain(KeyBuf),
}

impl<'a> DocumentKey<'a> {
    /// Checks the key of a document command.
    pub fn parse(key: &'a [u8], features: FeatureSet) -> Result<Self, KeyError> {
        if features.contains(Feature::Collections) {
            Key::from_encoded(key).map(Self::Encoded)
        } else {
            KeyBuf::in_default_collection(key).map(Self::Plain)
        }
    }

    /// The key.
    pub fn as_key(&self) -> Key<'_> {
        match self {
            Self::Encoded(key) => *key,
            Self::Plain(key) => key.as_key(),
        }
    }
}

/// The extras of SET, ADD and REPLACE: flags:4 expiry:4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreExtras {
    /// The client's own, returned as they came.
    pub flags: [u8; 4],
    /// As the client sent it: 0, seconds from now, or seconds since the epoch.
    pub expiry: u32,
}

impl StoreExtras {
    /// Decodes the extras.
    pub fn parse(extras: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(extras);
        let store = Self { flags: fields.array()?, expiry: fields.u32()? };
        fields.finish(store)
    }
}

/// The extras of INCREMENT and DECREMENT: delta:8 initial:8 expiry:4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterExtras {
    /// What is added or taken away.
    pub delta: u64,
    /// What a new counter starts with.
    pub initial: u64,
    /// The expiry of a new counter; `None`: a missing counter is not created.
    pub create_expiry: Option<u32>,
}

impl CounterExtras {
    /// Decodes the extras.
    pub fn parse(extras: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(extras);
        let (delta, initial) = (fields.u64()?, fields.u64()?);
        let create_expiry = Some(fields.u32()?).filter(|expiry| *expiry != DO_NOT_CREATE);
        fields.finish(Self { delta, initial, create_expiry })
    }
}

/// The expiry of TOUCH and GAT.
pub fn touch_expiry(extras: &[u8]) -> Option<u32> {
    let mut fields = Fields::new(extras);
    let expiry = fields.u32()?;
    fields.finish(expiry)
}

/// The seconds of GET_LOCKED. 0 when the client leaves them to the server.
pub fn lock_seconds(extras: &[u8]) -> Option<u32> {
    if extras.is_empty() { Some(0) } else { touch_expiry(extras) }
}

/// Whether GET_META is to tell the datatype as well: the optional byte is 2.
pub fn get_meta_wants_datatype(extras: &[u8]) -> Option<bool> {
    match extras {
        [] | [0 | 1] => Some(false),
        [2] => Some(true),
        _ => None,
    }
}

/// The seqno that SEQNO_PERSISTENCE waits for.
pub fn awaited_seqno(extras: &[u8]) -> Option<u64> {
    extras.try_into().ok().map(u64::from_be_bytes)
}

/// The vBucket uuid of OBSERVE_SEQNO.
pub fn observed_uuid(value: &[u8]) -> Option<VbUuid> {
    value.try_into().ok().map(u64::from_be_bytes).map(VbUuid)
}

/// The keys of OBSERVE: { vBucket:2 size:2 key }, as many as there are. An item `None` says that
/// the last one is cut off.
pub fn observed_keys(value: &[u8]) -> impl Iterator<Item = Option<(u16, &[u8])>> {
    let mut fields = Fields::new(value);
    std::iter::from_fn(move || {
        if fields.is_empty() {
            return None;
        }
        let key = observed_key(&mut fields);
        // Where another one would begin is not known: this was the last.
        if key.is_none() {
            fields = Fields::new(&[]);
        }
        Some(key)
    })
}

fn observed_key<'a>(fields: &mut Fields<'a>) -> Option<(u16, &'a [u8])> {
    let vbucket = fields.u16()?;
    let size = fields.u16()?;
    Some((vbucket, fields.bytes(size.into())?))
}

/// What GET_ALL_VB_SEQNOS asks for: nothing, state:4, or state:4 collection:4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllVbSeqnos {
    /// 0 for every live state, otherwise the number of one.
    pub state: u32,
    /// Only this collection.
    pub collection: Option<u32>,
}

impl AllVbSeqnos {
    /// Decodes the extras.
    pub fn parse(extras: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(extras);
        if fields.is_empty() {
            return Some(Self::default());
        }
        let state = fields.u32().filter(|state| *state <= 4)?;
        let collection = if fields.is_empty() { None } else { Some(fields.u32()?) };
        fields.finish(Self { state, collection })
    }
}

/// Keys that GET_KEYS answers unless the client says otherwise, and at most.
const LISTED_KEYS_DEFAULT: u32 = 1000;
const LISTED_KEYS_MAX: u32 = 100_000;

/// How many keys GET_KEYS is to answer: nothing, or count:4. Source:
/// docs/specification/protocol.md, section 16.2.
pub fn listed_keys_count(extras: &[u8]) -> Option<usize> {
    let count = if extras.is_empty() { LISTED_KEYS_DEFAULT } else { touch_expiry(extras)? };
    usize::try_from(count.min(LISTED_KEYS_MAX)).ok()
}

/// What GET_RANDOM_KEY asks for: nothing, collection:4, or collection:4 attributes:1. Source:
/// docs/specification/protocol.md, section 16.3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RandomKey {
    /// Only of this collection; `None` for the default one.
    pub collection: Option<CollectionId>,
    /// Whether the value has the extended attributes in front.
    pub include_xattrs: bool,
}

impl RandomKey {
    /// Decodes the extras.
    pub fn parse(extras: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(extras);
        if fields.is_empty() {
            return Some(Self::default());
        }
        let collection = Some(CollectionId(fields.u32()?));
        let include_xattrs = if fields.is_empty() { false } else { fields.u8()? != 0 };
        fields.finish(Self { collection, include_xattrs })
    }
}

/// A version of a cluster map: newer ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MapVersion {
    /// Rises when revisions start anew.
    pub epoch: i64,
    /// Rises with every change.
    pub revision: i64,
}

/// The map that a GET_CLUSTER_CONFIG says its client has: nothing, or epoch:8 revision:8.
pub fn known_map(extras: &[u8]) -> Option<Option<MapVersion>> {
    if extras.is_empty() { Some(None) } else { map_version(extras).map(Some) }
}

/// The version in the extras of SET_CLUSTER_CONFIG and of pushed notifications.
pub fn map_version(extras: &[u8]) -> Option<MapVersion> {
    let mut fields = Fields::new(extras);
    let version = MapVersion { epoch: fields.i64()?, revision: fields.i64()? };
    fields.finish(version)
}

/// The path of COLLECTIONS_GET_COLLECTION_ID and COLLECTIONS_GET_SCOPE_ID: the value, or the key
/// of older clients, but not both.
pub fn collection_path<'a>(frame: &Frame<'a>) -> Option<&'a str> {
    let ((path, []) | ([], path)) = (frame.key, frame.value) else { return None };
    std::str::from_utf8(path).ok()
}

/// The level of VERBOSITY, at most 2.
pub fn verbosity(extras: &[u8]) -> Option<u32> {
    touch_expiry(extras).map(|level| level.min(2))
}

/// What SET_PARAM sets. Source: docs/specification/protocol.md, section 18.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter<'a> {
    /// 1 persistence and threads, 2 replication, 3 checkpoints, 4 DCP, 5 vBucket, 6 configuration.
    pub group: u32,
    /// The key.
    pub name: &'a str,
    /// The value.
    pub value: &'a str,
}

impl<'a> Parameter<'a> {
    /// Reads a request.
    pub fn parse(frame: &Frame<'a>) -> Option<Self> {
        let mut fields = Fields::new(frame.extras);
        let group = fields.u32()?;
        let name = std::str::from_utf8(frame.key).ok()?;
        let value = std::str::from_utf8(frame.value).ok()?;
        fields.finish(Self { group, name, value })
    }
}

/// What COMPACT_DB leaves out of a vBucket's file. Source: docs/specification/protocol.md,
/// section 18.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactDb {
    /// Tombstones from before this second since 1970 go; 0 for the bucket's own purge age.
    pub purge_before_seconds: u64,
    /// Of these, only those up to here; 0 for all.
    pub purge_before_seqno: u64,
    /// All tombstones go.
    pub drop_deletes: bool,
}

impl CompactDb {
    /// Reads a request. What was the id of a file and its padding is passed over.
    pub fn parse(frame: &Frame<'_>) -> Option<Self> {
        let mut fields = Fields::new(frame.extras);
        let purge_before_seconds = fields.u64()?;
        let purge_before_seqno = fields.u64()?;
        let drop_deletes = fields.u8()? != 0;
        let (_padding, _file, _reserved) = (fields.u8()?, fields.u16()?, fields.u32()?);
        fields.finish(Self { purge_before_seconds, purge_before_seqno, drop_deletes })
    }
}

/// What SELECT_BUCKET selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketSelection<'a> {
    /// A bucket. Its name is one that a bucket can have.
    Bucket(&'a str),
    /// No bucket any more.
    None,
}

impl<'a> BucketSelection<'a> {
    /// Reads the key.
    pub fn parse(key: &'a [u8]) -> Option<Self> {
        if key == NO_BUCKET {
            return Some(Self::None);
        }
        is_bucket_name(key).then_some(())?;
        std::str::from_utf8(key).ok().map(Self::Bucket)
    }
}

/// Whether a bucket can have this name: 1 to 100 of `A-Z a-z 0-9 . _ % -`.
pub fn is_bucket_name(name: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._%-".contains(byte);
    (1..=BUCKET_NAME_SIZE_MAX).contains(&name.len()) && name.iter().all(is_allowed)
}

/// The highest version of the error map that the client understands.
pub fn error_map_version(value: &[u8]) -> Option<u16> {
    value.try_into().ok().map(u16::from_be_bytes)
}

/// SASL_AUTH and SASL_STEP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sasl<'a> {
    /// The mechanism's name.
    pub mechanism: &'a str,
    /// What it says. Not empty in SASL_AUTH.
    pub data: &'a [u8],
}

impl<'a> Sasl<'a> {
    /// Reads key and value.
    pub fn parse(frame: &Frame<'a>) -> Option<Self> {
        let mechanism = std::str::from_utf8(frame.key).ok()?;
        Some(Self { mechanism, data: frame.value })
    }
}

/// STAT: a group, perhaps with an argument behind a space, perhaps with a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    /// The group; empty for the general statistics.
    pub group: &'a str,
    /// What follows the first space; empty when nothing does.
    pub argument: &'a str,
    /// A JSON text, or nothing.
    pub value: &'a [u8],
}

impl<'a> Stat<'a> {
    /// Reads key and value.
    pub fn parse(frame: &Frame<'a>) -> Option<Self> {
        let key = std::str::from_utf8(frame.key).ok()?;
        let (group, argument) = key.split_once(' ').unwrap_or((key, ""));
        Some(Self { group, argument: argument.trim_start(), value: frame.value })
    }
}

#[cfg(test)]
mod tests;
