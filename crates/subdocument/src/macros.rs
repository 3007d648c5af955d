//! Values that the server fills in. Source: docs/specification/protocol.md, section 12.8.
//!
//! What a macro about the document before the change becomes is known at once. What one about the
//! change itself becomes is not: the checksum is known when all is changed, CAS and seqno when
//! the document gets its place in history. Until then marks stand in the attributes: strings of
//! the final width, of bytes that no JSON has, so that they stay what they are wherever later
//! paths of the request move them.

use document::placeholders::{PLACEHOLDER_SIZE, PlaceholderKind, Placeholders};

use crate::failure::Failure;
use crate::find::value_at;
use crate::path::Path;
use crate::stored::StoredDocument;
use crate::virtual_attributes;

/// A macro.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Macro<'a> {
    /// Something about the change.
    Mutation(MutationMacro),
    /// All about the document before the change.
    Document,
    /// One field of that.
    DocumentField(&'a str),
}

/// Something about the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MutationMacro {
    Cas,
    Seqno,
    Checksum,
}

const ALL: [MutationMacro; 3] = [MutationMacro::Cas, MutationMacro::Seqno, MutationMacro::Checksum];

/// What stands in front of the digits.
const DIGITS_PREFIX: &[u8] = b"0x";

/// The fields that can be had alone.
const FIELDS: [&str; 10] = [
    "CAS",
    "vbucket_uuid",
    "seqno",
    "revid",
    "exptime",
    "flags",
    "value_bytes",
    "datatype",
    "deleted",
    "last_modified",
];

impl<'a> Macro<'a> {
    /// The macro that a value is.
    pub(crate) fn parse(value: &'a [u8]) -> Result<Self, Failure> {
        let text = std::str::from_utf8(value).map_err(|_| Failure::UnknownMacro)?;
        let inside = text.strip_prefix("\"${").and_then(|text| text.strip_suffix("}\""));
        let name = inside.ok_or(Failure::UnknownMacro)?;
        match name {
            "Mutation.CAS" => Ok(Self::Mutation(MutationMacro::Cas)),
            "Mutation.seqno" => Ok(Self::Mutation(MutationMacro::Seqno)),
            "Mutation.value_crc32c" => Ok(Self::Mutation(MutationMacro::Checksum)),
            "$document" => Ok(Self::Document),
            _ => {
                let field = name.strip_prefix("$document.").ok_or(Failure::UnknownMacro)?;
                let is_known = FIELDS.contains(&field);
                let field = is_known.then_some(Self::DocumentField(field));
                field.ok_or(Failure::UnknownDocumentMacro)
            }
        }
    }

    /// What stands in its place: its value, or a mark.
    pub(crate) fn expand(self, before: &StoredDocument<'_>) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Mutation(what) => Ok(what.mark()),
            Self::Document => Ok(virtual_attributes::document(before, true).into_bytes()),
            Self::DocumentField(field) => {
                let text = virtual_attributes::document(before, false);
                let path = Path::parse(field.as_bytes())?;
                let value = value_at(text.as_bytes(), path.components());
                value.map(<[u8]>::to_vec).map_err(|_| Failure::UnknownDocumentMacro)
            }
        }
    }
}

impl MutationMacro {
    fn byte(self) -> u8 {
        match self {
            Self::Cas => 0xfd,
            Self::Seqno => 0xfe,
            Self::Checksum => 0xff,
        }
    }

    /// What is written later; the checksum is known as soon as all is changed.
    fn placeholder(self) -> Option<PlaceholderKind> {
        match self {
            Self::Cas => Some(PlaceholderKind::Cas),
            Self::Seqno => Some(PlaceholderKind::Seqno),
            Self::Checksum => None,
        }
    }

    /// Bytes between the quotes.
    fn size(self) -> usize {
        let digits = if self == Self::Checksum { 8 } else { PLACEHOLDER_SIZE };
        DIGITS_PREFIX.len() + digits
    }

    fn mark(self) -> Vec<u8> {
        let mut mark = vec![b'"'];
        mark.resize(self.size() + 1, self.byte());
        mark.push(b'"');
        mark
    }
}

