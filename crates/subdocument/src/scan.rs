//! Moving over JSON text without looking at what it says.
//!
//! The text is one that was found valid when it was stored. Should it be none after all, scanning
//! ends with [`Failure::NotJson`] or passes over the fault, and never leaves the text.

use crate::failure::Failure;

/// Containers around each other, the root included.
pub(crate) const DEPTH_MAX: usize = 32;

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = 0x8080_8080_8080_8080;

/// What a test of eight bytes at once answers: the lowest bit that is set belongs to the first
/// byte that passes; bits above it may lie.
type Hits = u64;

/// Where the next byte that is no white space is, or the end.
pub(crate) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// Behind the byte that must be there.
pub(crate) fn expect(text: &[u8], at: usize, byte: u8) -> Result<usize, Failure> {
    if text.get(at) == Some(&byte) { Ok(at + 1) } else { Err(Failure::NotJson) }
}

/// Behind the string whose opening quote is at `at`.
pub(crate) fn string_end(text: &[u8], at: usize) -> Result<usize, Failure> {
    let mut at = expect(text, at, b'"')?;
    loop {
        at = next_quote(text, at).ok_or(Failure::NotJson)?;
        if text.get(at) == Some(&b'"') {
            return Ok(at + 1);
        }
        at += 2;
    }
}

/// Behind the value that begins at `at` and has `depth` containers around it.
pub(crate) fn value_end(text: &[u8], at: usize, depth: usize) -> Result<usize, Failure> {
    match text.get(at) {
        Some(b'"') => string_end(text, at),
        Some(b'{' | b'[') => container_end(text, at, depth),
        _ => scalar_end(text, at),
    }
}

/// Where the next quote or backslash is. Most strings are short.
fn next_quote(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    if let Some(chunk) = rest.first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        let hits = equal(word, b'"') | equal(word, b'\\');
        if hits != 0 {
            return Some(at + byte_of(hits));
        }
    }
    memchr::memchr2(b'"', b'\\', rest).map(|size| at + size)
}

/// Where the next quote, backslash or control character is.
pub(crate) fn next_in_string(text: &[u8], at: usize) -> Option<usize> {
    next(text, at, |word| {
        let is_control = word.wrapping_sub(LOW_BITS * 0x20) & !word & HIGH_BITS;
        equal(word, b'"') | equal(word, b'\\') | is_control
    })
}

/// Where the next quote, brace or bracket is, some other letters included. Most are near.
fn next_structural(text: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..4 {
        if matches!(text.get(at)?, b'"' | b'{' | b'}' | b'[' | b']') {
            return Some(at);
        }
        at += 1;
    }
    // Braces and brackets differ in these bits alone.
    next(text, at, |word| equal(word, b'"') | equal(word | (LOW_BITS * 0x26), 0x7f))
}

fn container_end(text: &[u8], mut at: usize, depth: usize) -> Result<usize, Failure> {
    let mut open = 0;
    loop {
        at = next_structural(text, at).ok_or(Failure::NotJson)?;
        match text.get(at) {
            Some(b'"') => {
                at = string_end(text, at)?;
                continue;
            }
            Some(b'{' | b'[') if depth + open == DEPTH_MAX => return Err(Failure::DocumentTooDeep),
            Some(b'{' | b'[') => open += 1,
            Some(b'}' | b']') => open -= 1,
            _ => {}
        }
        at += 1;
        if open == 0 {
            return Ok(at);
        }
    }
}

fn scalar_end(text: &[u8], start: usize) -> Result<usize, Failure> {
    let is_part = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'+' | b'.' | b'E');
    let rest = text.get(start..).unwrap_or_default();
    let size = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
    if size == 0 { Err(Failure::NotJson) } else { Ok(start + size) }
}

/// Where the first byte from `at` on is that passes the test.
fn next(text: &[u8], mut at: usize, test: impl Fn(u64) -> Hits) -> Option<usize> {
    let mut rest = text.get(at..)?;
    while let Some((chunk, behind)) = rest.split_first_chunk::<8>() {
        let hits = test(u64::from_le_bytes(*chunk));
        if hits != 0 {
            return Some(at + byte_of(hits));
        }
        at += 8;
        rest = behind;
    }
    // Of the last bytes: what is added passes no test.
    let mut last = [b' '; 8];
    last.iter_mut().zip(rest).for_each(|(byte, &value)| *byte = value);
    let hits = test(u64::from_le_bytes(last));
    (hits != 0).then(|| at + byte_of(hits))
}

fn byte_of(hits: Hits) -> usize {
    usize::try_from(hits.trailing_zeros() / 8).expect("a word has eight bytes")
}

/// Which bytes of the word are `byte`.
fn equal(word: u64, byte: u8) -> Hits {
    let differences = word ^ (LOW_BITS * u64::from(byte));
    differences.wrapping_sub(LOW_BITS) & !differences & HIGH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_end_where_they_end() {
        for (text, size) in [
            ("12,", 2),
            ("-1.5e+3 ", 7),
            ("true]", 4),
            ("\"a,]}\" ,", 6),
            ("\"\\\"\\\\\",", 6),
            ("{},", 2),
            ("[1,{\"a\":\"]}\"}],[", 14),
            ("[\"a long string with } and ] in it\",\"y_Y\"] ", 42),
            ("{\"key\\\\\":[[],[[]]]}]", 19),
        ] {
            assert_eq!(value_end(text.as_bytes(), 0, 0), Ok(size), "{text}");
        }
    }

    #[test]
    fn what_does_not_end_is_no_json() {
        for text in ["", ",", "]", "\"abc", "\"abc\\", "[1,2", "{\"a\":\"}", "[[]"] {
            assert_eq!(value_end(text.as_bytes(), 0, 0), Err(Failure::NotJson), "{text}");
        }
        assert_eq!(value_end(b"1", 7, 0), Err(Failure::NotJson));
    }

    #[test]
    fn nesting_has_a_limit_that_counts_what_is_around() {
        let nested = |depth: usize| ["[".repeat(depth), "]".repeat(depth)].concat();
        for around in [0, 1, 31] {
            let deepest = nested(DEPTH_MAX - around);
            assert_eq!(value_end(deepest.as_bytes(), 0, around), Ok(deepest.len()));
            let deeper = nested(DEPTH_MAX - around + 1);
            let found = value_end(deeper.as_bytes(), 0, around);
            assert_eq!(found, Err(Failure::DocumentTooDeep));
        }
    }

    #[test]
    fn eight_bytes_at_once_are_as_good_as_one() {
        for seed in platform::seeds::seeds(500) {
            let mut random = platform::Random::from_seed(seed);
            let mut text = vec![0; usize::try_from(random.below(40)).unwrap()];
            random.fill(&mut text);
            for at in 0..=text.len() {
                let find = |test: fn(&u8) -> bool| text[at..].iter().position(test);
                let slow = find(|byte| matches!(byte, b'"' | b'\\' | 0..0x20));
                assert_eq!(next_in_string(&text, at), slow.map(|size| at + size), "seed {seed}");
                let slow = find(|byte| matches!(byte, b'"' | b'\\'));
                assert_eq!(next_quote(&text, at), slow.map(|size| at + size), "seed {seed}");
                let slow = find(|byte| b"\"{}[]".contains(byte));
                let fast = next_structural(&text, at);
                let is_other = |at: &usize| b"Yy_\x7f".contains(&text[*at]);
                if !fast.as_ref().is_some_and(is_other) {
                    assert_eq!(fast, slow.map(|size| at + size), "seed {seed}");
                }
            }
        }
    }
}
