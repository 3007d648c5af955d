//! Moments as RFC 3339 writes them.

/// Seconds since 1970, or before, as `2024-01-31T00:00:00.000Z`. Source of the calendar: Howard
/// Hinnant, chrono-Compatible Low-Level Date Algorithms, `civil_from_days`.
pub(crate) fn rfc3339(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 { month_index + 3 } else { month_index - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z")
}

/// Milliseconds since 1970 of a moment that is written so, with any part of a second; `None` for
/// anything else. Source: `days_from_civil` of the same.
pub(crate) fn unix_milliseconds(written: &str) -> Option<i64> {
    let (date, time) = written.strip_suffix('Z')?.split_once('T')?;
    let number = |part: &str| part.parse::<i64>().ok().filter(|it| (0..10_000).contains(it));
    let [year, month, day] = three(date, '-')?.map(number);
    let (month, day) = (month?, day?);
    let [hour, minute, second] = three(time, ':')?;
    let (second, fraction) = second.split_once('.').unwrap_or((second, ""));
    let milliseconds = format!("{fraction:0<3}").get(..3)?.parse::<i64>().ok()?;
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let year = year? - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_index = (month + 9) % 12;
    let day_of_year = (153 * month_index + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    let seconds = ((days * 24 + number(hour)?) * 60 + number(minute)?) * 60 + number(second)?;
    Some(seconds * 1_000 + milliseconds)
}

fn three(text: &str, between: char) -> Option<[&str; 3]> {
    text.splitn(3, between).collect::<Vec<_>>().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_by_the_calendar() {
        for (seconds, written) in [
            (-1, "1969-12-31T23:59:59.000Z"),
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_704_067_199, "2023-12-31T23:59:59.000Z"),
            (1_704_067_200, "2024-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(seconds), written);
            assert_eq!(unix_milliseconds(written), Some(seconds * 1_000));
        }
    }

    #[test]
    fn what_is_no_moment_is_none() {
        assert_eq!(unix_milliseconds("1970-01-01T00:00:00.0421Z"), Some(42));
        assert_eq!(unix_milliseconds("1970-01-01T00:00:01Z"), Some(1_000));
        for text in [
            "",
            "Z",
            "2024-01-01",
            "2024-13-01T00:00:00Z",
            "2024-01-00T00:00:00Z",
            "-024-01-01T00:00:00Z",
            "2024-01-01T00:00Z",
            "2024-01-01T00:00:00.\u{fc}Z",
            "99999-01-01T00:00:00Z",
        ] {
            assert_eq!(unix_milliseconds(text), None, "{text}");
        }
    }
}
