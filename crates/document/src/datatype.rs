//! What the bytes of a value are. Source: docs/specification/protocol.md, section 7.

/// Datatype bits of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datatype(u8);

impl Datatype {
    /// Bytes without further meaning.
    pub const RAW: Self = Self(0);
    /// The body is valid JSON.
    pub const JSON: Self = Self(1);
    /// The whole value is compressed in snappy's raw format.
    pub const SNAPPY: Self = Self(2);
    /// The value begins with an xattr section.
    pub const XATTR: Self = Self(4);

    /// The datatype with these wire bits, unless a bit is undefined.
    pub fn from_bits(bits: u8) -> Option<Self> {
        (bits <= 7).then_some(Self(bits))
    }

    /// The wire bits.
    pub fn bits(self) -> u8 {
        self.0
    }

    /// Whether every bit of `other` is set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// With the bits of `other` set.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// With the bits of `other` cleared.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// Whether `body` is one valid JSON value. The server decides this itself: most clients do not set
/// the JSON bit, and none is trusted with it.
pub fn is_json(body: &[u8]) -> bool {
    // A look at the first byte spares binary bodies the parser.
    let starts = body.iter().find(|byte| !byte.is_ascii_whitespace());
    let plausible =
        matches!(starts, Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n'));
    plausible
        && std::str::from_utf8(body)
            .is_ok_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_recognised_by_parsing() {
        for body in ["{}", "[1,2]", "\"text\"", " 12 ", "-0.5e3", "true", "null"] {
            assert!(is_json(body.as_bytes()), "{body}");
        }
        for body in ["", " ", "{", "hello", "{}x", "01", "nul", "[1,]", "\u{1}"] {
            assert!(!is_json(body.as_bytes()), "{body}");
        }
        assert!(!is_json(b"\"\xff\""), "text must be UTF-8");
    }

    #[test]
    fn undefined_bits_are_refused() {
        assert_eq!(Datatype::from_bits(7).map(Datatype::bits), Some(7));
        assert_eq!(Datatype::from_bits(8), None);
    }
}
