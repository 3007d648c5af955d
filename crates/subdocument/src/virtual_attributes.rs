//! Attributes that nobody stores: what the server knows, as JSON. Source:
//! docs/specification/protocol.md, section 12.8.

use document::{Datatype, xattr};

use crate::attribute_key::AttributeKey;
use crate::failure::Failure;
use crate::stored::{ClockFacts, DocumentFacts, StoredDocument};

const DATATYPES: [(Datatype, &str); 3] =
    [(Datatype::JSON, "json"), (Datatype::SNAPPY, "snappy"), (Datatype::XATTR, "xattr")];

/// The text of a virtual attribute, given what is behind its key in the path.
pub(crate) fn text(
    key: AttributeKey<'_>,
    rest: &[u8],
    stored: &StoredDocument<'_>,
    clock: ClockFacts,
    shows_system: bool,
) -> Result<Vec<u8>, Failure> {
    match key.bytes() {
        b"$document" => Ok(document(stored, is_about_checksum(rest)).into_bytes()),
        b"$XTOC" => Ok(keys(stored.parts().0, shows_system)),
        b"$vbucket" => Ok(vbucket(clock).into_bytes()),
        _ => Err(Failure::UnknownVirtualAttribute),
    }
}

/// `$document` of a document; the checksum, which costs a look at the whole body, if it is wanted.
pub(crate) fn document(stored: &StoredDocument<'_>, has_checksum: bool) -> String {
    let (_, body) = stored.parts();
    let facts = &stored.facts;
    let mut text = format!(
        "{{\"CAS\":\"0x{:016x}\",\"vbucket_uuid\":\"0x{:016x}\",\"seqno\":\"0x{:016x}\",\
         \"revid\":\"{}\",\"exptime\":{},\"flags\":{},\"value_bytes\":{},\"datatype\":[{}],\
         \"deleted\":{}",
        facts.cas.0,
        facts.vbucket_uuid.0,
        facts.seqno.0,
        facts.revision.0,
        facts.expiry,
        u32::from_be_bytes(facts.flags),
        body.len(),
        datatypes(facts),
        facts.is_deleted,
    );
    if facts.is_cas_a_time {
        let seconds = facts.cas.0 / 1_000_000_000;
        text.push_str(&format!(",\"last_modified\":\"{seconds}\""));
    }
    if has_checksum {
        text.push_str(&format!(",\"value_crc32c\":\"0x{:08x}\"", crc32c::crc32c(body)));
    }
    text.push('}');
    text
}

/// Whether a path in `$document` can lead to the checksum.
fn is_about_checksum(rest: &[u8]) -> bool {
    matches!(rest, b"" | b".") || rest.windows(5).any(|window| window == b"crc32")
}

fn datatypes(facts: &DocumentFacts) -> String {
    let has = |datatype: &(Datatype, &str)| facts.stored_datatype.contains(datatype.0);
    let names: Vec<_> = DATATYPES.iter().filter(|datatype| has(datatype)).collect();
    if names.is_empty() {
        return "\"raw\"".to_owned();
    }
    names.iter().map(|(_, name)| format!("\"{name}\"")).collect::<Vec<_>>().join(",")
}

fn keys(section: &[u8], shows_system: bool) -> Vec<u8> {
    let keys: Vec<_> = xattr::entries(section)
        .filter(|entry| shows_system || !entry.key.starts_with(b"_"))
        .map(|entry| String::from_utf8_lossy(entry.key))
        .collect();
    serde_json::to_vec(&keys).expect("strings are JSON")
}

fn vbucket(clock: ClockFacts) -> String {
    let mode = if clock.is_logical { "logical" } else { "real" };
    format!("{{\"HLC\":{{\"now\":\"{}\",\"mode\":\"{mode}\"}}}}", clock.seconds)
}

#[cfg(test)]
mod tests {
    use document::{Cas, RevSeqno, Seqno, VbUuid};

    use super::*;

    fn stored(value: &[u8]) -> StoredDocument<'_> {
        StoredDocument {
            value,
            datatype: Datatype::JSON,
            facts: DocumentFacts {
                cas: Cas(0x15d3_0000_0000_0001),
                vbucket_uuid: VbUuid(0xabc),
                seqno: Seqno(7),
                revision: RevSeqno(5),
                expiry: 1_700_000_000,
                flags: [2, 0, 0, 6],
                stored_datatype: Datatype::JSON.with(Datatype::XATTR),
                is_deleted: false,
                is_cas_a_time: true,
            },
        }
    }

    fn shown(path: &str, stored: &StoredDocument<'_>) -> Result<String, Failure> {
        let (key, rest) = AttributeKey::split(path.as_bytes()).unwrap();
        let clock = ClockFacts { seconds: 12, is_logical: false };
        text(key, rest, stored, clock, false).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_document_tells_of_itself() {
        let stored = stored(b"{\"a\":1}");
        let expected = concat!(
            r#"{"CAS":"0x15d3000000000001","vbucket_uuid":"0x0000000000000abc","#,
            r#""seqno":"0x0000000000000007","revid":"5","exptime":1700000000,"flags":33554438,"#,
            r#""value_bytes":7,"datatype":["json","xattr"],"deleted":false,"#,
            r#""last_modified":"1572600694","value_crc32c":"0xcff7d56a"}"#
        );
        assert_eq!(shown("$document", &stored).as_deref(), Ok(expected));
        let without = expected.replace(",\"value_crc32c\":\"0xcff7d56a\"", "");
        assert_eq!(shown("$document.exptime", &stored), Ok(without));
        assert_eq!(shown("$document.value_crc32c", &stored).as_deref(), Ok(expected));
    }

    #[test]
    fn a_raw_tombstone_says_so() {
        let facts = DocumentFacts { is_deleted: true, ..DocumentFacts::default() };
        let stored = StoredDocument { value: b"", datatype: Datatype::RAW, facts };
        let text = shown("$document.deleted", &stored).unwrap();
        assert!(text.ends_with("\"datatype\":[\"raw\"],\"deleted\":true}"), "{text}");
    }

    #[test]
    fn keys_of_the_system_are_for_those_who_may_read_them() {
        let section = b"\0\0\0\x05_a\x001\0\0\0\0\x05b\"\x001\0";
        assert_eq!(keys(section, true), b"[\"_a\",\"b\\\"\"]");
        assert_eq!(keys(section, false), b"[\"b\\\"\"]");
    }

    #[test]
    fn the_clock_is_told_in_seconds() {
        let expected = r#"{"HLC":{"now":"12","mode":"real"}}"#;
        assert_eq!(shown("$vbucket.HLC", &stored(b"")).as_deref(), Ok(expected));
        assert_eq!(shown("$other", &stored(b"")), Err(Failure::UnknownVirtualAttribute));
    }
}
