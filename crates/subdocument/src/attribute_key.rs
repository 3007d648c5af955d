//! The keys of extended attributes. Source: docs/specification/protocol.md, section 13.2.

use document::xattr;

use crate::failure::Failure;

/// The key of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AttributeKey<'a>(&'a [u8]);

impl<'a> AttributeKey<'a> {
    /// The key that a path begins with, and the rest of the path: nothing, or what begins with a
    /// period or an index. Keys know no backticks.
    pub(crate) fn split(path: &'a [u8]) -> Result<(Self, &'a [u8]), Failure> {
        let end = path.iter().position(|byte| matches!(byte, b'.' | b'['));
        let (key, rest) = path.split_at(end.unwrap_or(path.len()));
        if xattr::is_key(key) { Ok((Self(key), rest)) } else { Err(Failure::AttributeInvalid) }
    }

    /// The key.
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether the attribute belongs to the system: it outlives its document.
    pub(crate) fn is_of_system(self) -> bool {
        self.0.starts_with(b"_")
    }

    /// Whether the attribute is made when somebody asks for it.
    pub(crate) fn is_virtual(self) -> bool {
        self.0.starts_with(b"$")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_a_key() {
        for (path, key, rest) in [
            ("txn", "txn", ""),
            ("txn.op.bin", "txn", ".op.bin"),
            ("list[0]", "list", "[0]"),
            ("_sync", "_sync", ""),
            ("$document.exptime", "$document", ".exptime"),
            ("a`b.c`", "a`b", ".c`"),
            ("123456789012345", "123456789012345", ""),
        ] {
            let (found, behind) = AttributeKey::split(path.as_bytes()).unwrap();
            assert_eq!((found.bytes(), behind), (key.as_bytes(), rest.as_bytes()));
        }
    }

    #[test]
    fn malformed_keys_are_named() {
        for path in ["", ".a", "[0]", "_", "$", "!a", "`a`", "\u{1}a", "a\0", "1234567890123456"] {
            let found = AttributeKey::split(path.as_bytes());
            assert_eq!(found, Err(Failure::AttributeInvalid), "{path}");
        }
        assert_eq!(AttributeKey::split(b"a\xff"), Err(Failure::AttributeInvalid));
    }
}
