//! Whether text that is to be put into a document is JSON, and how deeply it is nested: one pass,
//! nothing allocated. It accepts what the server accepts as a document.

use crate::failure::Failure;
use crate::scan::{DEPTH_MAX, next_in_string, skip_space};

/// What is known of values that are JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Values {
    /// Containers around each other.
    pub(crate) depth: usize,
    /// Values beside each other.
    pub(crate) count: usize,
}

impl Values {
    /// Whether it is one string, number, boolean or null.
    pub(crate) fn is_primitive(self) -> bool {
        self.depth == 0 && self.count == 1
    }
}

/// Checks that the text is exactly one value.
pub(crate) fn one_value(text: &[u8]) -> Result<Values, Failure> {
    values(text).and_then(
        |values| {
            if values.count == 1 { Ok(values) } else { Err(Failure::CannotInsert) }
        },
    )
}

/// Checks that the text is one value, or several with commas between them.
pub(crate) fn values(text: &[u8]) -> Result<Values, Failure> {
    std::str::from_utf8(text).map_err(|_| Failure::CannotInsert)?;
    let mut check = Check { text, at: 0, kinds: 0, depth: 0, found: Values::default() };
    while check.value()? {}
    Ok(check.found)
}

/// A check under way. Where it fails to go on, the text is no JSON.
struct Check<'a> {
    text: &'a [u8],
    at: usize,
    /// For each container that is open a bit, the innermost lowest: 1 for an object.
    kinds: u32,
    /// How many containers are open.
    depth: usize,
    found: Values,
}

const _: () = assert!(DEPTH_MAX <= 32, "each open container has a bit");

impl Check<'_> {
    /// Passes the next value, or the beginning of one that is a container, and what is behind it
    /// up to the next value. Whether there is one.
    fn value(&mut self) -> Result<bool, Failure> {
        self.skip_space();
        let byte = self.text.get(self.at).ok_or(Failure::CannotInsert)?;
        match byte {
            b'{' => {
                self.open(true)?;
                if !self.passes(b'}') {
                    return self.key().map(|()| true);
                }
                self.close();
            }
            b'[' => {
                self.open(false)?;
                if !self.passes(b']') {
                    return Ok(true);
                }
                self.close();
            }
            b'"' => self.string()?,
            b'-' | b'0'..=b'9' => self.number()?,
            _ => self.word()?,
        }
        self.behind_value()
    }

    /// Passes commas and closing brackets. Whether another value must follow.
    fn behind_value(&mut self) -> Result<bool, Failure> {
        loop {
            self.skip_space();
            if self.depth == 0 {
                self.found.count += 1;
            }
            let Some(&byte) = self.text.get(self.at) else {
                return if self.depth == 0 { Ok(false) } else { Err(Failure::CannotInsert) };
            };
            self.at += 1;
            let is_in_object = self.kinds & 1 == 1;
            match (byte, self.depth) {
                (b',', 1..) if is_in_object => return self.key().map(|()| true),
                (b',', _) => return Ok(true),
                (b'}', 1..) if is_in_object => self.close(),
                (b']', 1..) if !is_in_object => self.close(),
                _ => return Err(Failure::CannotInsert),
            }
        }
    }

    /// Passes an opening bracket.
    fn open(&mut self, is_object: bool) -> Result<(), Failure> {
        if self.depth == DEPTH_MAX {
            return Err(Failure::ValueTooDeep);
        }
        self.at += 1;
        self.depth += 1;
        self.kinds = self.kinds << 1 | u32::from(is_object);
        self.found.depth = self.found.depth.max(self.depth);
        Ok(())
    }

    fn close(&mut self) {
        self.kinds >>= 1;
        self.depth -= 1;
    }

    fn key(&mut self) -> Result<(), Failure> {
        self.skip_space();
        self.string()?;
        if self.passes(b':') { Ok(()) } else { Err(Failure::CannotInsert) }
    }

    fn string(&mut self) -> Result<(), Failure> {
        if !self.passes(b'"') {
            return Err(Failure::CannotInsert);
        }
        loop {
            self.at = next_in_string(self.text, self.at).ok_or(Failure::CannotInsert)?;
            let rest = self.text.get(self.at..).unwrap_or_default();
            self.at += match rest {
                [b'"', ..] => 1,
                [b'\\', b'u', digits @ ..] => {
                    let digits = digits.first_chunk::<4>().ok_or(Failure::CannotInsert)?;
                    if !digits.iter().all(u8::is_ascii_hexdigit) {
                        return Err(Failure::CannotInsert);
                    }
                    6
                }
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
                _ => return Err(Failure::CannotInsert),
            };
            if rest.first() == Some(&b'"') {
                return Ok(());
            }
        }
    }

    fn number(&mut self) -> Result<(), Failure> {
        self.passes_one_of(b"-");
        if !self.passes_one_of(b"0") {
            self.digits()?;
        }
        if self.passes_one_of(b".") {
            self.digits()?;
        }
        if self.passes_one_of(b"eE") {
            self.passes_one_of(b"+-");
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Failure> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let size = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += size;
        if size == 0 { Err(Failure::CannotInsert) } else { Ok(()) }
    }

    fn word(&mut self) -> Result<(), Failure> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let words: [&[u8]; 3] = [b"true", b"false", b"null"];
        let word = words.into_iter().find(|word| rest.starts_with(word));
        self.at += word.ok_or(Failure::CannotInsert)?.len();
        Ok(())
    }

    fn skip_space(&mut self) {
        self.at = skip_space(self.text, self.at);
    }

    /// Passes white space, and this byte if it follows.
    fn passes(&mut self, byte: u8) -> bool {
        self.skip_space();
        self.passes_one_of(&[byte])
    }

    fn passes_one_of(&mut self, bytes: &[u8]) -> bool {
        let passes = self.text.get(self.at).is_some_and(|byte| bytes.contains(byte));
        self.at += usize::from(passes);
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_measured() {
        for (text, depth, count) in [
            ("1", 0, 1),
            (" -0.5e+10 ", 0, 1),
            ("\"a\\u00e9\\n\"", 0, 1),
            ("null,true , false", 0, 3),
            ("{}", 1, 1),
            ("[1,[2,{\"a\":[ ]}], {\"b\":1,\"c\":{}}]", 4, 1),
            ("[],{\"a\":1}", 1, 2),
        ] {
            assert_eq!(values(text.as_bytes()), Ok(Values { depth, count }), "{text}");
        }
        assert!(one_value(b"[1,2]").is_ok());
        assert_eq!(one_value(b"1,2"), Err(Failure::CannotInsert));
    }

    #[test]
    fn what_is_no_json_cannot_be_inserted() {
        for text in [
            "",
            " ",
            ",",
            "1,",
            ",1",
            "01",
            "1.",
            "-",
            "1e",
            "+1",
            "nul",
            "truex",
            "1 2",
            "{",
            "[1",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{1:1}",
            "]",
            "[}",
            "{\"a\":1]",
            "\"a",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\u123\"",
            "\"a\nb\"",
            "1,\"k\":2",
            "[1,\"k\":2]",
        ] {
            assert_eq!(values(text.as_bytes()), Err(Failure::CannotInsert), "{text}");
        }
        assert_eq!(values(b"\"\xff\""), Err(Failure::CannotInsert));
    }

    #[test]
    fn nesting_ends_at_the_limit() {
        let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        let depth = DEPTH_MAX;
        assert_eq!(values(nested(depth).as_bytes()), Ok(Values { depth, count: 1 }));
        assert_eq!(values(nested(depth + 1).as_bytes()), Err(Failure::ValueTooDeep));
    }
}
