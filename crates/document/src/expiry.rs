//! Expiry times. Source: docs/specification/protocol.md, section 19.2.

/// Requests up to this many seconds (30 days) are relative, larger ones absolute.
pub const RELATIVE_SECONDS_MAX: u32 = 30 * 24 * 60 * 60;

/// The absolute expiry, seconds since the epoch, of a request's expiry field; 0 means never.
/// `None` when the relative time does not fit 32 bits.
pub fn absolute(requested: u32, now_seconds: u32) -> Option<u32> {
    match requested {
        0 => Some(0),
        1..=RELATIVE_SECONDS_MAX => now_seconds.checked_add(requested),
        _ => Some(requested),
    }
}

/// Whether a document with this absolute `expiry` is gone at `now_seconds`.
pub fn is_past(expiry: u32, now_seconds: u32) -> bool {
    expiry != 0 && expiry < now_seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_days_divide_relative_from_absolute() {
        assert_eq!(absolute(0, 1_000), Some(0));
        assert_eq!(absolute(1, 1_000), Some(1_001));
        assert_eq!(absolute(RELATIVE_SECONDS_MAX, 1_000), Some(RELATIVE_SECONDS_MAX + 1_000));
        assert_eq!(absolute(RELATIVE_SECONDS_MAX + 1, 1_000), Some(RELATIVE_SECONDS_MAX + 1));
        assert_eq!(absolute(1, u32::MAX), None);
    }

    #[test]
    fn expiry_is_strict_and_zero_is_never() {
        assert!(!is_past(0, 100));
        assert!(!is_past(100, 100));
        assert!(is_past(99, 100));
    }
}
