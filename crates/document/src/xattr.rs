//! The extended attributes in front of a body. Source: docs/specification/protocol.md, section 13.
//!
//! ```text
//! u32 total | entries: { u32 length, key, 0, JSON value, 0 } ... | body
//! ```

use std::collections::BTreeSet;

use crate::datatype::is_json;

/// The xattr section with its length word, and the body behind it, of a value whose datatype says
/// that it has one. `None` when the length word lies.
pub fn split(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, _) = value.split_first_chunk::<4>()?;
    let section = usize::try_from(u32::from_be_bytes(*length)).ok()?.checked_add(4)?;
    value.split_at_checked(section)
}

/// The xattr section of `value` with its length word, reduced to system xattrs (keys that begin
/// with an underscore): what survives a deletion. Empty when there are none.
pub fn system_only(value: &[u8]) -> Vec<u8> {
    let mut kept = vec![0; 4];
    let entries = split(value).and_then(|(section, _)| section.get(4..)).unwrap_or_default();
    for entry in whole_entries(entries) {
        if entry.get(4) == Some(&b'_') {
            kept.extend_from_slice(entry);
        }
    }
    if kept.len() == 4 {
        return Vec::new();
    }
    let total = u32::try_from(kept.len() - 4).expect("a part of a value is below 4 GiB");
    kept[..4].copy_from_slice(&total.to_be_bytes());
    kept
}

/// Bytes of the entries of the system in a section, whose length word is left out.
pub fn system_size(section: &[u8]) -> usize {
    let of_system = entries(section).filter(|entry| entry.key.starts_with(b"_"));
    of_system.map(|entry| entry.size).sum()
}

/// One attribute of a section, whose length word is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XattrEntry<'a> {
    /// The key. Not empty.
    pub key: &'a [u8],
    /// A JSON text.
    pub value: &'a [u8],
    /// Bytes of the entry, its own length word included.
    pub size: usize,
}

/// The attributes of a section behind its length word, up to the first that is malformed.
pub fn entries(section: &[u8]) -> impl Iterator<Item = XattrEntry<'_>> {
    whole_entries(section).map_while(|entry| {
        let pair = entry.get(4..)?.strip_suffix(&[0])?;
        let end = pair.iter().position(|&byte| byte == 0).filter(|end| *end > 0)?;
        let (key, value) = pair.split_at_checked(end)?;
        Some(XattrEntry { key, value: value.strip_prefix(&[0])?, size: entry.len() })
    })
}

/// Bytes of an attribute's key at most.
const KEY_SIZE_MAX: usize = 15;

/// Whether an attribute, stored or virtual, can have this key: 1 to 15 bytes of UTF-8 that do not
/// begin with a control or punctuation character, but for `_` and `$`, which are not alone. Source:
/// docs/specification/protocol.md, section 13.2.
pub fn is_key(key: &[u8]) -> bool {
    let starts_well = match key {
        [] => false,
        [b'_' | b'$', rest @ ..] => !rest.is_empty(),
        [first, ..] => !first.is_ascii_punctuation() && !first.is_ascii_control(),
    };
    starts_well
        && key.len() <= KEY_SIZE_MAX
        && !key.contains(&0)
        && std::str::from_utf8(key).is_ok()
}

/// Whether the section in front of `value` is one that can be stored: every byte of it belongs to
/// an attribute with a key of its own, which is not that of a virtual one, and a JSON text.
pub fn is_well_formed(value: &[u8]) -> bool {
    let Some((section, _)) = split(value) else { return false };
    let section = &section[4..];
    let (mut keys, mut whole_bytes) = (BTreeSet::new(), 0);
    for entry in entries(section) {
        let can_be_stored = is_key(entry.key) && !entry.key.starts_with(b"$");
        if !can_be_stored || !keys.insert(entry.key) || !is_json(entry.value) {
            return false;
        }
        whole_bytes += entry.size;
    }
    whole_bytes == section.len()
}

/// Whether the `size` bytes at `at` of `value`, which begins with a section, lie in the body or in
/// the value of one attribute: whatever they are, the section keeps its form.
pub fn is_within_text(value: &[u8], at: usize, size: usize) -> bool {
    let Some((section, _)) = split(value) else { return false };
    let Some(end) = at.checked_add(size).filter(|end| *end <= value.len()) else { return false };
    if at >= section.len() {
        return true;
    }
    let mut begins_at = 4;
    entries(&section[4..]).any(|entry| {
        let value_at = begins_at + 4 + entry.key.len() + 1;
        begins_at += entry.size;
        at >= value_at && end <= value_at + entry.value.len()
    })
}

