//! Names inside of a bucket's `journal` directory: `j.<16 hex>` in use, `s.<16 hex>` spare.

use crate::journal::layout::NUMBER_MAX;

/// The name of the directory inside of a bucket's.
pub const DIRECTORY: &str = "journal";

/// What a name in the directory stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentName {
    /// A segment in use, with its number.
    Live(u64),
    /// A segment that is kept for later, with the number that it had, or was made with.
    Spare(u64),
    /// Not one of ours.
    Foreign,
}

/// The name of a segment in use.
pub(crate) fn live(number: u64) -> String {
    format!("j.{number:016x}")
}

/// The name of a spare.
pub(crate) fn spare(number: u64) -> String {
    format!("s.{number:016x}")
}

/// What a name stands for.
pub(crate) fn parse(name: &str) -> SegmentName {
    let Some((kind, digits)) = name.split_once('.') else { return SegmentName::Foreign };
    let is_number = digits.len() == 16
        && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    let number = u64::from_str_radix(digits, 16);
    match (kind, number) {
        _ if !is_number => SegmentName::Foreign,
        ("j", Ok(number)) if number <= NUMBER_MAX => SegmentName::Live(number),
        ("s", Ok(number)) if number <= NUMBER_MAX => SegmentName::Spare(number),
        _ => SegmentName::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_taken_for_segments() {
        for number in [0, 1, 0xabc, NUMBER_MAX] {
            assert_eq!(parse(&live(number)), SegmentName::Live(number));
            assert_eq!(parse(&spare(number)), SegmentName::Spare(number));
        }
        for name in
            ["", "j", "j.", "j.1", "k.0000000000000001", "j.ffffffffffffffff", "j.+000000000000001"]
        {
            assert_eq!(parse(name), SegmentName::Foreign, "{name}");
        }
        assert_eq!(parse("j.000000000000000A"), SegmentName::Foreign);
        assert_eq!(parse("j.0000000000000001.new"), SegmentName::Foreign);
    }
}
