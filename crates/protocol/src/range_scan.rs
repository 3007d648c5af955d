//! Range scans: what is asked for, and how results are written. Source:
//! docs/specification/protocol.md, section 16.1.

use std::ops::Bound;

use document::limits::KEY_SIZE_MAX;
use document::{Cas, CollectionId, Datatype, Seqno, VbUuid};
use serde::Deserialize;

use crate::fields::Fields;
use crate::text::key::decode as decode_base64;

/// Bytes of the name that a client gives to a scan, at most.
const NAME_SIZE_MAX: usize = 50;

/// The value of RANGE_SCAN_CREATE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeScanCreate {
    /// The collection.
    pub collection: CollectionId,
    /// Whether results are keys alone.
    pub key_only: bool,
    /// Whether documents come with their extended attributes.
    pub include_xattrs: bool,
    /// What people know it by; may be empty.
    pub name: String,
    /// Which documents.
    pub selection: ScanSelection,
    /// What it has to see.
    pub snapshot: Option<SnapshotRequirements>,
}

/// Which documents of a collection a scan is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanSelection {
    /// Those whose names lie between these.
    Range {
        /// Where it begins.
        start: Bound<Vec<u8>>,
        /// Where it ends.
        end: Bound<Vec<u8>>,
    },
    /// About so many, chosen by chance.
    Sampling {
        /// How many. Not 0.
        samples: u64,
        /// The same seed chooses the same ones of the same documents.
        seed: u64,
    },
}

/// What a scan has to see, or it is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotRequirements {
    /// The branch of history that the vBucket is on.
    pub uuid: VbUuid,
    /// Everything up to here.
    pub seqno: Seqno,
    /// Whether a document has to be there whose last change is `seqno`.
    pub must_exist: bool,
    /// How long to wait until `seqno` is persisted; 0 for not at all.
    pub timeout_ms: u64,
}

/// The extras of RANGE_SCAN_CONTINUE: id:16 items:4 milliseconds:4 bytes:4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeScanContinue {
    /// Which scan.
    pub id: [u8; 16],
    /// Results after which it pauses; 0 for no limit.
    pub items_max: u32,
    /// Milliseconds after which it pauses; 0 for no limit.
    pub time_max_ms: u32,
    /// Bytes of results after which it pauses; 0 for no limit.
    pub bytes_max: u32,
}

/// A document as a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScannedDocument<'a> {
    /// The client's own, as they came.
    pub flags: [u8; 4],
    /// Seconds since 1970; 0 for never.
    pub expiry: u32,
    /// Its place in the history of the vBucket.
    pub seqno: Seqno,
    /// The version.
    pub cas: Cas,
    /// What the value is.
    pub datatype: Datatype,
    /// The name, without the collection.
    pub name: &'a [u8],
    /// Attributes and body, as the client reads them.
    pub value: &'a [u8],
}

#[derive(Deserialize)]
struct CreateJson {
    collection: Option<String>,
    #[serde(default)]
    key_only: bool,
    #[serde(default)]
    include_xattrs: bool,
    #[serde(default)]
    name: String,
    range: Option<RangeJson>,
    sampling: Option<SamplingJson>,
    snapshot_requirements: Option<SnapshotJson>,
}

#[derive(Deserialize)]
struct RangeJson {
    start: Option<String>,
    excl_start: Option<String>,
    end: Option<String>,
    excl_end: Option<String>,
}

#[derive(Deserialize)]
struct SamplingJson {
    samples: u64,
    #[serde(default)]
    seed: u64,
}

#[derive(Deserialize)]
struct SnapshotJson {
    vb_uuid: String,
    seqno: u64,
    #[serde(default)]
    seqno_exists: bool,
    #[serde(default)]
    timeout_ms: u64,
}

impl RangeScanCreate {
    /// Reads a value.
    ///
    /// # Errors
    /// What is wrong with it, for people; the answer is EINVAL.
    pub fn parse(value: &[u8]) -> Result<Self, &'static str> {
        let json: CreateJson = serde_json::from_slice(value)
            .map_err(|_| "the value is JSON with the fields of a range scan")?;
        let collection =
            json.collection.as_deref().map_or(Ok(CollectionId::DEFAULT), collection)?;
        if json.name.len() > NAME_SIZE_MAX {
            return Err("the name of a scan has at most 50 bytes");
        }
        if json.key_only && json.include_xattrs {
            return Err("keys come without attributes");
        }
        let selection = match (json.range, json.sampling) {
            (Some(range), None) => range.read()?,
            (None, Some(SamplingJson { samples: 0, .. })) => {
                return Err("a sampling has at least one sample");
            }
            (None, Some(SamplingJson { samples, seed })) => {
                ScanSelection::Sampling { samples, seed }
            }
            _ => return Err("a scan has either a range or a sampling"),
        };
        let snapshot = json.snapshot_requirements.map(SnapshotJson::read).transpose()?;
        Ok(Self {
            collection,
            key_only: json.key_only,
            include_xattrs: json.include_xattrs,
            name: json.name,
            selection,
            snapshot,
        })
    }
}

