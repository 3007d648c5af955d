//! Bytes as text that a terminal takes.

/// Text, if a person would call the bytes that.
pub(crate) fn as_text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let is_plain = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\r' | '\t');
    text.chars().all(is_plain).then_some(text)
}

/// Text on one line: what is not printable is escaped.
pub(crate) fn escaped(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.chars().map(escaped_letter).collect(),
        Err(_) => bytes.escape_ascii().to_string(),
    }
}

fn escaped_letter(letter: char) -> String {
    match letter {
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        letter if letter.is_ascii_control() => format!("\\x{:02x}", u32::from(letter)),
        letter if letter.is_control() => letter.escape_unicode().to_string(),
        letter => letter.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_stays_on_its_line() {
        let cases: [(&[u8], &str); 4] = [
            (b"plain", "plain"),
            ("so\u{fc}\n\t\\\x01".as_bytes(), "so\u{fc}\\n\\t\\\\\\x01"),
            (b"\xff\x00a", "\\xff\\x00a"),
            (b"", ""),
        ];
        for (bytes, expected) in cases {
            assert_eq!(escaped(bytes), expected);
        }
        assert_eq!(as_text(b"a\nb"), Some("a\nb"));
        assert_eq!(as_text(b"a\0b"), None);
        assert_eq!(as_text(b"\xff"), None);
    }
}
