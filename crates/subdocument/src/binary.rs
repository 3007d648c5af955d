//! Bytes as values of attributes. Source: docs/specification/protocol.md, section 12.2.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::failure::Failure;

/// What stands in front of the bytes' Base64 in a JSON string, its quote included.
const PREFIX: &str = "\"cb-content-base64-encoded:";

/// The bytes as a JSON string.
pub(crate) fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut text = String::with_capacity(PREFIX.len() + bytes.len() / 3 * 4 + 8);
    text.push_str(PREFIX);
    STANDARD.encode_string(bytes, &mut text);
    text.push('"');
    text.into_bytes()
}

/// The bytes of such a string.
pub(crate) fn decode(text: &[u8]) -> Result<Vec<u8>, Failure> {
    let encoded = text.trim_ascii().strip_prefix(PREFIX.as_bytes());
    let encoded = encoded.and_then(|text| text.strip_suffix(b"\"")).ok_or(Failure::NotBinary)?;
    STANDARD.decode(encoded).map_err(|_| Failure::AttributeInvalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back() {
        for bytes in [&b""[..], b"a", b"\x00\xff\x10", b"hello"] {
            let text = encode(bytes);
            assert!(crate::json::one_value(&text).is_ok());
            assert_eq!(decode(&text).as_deref(), Ok(bytes));
        }
        assert_eq!(encode(b"hello"), b"\"cb-content-base64-encoded:aGVsbG8=\"");
    }

    #[test]
    fn other_values_hold_no_bytes() {
        for text in ["1", "\"aGVsbG8=\"", "\"cb-content-base64-encoded:aGVsbG8="] {
            assert_eq!(decode(text.as_bytes()), Err(Failure::NotBinary), "{text}");
        }
        let malformed = b"\"cb-content-base64-encoded:aGVsbG8\"";
        assert_eq!(decode(malformed), Err(Failure::AttributeInvalid));
    }
}
