//! What a range scan finds, read from responses. Source: docs/specification/protocol.md, section
//! 16.1.

use document::{Cas, Datatype, Seqno};

use crate::fields::Fields;
use crate::range_scan::ScannedDocument;

/// Bits of a length in each of its bytes.
const LENGTH_BITS: u32 = 7;
/// Bytes of a length, at most.
const LENGTH_BYTES_MAX: u32 = 5;

/// Reads the names that a response to RANGE_SCAN_CONTINUE brings of a scan of keys alone; `None`
/// when that is something else.
pub fn scanned_names(value: &[u8]) -> Option<Vec<&[u8]>> {
    let mut fields = Fields::new(value);
    let mut names = Vec::new();
    while !fields.is_empty() {
        names.push(sized(&mut fields)?);
    }
    Some(names)
}

/// Reads the documents that a response to RANGE_SCAN_CONTINUE brings; `None` when that is something
/// else.
pub fn scanned_documents(value: &[u8]) -> Option<Vec<ScannedDocument<'_>>> {
    let mut fields = Fields::new(value);
    let mut documents = Vec::new();
    while !fields.is_empty() {
        documents.push(ScannedDocument {
            flags: fields.array()?,
            expiry: fields.u32()?,
            seqno: Seqno(fields.u64()?),
            cas: Cas(fields.u64()?),
            datatype: Datatype::from_bits(fields.u8()?)?,
            name: sized(&mut fields)?,
            value: sized(&mut fields)?,
        });
    }
    Some(documents)
}

/// Bytes behind their length in LEB128.
fn sized<'a>(fields: &mut Fields<'a>) -> Option<&'a [u8]> {
    let mut length = 0_u64;
    for place in 0..LENGTH_BYTES_MAX {
        let byte = fields.u8()?;
        let shift = place.checked_mul(LENGTH_BITS)?;
        length |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return fields.bytes(usize::try_from(length).ok()?);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range_scan::{encode_scanned_document, encode_scanned_name};

    #[test]
    fn what_a_server_writes_is_read() {
        let long = vec![b'v'; 20_000];
        let document = |name: &'static [u8], value| ScannedDocument {
            flags: [1, 2, 3, 4],
            expiry: 5,
            seqno: Seqno(6),
            cas: Cas(7),
            datatype: Datatype::JSON,
            name,
            value,
        };
        let documents = vec![document(b"a", b""), document(b"b", &long)];
        let (mut written, mut names) = (Vec::new(), Vec::new());
        for document in &documents {
            encode_scanned_document(document, &mut written);
            encode_scanned_name(document.name, &mut names);
        }
        assert_eq!(scanned_documents(&written), Some(documents));
        assert_eq!(scanned_names(&names), Some(vec![&b"a"[..], b"b"]));
    }

    #[test]
    fn what_is_cut_off_is_nothing_and_never_a_panic() {
        let mut written = Vec::new();
        let document = ScannedDocument { name: b"name", value: b"value", ..Default::default() };
        encode_scanned_document(&document, &mut written);
        for size in 1..written.len() {
            assert_eq!(scanned_documents(&written[..size]), None, "{size}");
        }
        assert_eq!(scanned_names(b"\x05name"), None);
        assert_eq!(scanned_names(&[0xff; 9]), None);
    }
}