fn collection(text: &str) -> Result<CollectionId, &'static str> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    // `from_str_radix` takes a sign, too.
    let is_number = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let id = u32::from_str_radix(digits, 16).ok().filter(|_| is_number);
    id.map(CollectionId).ok_or("a collection is a hexadecimal number")
}

impl RangeJson {
    fn read(self) -> Result<ScanSelection, &'static str> {
        let start = bound(self.start, self.excl_start)?
            .ok_or("a range has either a start or an excl_start")?;
        let end =
            bound(self.end, self.excl_end)?.ok_or("a range has either an end or an excl_end")?;
        Ok(ScanSelection::Range { start, end })
    }
}

/// One end of a range, of which there are two forms; `None` when it is given in both, or in none.
fn bound(
    included: Option<String>,
    excluded: Option<String>,
) -> Result<Option<Bound<Vec<u8>>>, &'static str> {
    match (included, excluded) {
        (Some(name), None) => Ok(Some(Bound::Included(decoded(&name)?))),
        (None, Some(name)) => Ok(Some(Bound::Excluded(decoded(&name)?))),
        _ => Ok(None),
    }
}

fn decoded(text: &str) -> Result<Vec<u8>, &'static str> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let name = decode_base64(text.as_bytes());
    let name = name.ok_or("the ends of a range are keys of at most 250 bytes in base64")?;
    let bytes = name.as_bytes().to_vec();
    assert!(bytes.len() <= KEY_SIZE_MAX, "the decoder keeps the limit of keys");
    Ok(bytes)
}

impl SnapshotJson {
    fn read(self) -> Result<SnapshotRequirements, &'static str> {
        let is_number = self.vb_uuid.bytes().all(|digit| digit.is_ascii_digit());
        let uuid = self.vb_uuid.parse().ok().filter(|_| is_number);
        Ok(SnapshotRequirements {
            uuid: VbUuid(uuid.ok_or("vb_uuid is a decimal number, as a text")?),
            seqno: Seqno(self.seqno),
            must_exist: self.seqno_exists,
            timeout_ms: self.timeout_ms,
        })
    }
}

impl RangeScanContinue {
    /// Decodes the extras.
    pub fn parse(extras: &[u8]) -> Option<Self> {
        let mut fields = Fields::new(extras);
        let continued = Self {
            id: fields.array()?,
            items_max: fields.u32()?,
            time_max_ms: fields.u32()?,
            bytes_max: fields.u32()?,
        };
        fields.finish(continued)
    }
}

/// The scan that RANGE_SCAN_CANCEL names.
pub fn cancelled_scan(extras: &[u8]) -> Option<[u8; 16]> {
    extras.try_into().ok()
}

/// Appends a name to results that are keys alone: LEB128 length, name.
#[inline]
pub fn encode_scanned_name(name: &[u8], out: &mut Vec<u8>) {
    put_length(name.len(), out);
    out.extend_from_slice(name);
}

/// Appends a document to results: flags:4 expiry:4 seqno:8 CAS:8 datatype:1, then key and value,
/// each behind its length in LEB128.
pub fn encode_scanned_document(document: &ScannedDocument<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&document.flags);
    out.extend_from_slice(&document.expiry.to_be_bytes());
    out.extend_from_slice(&document.seqno.0.to_be_bytes());
    out.extend_from_slice(&document.cas.0.to_be_bytes());
    out.push(document.datatype.bits());
    for part in [document.name, document.value] {
        put_length(part.len(), out);
        out.extend_from_slice(part);
    }
}

#[inline]
fn put_length(length: usize, out: &mut Vec<u8>) {
    let mut left = u32::try_from(length).expect("what a client receives is below 4 GiB");
    loop {
        let [.., bits] = left.to_be_bytes();
        left >>= 7;
        if left == 0 {
            out.push(bits & 0x7f);
            return;
        }
        out.push(bits | 0x80);
    }
}

#[cfg(test)]
mod tests;
