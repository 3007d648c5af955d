//! Rust text as tokens: no comments, strings, characters, lifetimes or numbers, which hold no path.

use std::ops::Range;

/// A word, `::`, or one character of punctuation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) text: &'t str,
    /// Counted from 1.
    pub(super) line: usize,
}

/// The tokens of one file, in order. Text that no compiler takes gives some tokens or other.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    let mut tokens = Vec::new();
    while let Some(token) = lexer.next_token() {
        tokens.push(token);
    }
    tokens
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl<'t> Lexer<'t> {
    fn next_token(&mut self) -> Option<Token<'t>> {
        loop {
            let byte = self.peek(0)?;
            match byte {
                b'/' if self.peek(1) == Some(b'/') => self.skip_while(|byte| byte != b'\n'),
                b'/' if self.peek(1) == Some(b'*') => self.skip_block_comment(),
                b'"' => self.skip_string(),
                b'\'' => self.skip_character_or_lifetime(),
                b'0'..=b'9' => self.skip_while(is_word),
                _ if is_word(byte) => {
                    let word = self.word();
                    if !self.skip_prefixed(word.text) {
                        return Some(word);
                    }
                }
                b':' if self.peek(1) == Some(b':') => return Some(self.take(2)),
                _ if byte.is_ascii_punctuation() => return Some(self.take(1)),
                _ => self.advance(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn advance(&mut self) {
        if self.peek(0) == Some(b'\n') {
            self.line += 1;
        }
        self.at += 1;
    }

    fn take(&mut self, size: usize) -> Token<'t> {
        let start = self.at;
        self.at += size;
        self.token(start..self.at)
    }

    fn word(&mut self) -> Token<'t> {
        let start = self.at;
        self.skip_while(is_word);
        self.token(start..self.at)
    }

    /// Only ASCII lies in a token, so that its ends are boundaries of characters.
    fn token(&self, range: Range<usize>) -> Token<'t> {
        Token { text: &self.text[range], line: self.line }
    }

    fn skip_while(&mut self, matches: impl Fn(u8) -> bool) {
        while self.peek(0).is_some_and(&matches) {
            self.advance();
        }
    }

    /// Block comments nest.
    fn skip_block_comment(&mut self) {
        let mut depth = 0_usize;
        while self.peek(0).is_some() {
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) => depth += 1,
                (Some(b'*'), Some(b'/')) => depth -= 1,
                _ => {
                    self.advance();
                    continue;
                }
            }
            self.at += 2;
            if depth == 0 {
                return;
            }
        }
    }

    /// Behind the word that was just taken: what follows a prefix such as `b` or `r#` is skipped.
    fn skip_prefixed(&mut self, prefix: &str) -> bool {
        let next = self.peek(0);
        match prefix {
            "b" if next == Some(b'\'') => self.skip_character_or_lifetime(),
            "b" | "c" if next == Some(b'"') => self.skip_string(),
            "r" | "br" | "cr" if matches!(next, Some(b'"' | b'#')) => {
                return self.skip_raw_string();
            }
            _ => return false,
        }
        true
    }

    fn skip_string(&mut self) {
        self.advance();
        while let Some(byte) = self.peek(0) {
            self.advance();
            match byte {
                b'\\' => self.advance(),
                b'"' => return,
                _ => {}
            }
        }
    }

    /// False for a raw identifier, which begins likewise.
    fn skip_raw_string(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let hashes = rest.bytes().take_while(|&byte| byte == b'#').count();
        if !rest[hashes..].starts_with('"') {
            return false;
        }
        let end = format!("\"{}", "#".repeat(hashes));
        let body = &rest[hashes + 1..];
        let size = body.find(&end).map_or(rest.len(), |found| hashes + 1 + found + end.len());
        for _ in 0..size {
            self.advance();
        }
        true
    }

    fn skip_character_or_lifetime(&mut self) {
        let quoted = self.text[self.at + 1..].chars().next();
        let size = quoted.map_or(0, char::len_utf8);
        if quoted == Some('\\') {
            self.at += 3;
            self.skip_while(|byte| byte != b'\'');
            self.advance();
        } else if self.peek(1 + size) == Some(b'\'') {
            self.at += size + 2;
        } else {
            self.advance();
            self.skip_while(is_word);
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        tokens(text).iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_paths_and_punctuation_remain() {
        assert_eq!(words("use crate::a::{B, c_d};"), "use crate :: a :: { B , c_d } ;");
    }

    #[test]
    fn comments_are_left_out_and_nest() {
        assert_eq!(words("a // use b;\n/* c /* d */ e */ f /// g"), "a f");
        assert_eq!(words("a /* never closed"), "a");
    }

    #[test]
    fn strings_of_every_kind_are_left_out() {
        let cases = [
            r#"a "use \" b" c"#,
            r##"a r"b\" c"##,
            r###"a br#"b " d"# c"###,
            r#"a b"b" c"#,
            r#"a "\\" c"#,
        ];
        for case in cases {
            assert_eq!(words(case), "a c", "{case}");
        }
    }

    #[test]
    fn characters_and_lifetimes_are_left_out() {
        let text = r"a '{' '\'' b'\\' '\u{7f}' b'}' &'static str 'l: loop";
        assert_eq!(words(text), "a & str : loop");
        assert_eq!(words("'\u{e9}' a \u{e9} b"), "a b");
    }

    #[test]
    fn lines_are_counted_through_strings_and_comments() {
        let found = tokens("\"\n\n\" /* \n */ a\nb r\"\n\" c");
        let lines: Vec<_> = found.iter().map(|token| token.line).collect();
        assert_eq!(lines, [4, 5, 6]);
    }

    #[test]
    fn numbers_are_left_out() {
        assert_eq!(words("0..10_u8 + 0xff"), ". . +");
    }
}
