//! Bytes and numbers as text.

use document::{Datatype, compression};
use storage::{BodyView, DocumentView, StoredOperation};

/// The datatype's names; empty for plain bytes.
pub(super) fn datatype_names(bits: u8) -> Vec<&'static str> {
    let names =
        [(Datatype::JSON, "json"), (Datatype::SNAPPY, "snappy"), (Datatype::XATTR, "xattr")];
    let set = names.into_iter().filter(|(bit, _)| bits & bit.bits() != 0);
    let undefined = (bits > 7).then_some("undefined");
    set.map(|(_, name)| name).chain(undefined).collect()
}

/// What the step of a durable write is called.
pub(super) fn operation_name(operation: StoredOperation) -> &'static str {
    match operation {
        StoredOperation::Prepare { .. } => "prepare",
        StoredOperation::Commit => "commit",
        StoredOperation::Abort { .. } => "abort",
        StoredOperation::Unknown(_) => "unknown",
    }
}

/// The name of a durability level.
pub(super) fn level_name(level: u8) -> &'static str {
    match level {
        0 => "none",
        1 => "majority",
        2 => "majority_and_persist_on_master",
        _ => "persist_to_majority",
    }
}

/// A body that the client has compressed, without that.
pub(super) fn inflated(document: &DocumentView<'_>) -> Option<Result<Vec<u8>, &'static str>> {
    let BodyView::Bytes(bytes) = document.body else { return None };
    let bits = document.metadata.map_or(0, |metadata| metadata.datatype);
    let is_snappy = bits & Datatype::SNAPPY.bits() != 0 && !bytes.is_empty();
    is_snappy.then(|| compression::inflate(bytes).ok_or("the client's compression is damaged"))
}

/// A moment in UTC, such as `2023-11-14T22:13:20Z`.
pub(super) fn moment(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Counted in eras of 400 years that begin on 1 March of year 0, so that leap days come last.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_700_000_000, "2023-11-14T22:13:20Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(moment(seconds), expected);
        }
        // Whatever a damaged file claims.
        assert!(!moment(u64::MAX).is_empty());
    }
}
