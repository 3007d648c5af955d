//! The extended attributes in front of a body. Source: protocol specification, section 13.
//!
//! ```text
//! u32 total | entries: { u32 length, key, 0, JSON value, 0 } ... | body
//! ```

/// The xattr section with its length word, and the body behind it, of a value whose datatype says
/// that it has one. `None` when the length word lies.
pub fn split(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, _) = value.split_first_chunk::<4>()?;
    let section = usize::try_from(u32::from_be_bytes(*length)).ok()?.checked_add(4)?;
    value.split_at_checked(section)
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
    fn a_lying_length_is_no_section() {
        assert_eq!(split(b"\x00\x00"), None);
        assert_eq!(split(b"\x00\x00\x00\x05abc"), None);
        assert_eq!(split(b"\xff\xff\xff\xffabc"), None);
    }
}
