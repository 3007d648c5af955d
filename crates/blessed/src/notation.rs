//! How numbers and bytes are written in cases.

use crate::line::split;

/// Texts longer than this are cut short.
const SHOWN_MAX: usize = 160;
/// Of those so many bytes are shown.
const BEGINNING: usize = 60;

/// A number, decimal, or hexadecimal behind `0x`; `max` is the greatest there is.
pub fn number_of(text: &str) -> u64 {
    let number = match text.strip_prefix("0x") {
        _ if text == "max" => Ok(u64::MAX),
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.unwrap_or_else(|_| panic!("`{text}` is no number"))
}

/// Bytes: parts with `+` between them, each a text in quotation marks with escapes as in Rust, a
/// number with its width before it (`u8:1`, `u16:1`, `u32:1`, `u64:1`), or hexadecimal digits. `*5`
/// behind a part repeats it.
pub fn bytes_of(text: &str) -> Vec<u8> {
    split(text, '+').into_iter().flat_map(repeated).collect()
}

fn repeated(text: &str) -> Vec<u8> {
    match split(text, '*')[..] {
        [part, count] => part_of(part).repeat(usize::try_from(number_of(count)).expect("a count")),
        _ => part_of(text),
    }
}

fn part_of(text: &str) -> Vec<u8> {
    if let Some(quoted) = text.strip_prefix('"') {
        let quoted = quoted.strip_suffix('"');
        return unescaped(quoted.unwrap_or_else(|| panic!("`{text}` does not end")));
    }
    if let Some((width, number)) = text.split_once(':') {
        let bytes = number_of(number).to_be_bytes();
        let size = match width {
            "u8" => 1,
            "u16" => 2,
            "u32" => 4,
            "u64" => 8,
            _ => panic!("`{text}` has no width"),
        };
        let (high, low) = bytes.split_at(bytes.len() - size);
        assert!(high.iter().all(|&byte| byte == 0), "`{text}` is too large a number");
        return low.to_vec();
    }
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    assert!(rest.is_empty(), "`{text}` has half a byte");
    pairs.iter().map(|pair| hex(pair)).collect()
}

fn hex(digits: &[u8]) -> u8 {
    let text = str::from_utf8(digits).unwrap_or_default();
    u8::from_str_radix(text, 16).unwrap_or_else(|_| panic!("`{text}` is no byte"))
}

fn unescaped(text: &str) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next() {
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                Some(b't') => b'\t',
                Some(b'0') => 0,
                Some(b'x') => {
                    let digits = [rest.next().unwrap_or_default(), rest.next().unwrap_or_default()];
                    hex(&digits)
                }
                Some(itself @ (b'\\' | b'"' | b'\'')) => itself,
                other => panic!("`{text}`: {other:?} is no escape"),
            },
            other => other,
        });
    }
    bytes
}

/// Bytes as [`bytes_of`] reads them: text where it is one, what is repeated as that. What is long
/// is cut short.
pub fn shown(bytes: &[u8]) -> String {
    match bytes {
        [first, rest @ ..] if bytes.len() > BEGINNING && rest.iter().all(|byte| byte == first) => {
            format!("{}*{}", shown_part(&[*first]), bytes.len())
        }
        _ if bytes.len() > SHOWN_MAX => {
            format!("{}...({} bytes)", shown_part(&bytes[..BEGINNING]), bytes.len())
        }
        _ => shown_part(bytes),
    }
}

fn shown_part(bytes: &[u8]) -> String {
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t');
    // A key with the number of its collection before it is read as a text, too.
    let (_, text) = bytes.split_at(bytes.len().min(1));
    if text.iter().all(is_text) && (bytes.iter().all(is_text) || !text.is_empty()) {
        return format!("\"{}\"", bytes.escape_ascii().to_string().replace("\\'", "'"));
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_are_written() {
        assert_eq!(bytes_of(r#""a\x00\"+*"+0aff+u16:258+"ab"*2"#), b"a\0\"+*\x0a\xff\x01\x02abab");
        assert_eq!(bytes_of(""), b"");
        assert_eq!(bytes_of("u64:max"), [0xff; 8]);
        assert_eq!(number_of("0x1f"), 31);
    }

    #[test]
    fn what_is_shown_is_read_back_unless_it_is_long() {
        for bytes in [&b""[..], b"text 'n' \"quotes\"\r\n", b"\0key", b"\0\0\0\x07", b"\xff", b"\0"]
        {
            assert_eq!(bytes_of(&shown(bytes)), bytes, "{}", shown(bytes));
        }
        assert_eq!(shown(&[b'x'; 1000]), "\"x\"*1000");
        assert_eq!(bytes_of(&shown(&[0; 99])), [0; 99]);
        assert!(shown(&b"0123456789".repeat(30)).ends_with("...(300 bytes)"));
    }
}