/// Takes the marks out of a text of attributes: the checksum of the body stands in their place, or
/// zeros, whose places are told.
pub(crate) fn resolve_marks(text: &mut [u8], body: &[u8]) -> Placeholders {
    let mut placeholders = Placeholders::default();
    let mut at = 0;
    while let Some((what, start)) = next_mark(text, at) {
        let range = start..start + what.size();
        let place = text.get_mut(range.clone()).expect("a mark lies in the text");
        match what.placeholder() {
            None => {
                place.copy_from_slice(format!("0x{:08x}", crc32c::crc32c(body)).as_bytes());
            }
            Some(kind) => {
                place.fill(b'0');
                place.iter_mut().zip(DIGITS_PREFIX).for_each(|(byte, &prefix)| *byte = prefix);
                placeholders.push(kind, start + DIGITS_PREFIX.len());
            }
        }
        at = range.end;
    }
    placeholders
}

/// The next mark, and where it begins behind its quote.
fn next_mark(text: &[u8], mut at: usize) -> Option<(MutationMacro, usize)> {
    loop {
        at += text.get(at..)?.iter().position(|byte| *byte >= MutationMacro::Cas.byte())?;
        let rest = text.get(at..)?;
        let what = ALL.into_iter().find(|what| rest.first() == Some(&what.byte()))?;
        let size = rest.iter().take_while(|byte| **byte == what.byte()).count();
        if size == what.size() {
            return Some((what, at));
        }
        at += size;
    }
}

#[cfg(test)]
mod tests {
    use document::{Cas, Datatype, Seqno};

    use super::*;
    use crate::stored::DocumentFacts;

    fn expanded(value: &str) -> Result<Vec<u8>, Failure> {
        let facts = DocumentFacts { cas: Cas(0xab), expiry: 9, ..DocumentFacts::default() };
        let before = StoredDocument { value: b"{}", datatype: Datatype::JSON, facts };
        Macro::parse(value.as_bytes())?.expand(&before)
    }

    #[test]
    fn what_is_known_stands_there_at_once() {
        let whole = expanded("\"${$document}\"").unwrap();
        assert!(whole.starts_with(b"{\"CAS\":\"0x00000000000000ab\""));
        assert!(whole.windows(12).any(|window| window == b"value_crc32c"));
        assert_eq!(expanded("\"${$document.exptime}\"").as_deref(), Ok(&b"9"[..]));
        assert_eq!(expanded("\"${$document.deleted}\"").as_deref(), Ok(&b"false"[..]));
    }

    #[test]
    fn unknown_macros_are_named() {
        for (value, failure) in [
            ("\"${Mutation.cas}\"", Failure::UnknownMacro),
            ("\"Mutation.CAS\"", Failure::UnknownMacro),
            ("${Mutation.CAS}", Failure::UnknownMacro),
            ("1", Failure::UnknownMacro),
            ("\"${$vbucket}\"", Failure::UnknownMacro),
            ("\"${$document.value_crc32c}\"", Failure::UnknownDocumentMacro),
            ("\"${$document.x}\"", Failure::UnknownDocumentMacro),
            ("\"${$document.last_modified}\"", Failure::UnknownDocumentMacro),
        ] {
            assert_eq!(expanded(value), Err(failure), "{value}");
        }
    }

    #[test]
    fn cas_seqno_and_checksum_are_written_in_place() {
        let mut text = Vec::new();
        for name in ["CAS", "seqno", "value_crc32c", "CAS"] {
            text.extend(expanded(&format!("\"${{Mutation.{name}}}\"")).unwrap());
        }
        let size = text.len();
        let placeholders = resolve_marks(&mut text, b"123456789");
        placeholders.fill(&mut text, Cas(0x15d3_0000_0000_00ab), Seqno(0x12));
        let expected = concat!(
            r#""0xab0000000000d315""#,
            r#""0x0000000000000012""#,
            r#""0xe3069283""#,
            r#""0xab0000000000d315""#
        );
        assert_eq!(String::from_utf8(text).unwrap(), expected);
        assert_eq!(size, expected.len());
    }

    #[test]
    fn other_bytes_are_no_marks() {
        let mut text = b"\"\xff\xff\" \"\xfd\xfd\xfd\" \xfe".to_vec();
        let before = text.clone();
        assert!(resolve_marks(&mut text, b"").is_empty());
        assert_eq!(text, before);
    }
}
