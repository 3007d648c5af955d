//! Expiration times. Source: memcached's protocol.txt, "Expiration times".

use document::expiry::RELATIVE_SECONDS_MAX;

use super::line::signed;

/// An absolute expiry that is over, whatever time it is.
const LONG_AGO_SECONDS: u32 = 1;

/// An expiration time as a client sends it: 0 for never, up to 30 days from now, a time since 1970
/// beyond that; negative for a time that is over. Clients that keep times in 32 bits without a sign
/// (libmemcached) send 4294967295 for -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exptime(pub i64);

impl Exptime {
    /// Reads a word.
    pub fn parse(word: &[u8]) -> Option<Self> {
        signed(word).map(Self)
    }

    /// The expiry as documents have it: seconds since 1970, 0 for never. What 32 bits do not hold
    /// is over: memcached, too, reads it as negative.
    pub fn absolute(self, now_seconds: u32) -> u32 {
        match u32::try_from(self.0) {
            Ok(0) => 0,
            Ok(seconds @ 1..=RELATIVE_SECONDS_MAX) => now_seconds.saturating_add(seconds),
            Ok(u32::MAX) | Err(_) => LONG_AGO_SECONDS,
            Ok(seconds) => seconds,
        }
    }

    /// Seconds to wait for an order that is to be carried out then.
    pub fn delay_seconds(self, now_seconds: u32) -> u32 {
        self.absolute(now_seconds).saturating_sub(now_seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_days_divide_relative_from_absolute() {
        let day_30 = i64::from(RELATIVE_SECONDS_MAX);
        for (sent, absolute) in [
            (0, 0),
            (-1, LONG_AGO_SECONDS),
            (i64::MIN, LONG_AGO_SECONDS),
            (1, 1_001),
            (day_30, RELATIVE_SECONDS_MAX + 1_000),
            (day_30 + 1, RELATIVE_SECONDS_MAX + 1),
            (i64::from(u32::MAX) - 1, u32::MAX - 1),
            (i64::from(u32::MAX), LONG_AGO_SECONDS),
            (i64::MAX, LONG_AGO_SECONDS),
        ] {
            assert_eq!(Exptime(sent).absolute(1_000), absolute, "{sent}");
        }
        assert_eq!(Exptime(5).absolute(u32::MAX), u32::MAX);
    }

    #[test]
    fn an_order_waits_for_its_time_unless_that_is_over() {
        let now = 2_000_000_000;
        assert_eq!(Exptime(0).delay_seconds(now), 0);
        assert_eq!(Exptime(-5).delay_seconds(now), 0);
        assert_eq!(Exptime(7).delay_seconds(now), 7);
        assert_eq!(Exptime(i64::from(now) + 9).delay_seconds(now), 9);
    }
}