/// The entries with their length words.
fn whole_entries(mut section: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (entry, rest) = split(section)?;
        section = rest;
        Some(entry)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_follows_the_section() {
        let value = b"\x00\x00\x00\x0b\x00\x00\x00\x07_k\x00123\x00body";
        let (section, body) = split(value).unwrap();
        assert_eq!(section.len(), 15);
        assert_eq!(body, b"body");
    }

    #[test]
    fn system_xattrs_survive_alone() {
        let mut value = vec![0, 0, 0, 0];
        value.extend_from_slice(&[0, 0, 0, 4, b'u', 0, b'1', 0]);
        value.extend_from_slice(&[0, 0, 0, 5, b'_', b's', 0, b'2', 0]);
        value[3] = u8::try_from(value.len() - 4).unwrap();
        value.extend_from_slice(b"body");
        assert_eq!(system_only(&value), b"\x00\x00\x00\x09\x00\x00\x00\x05_s\x002\x00");
        assert_eq!(system_only(&value[..2]), b"");
        assert_eq!(system_only(b"\x00\x00\x00\x00body"), b"");
    }

    #[test]
    fn entries_are_told_up_to_what_is_malformed() {
        let good = b"\x00\x00\x00\x07_k\x00123\x00";
        let entry = XattrEntry { key: b"_k", value: b"123", size: 11 };
        assert_eq!(entries(good).collect::<Vec<_>>(), [entry]);
        assert_eq!(entries(&[&good[..], good].concat()).count(), 2);
        for bad in [
            &b"\x00\x00\x00\x06_k\x00123"[..],
            b"\x00\x00\x00\x05_k123\x00",
            b"\x00\x00\x00\x05\x00123\x00",
            b"\x00\x00\x00\x09_k\x00123\x00",
            b"\x00\x00\x00\x00",
        ] {
            assert_eq!(entries(&[&good[..], bad].concat()).count(), 1, "{bad:?}");
        }
    }

    #[test]
    fn text_is_what_is_neither_a_length_nor_a_key() {
        let value = b"\0\0\0\x16\0\0\0\x07_k\x00123\0\0\0\0\x07_l\x00456\0body";
        for (at, size, is_text) in [
            (11, 3, true),
            (11, 4, false),
            (10, 2, false),
            (22, 3, true),
            (12, 12, false),
            (26, 4, true),
            (25, 2, false),
            (26, 5, false),
            (usize::MAX, 2, false),
            (0, 4, false),
        ] {
            assert_eq!(is_within_text(value, at, size), is_text, "{at} {size}");
        }
        assert!(!is_within_text(b"\0\0\0\x09", 0, 1));
    }

    #[test]
    fn a_section_is_stored_when_all_of_it_is_attributes() {
        let entry = |key: &[u8], value: &[u8]| {
            let pair = [key, b"\0", value, b"\0"].concat();
            [&u32::try_from(pair.len()).unwrap().to_be_bytes()[..], &pair].concat()
        };
        let value = |entries: &[u8]| {
            let length = u32::try_from(entries.len()).unwrap().to_be_bytes();
            [&length[..], entries, b"body"].concat()
        };
        let good = entry(b"_k", br#"{"a":1}"#);
        assert!(is_well_formed(&value(&[])));
        assert!(is_well_formed(&value(&good)));
        assert!(is_well_formed(&value(&[good.clone(), entry(b"fifteen_letters", b"1")].concat())));
        for bad in [
            entry(b"", b"1"),
            entry(b"_k", b"no JSON"),
            entry(b"sixteen__letters", b"1"),
            entry(b"\xff", b"1"),
            entry(b"_", b"1"),
            entry(b"$document", b"1"),
            entry(b"!a", b"1"),
            [&good[..], &good].concat(),
            vec![0, 0, 0, 4, b'k', b'1', b'2', 0],
            good[..good.len() - 1].to_vec(),
            [&good[..], &[0]].concat(),
        ] {
            assert!(!is_well_formed(&value(&bad)), "{bad:?}");
        }
        assert!(!is_well_formed(b"\0\0\0\x09body"), "the length word lies");
        assert!(!is_well_formed(b""));
    }

    #[test]
    fn a_lying_length_is_no_section() {
        assert_eq!(split(b"\x00\x00"), None);
        assert_eq!(split(b"\x00\x00\x00\x05abc"), None);
        assert_eq!(split(b"\xff\xff\xff\xffabc"), None);
    }
}
