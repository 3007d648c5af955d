//! Keys as a line has them, some of meta commands in base64 (RFC 4648, section 4).

use document::limits::KEY_SIZE_MAX;

/// Bytes that base64 makes of three.
const GROUP_SIZE: usize = 4;
/// Characters that a key may take in base64.
pub(super) const ENCODED_SIZE_MAX: usize = KEY_SIZE_MAX.div_ceil(3) * GROUP_SIZE;

/// The name of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// As it was sent.
    Plain(&'a [u8]),
    /// Decoded from base64; at least 1 byte. Elsewhere, because every request that is read is moved
    /// around with the room for it.
    Decoded(Box<[u8]>),
}

impl Name<'_> {
    /// The name.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Plain(name) => name,
            Self::Decoded(name) => name,
        }
    }
}

/// Decodes a key of at most 250 bytes that is padded as it has to be.
pub(crate) fn decode(word: &[u8]) -> Option<Name<'static>> {
    let is_whole = word.len().is_multiple_of(GROUP_SIZE) && !word.is_empty();
    if !is_whole || word.len() > ENCODED_SIZE_MAX {
        return None;
    }
    let padding = word.iter().rev().take_while(|byte| **byte == b'=').count();
    let digits = word.get(..word.len().checked_sub(padding).filter(|_| padding <= 2)?)?;
    let mut decoded = Decoder::default();
    for digit in digits {
        decoded.take(value_of(*digit)?)?;
    }
    // What the last digit says beyond the last byte is nothing.
    let name = decoded.bytes.get(..decoded.size).filter(|_| decoded.bits == 0)?;
    Some(Name::Decoded(name.into()))
}

struct Decoder {
    bytes: [u8; KEY_SIZE_MAX],
    size: usize,
    /// What belongs to the next byte.
    bits: u32,
    bit_count: u32,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { bytes: [0; KEY_SIZE_MAX], size: 0, bits: 0, bit_count: 0 }
    }
}

impl Decoder {
    /// Six bits more; `None` when the key becomes too long.
    fn take(&mut self, digit: u8) -> Option<()> {
        self.bits = (self.bits << 6) | u32::from(digit);
        self.bit_count = self.bit_count.wrapping_add(6);
        if self.bit_count >= 8 {
            self.bit_count = self.bit_count.wrapping_sub(8);
            let [.., byte] = (self.bits >> self.bit_count).to_be_bytes();
            *self.bytes.get_mut(self.size)? = byte;
            self.size = self.size.wrapping_add(1);
            self.bits &= !(u32::MAX << self.bit_count);
        }
        Some(())
    }
}

fn value_of(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => digit.checked_sub(b'A'),
        b'a'..=b'z' => digit.checked_sub(b'a')?.checked_add(26),
        b'0'..=b'9' => digit.checked_sub(b'0')?.checked_add(52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_decoded() {
        for (word, name) in [
            (&b"YQ=="[..], &b"a"[..]),
            (b"YWI=", b"ab"),
            (b"YWJj", b"abc"),
            (b"AP/+", b"\x00\xff\xfe"),
            (b"Zm9vIGJhcg==", b"foo bar"),
        ] {
            let decoded = decode(word).expect("a key");
            assert_eq!(decoded.as_bytes(), name, "{word:?}");
        }
    }

    #[test]
    fn what_is_not_base64_is_no_key() {
        for word in [&b""[..], b"Y", b"YQ", b"YQ=", b"Y===", b"====", b"Y!==", b"YR==", b"Y=Q="] {
            assert_eq!(decode(word), None, "{word:?}");
        }
    }

    #[test]
    fn a_key_has_at_most_250_bytes() {
        let word = vec![b'A'; ENCODED_SIZE_MAX];
        assert_eq!(decode(&word), None, "252 bytes");
        let mut word = vec![b'A'; ENCODED_SIZE_MAX - GROUP_SIZE];
        word.extend_from_slice(b"AA==");
        assert_eq!(decode(&word).expect("a key").as_bytes(), [0; KEY_SIZE_MAX]);
    }
}
