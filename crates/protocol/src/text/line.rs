//! Words and numbers of a line.

/// What parts words.
const BLANK: u8 = b' ';

/// The words of a line: blanks part them, also several. Nothing else does: a tab belongs to the
/// word that it stands in, as in memcached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    /// Of a line without its end.
    pub(super) fn of(line: &'a [u8]) -> Self {
        Self(line)
    }

    /// What follows the words that were taken.
    pub(super) fn rest(self) -> &'a [u8] {
        let begin = self.0.iter().position(|byte| *byte != BLANK).unwrap_or(self.0.len());
        self.0.get(begin..).unwrap_or_default()
    }

    /// How many words are left.
    pub(super) fn left(self) -> usize {
        self.count()
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        let size = rest.iter().position(|byte| *byte == BLANK).unwrap_or(rest.len());
        let (word, after) = rest.split_at_checked(size)?;
        self.0 = after;
        Some(word)
    }
}

/// The line at the start of `bytes`, without its end, and how many bytes it takes with that; if it
/// has come whole and takes at most `size_max`.
pub(super) fn whole_line(bytes: &[u8], size_max: usize) -> Option<(&[u8], usize)> {
    let looked_at = bytes.get(..size_max).unwrap_or(bytes);
    let end = looked_at.iter().position(|byte| *byte == b'\n')?;
    let line = bytes.get(..end)?;
    Some((line.strip_suffix(b"\r").unwrap_or(line), end.saturating_add(1)))
}

/// A number without a sign: digits alone, at most 64 bits.
pub(super) fn unsigned(word: &[u8]) -> Option<u64> {
    let is_digits = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(word).ok().filter(|_| is_digits)?.parse().ok()
}

/// A number that may be negative.
pub(super) fn signed(word: &[u8]) -> Option<i64> {
    match word.strip_prefix(b"-") {
        Some(digits) => unsigned(digits)?.try_into().ok().map(|number: i64| number.wrapping_neg()),
        None => unsigned(word)?.try_into().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_parted_by_any_number_of_blanks() {
        let words: Vec<_> = Words::of(b"  get  a b ").collect();
        assert_eq!(words, [&b"get"[..], b"a", b"b"]);
        let mut words = Words::of(b"stats  key k 0");
        words.next();
        assert_eq!(words.rest(), b"key k 0");
    }

    #[test]
    fn a_line_ends_with_a_line_feed_and_perhaps_a_carriage_return() {
        assert_eq!(whole_line(b"mn\r\nmn\r\n", 100), Some((&b"mn"[..], 4)));
        assert_eq!(whole_line(b"mn\nmn", 100), Some((&b"mn"[..], 3)));
        assert_eq!(whole_line(b"mn\r", 100), None);
        assert_eq!(whole_line(b"mn\r\n", 3), None);
        assert_eq!(whole_line(b"mn\r\n", 4), Some((&b"mn"[..], 4)));
    }

    #[test]
    fn numbers_are_digits_of_64_bits() {
        assert_eq!(unsigned(b"18446744073709551615"), Some(u64::MAX));
        for word in [&b"18446744073709551616"[..], b"", b"-1", b"+1", b"1x", b"0x1", b"\xff"] {
            assert_eq!(unsigned(word), None, "{word:?}");
        }
        assert_eq!(signed(b"-1"), Some(-1));
        assert_eq!(signed(b"-0"), Some(0));
        assert_eq!(signed(b"9223372036854775808"), None);
        assert_eq!(signed(b"--1"), None);
    }
}
