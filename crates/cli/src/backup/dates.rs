//! Moments as people write them, in UTC.

/// Seconds of a day.
const DAY: u64 = 86_400;

/// `20240229T235959Z`, of seconds since 1970.
pub(crate) fn compact(seconds: u64) -> String {
    let ((year, month, day), time) = (date(seconds / DAY), seconds % DAY);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Whether a text looks like that of [`compact`].
pub(super) fn is_compact(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 16
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            8 => *byte == b'T',
            15 => *byte == b'Z',
            _ => byte.is_ascii_digit(),
        })
}

/// `2024-02-29 23:59:59`, of seconds since 1970.
pub(crate) fn readable(seconds: u64) -> String {
    let ((year, month, day), time) = (date(seconds / DAY), seconds % DAY);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Year, month and day of a day since 1970.
fn date(mut day: u64) -> (u64, u64, u64) {
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if day < days {
            break;
        }
        day -= days;
        month += 1;
    }
    (year, month, day + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_dates_in_leap_years_and_others() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00"),
            (951_782_399, "2000-02-28 23:59:59"),
            (951_782_400, "2000-02-29 00:00:00"),
            (1_709_251_199, "2024-02-29 23:59:59"),
            (1_735_689_599, "2024-12-31 23:59:59"),
            (4_107_542_400, "2100-03-01 00:00:00"),
        ] {
            assert_eq!(readable(seconds), text);
        }
        assert_eq!(compact(1_709_251_199), "20240229T235959Z");
        assert!(is_compact(&compact(0)) && !is_compact("20240229") && !is_compact("x"));
    }
}
