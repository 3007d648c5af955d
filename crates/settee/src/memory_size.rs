//! Sizes as people write them.

/// Bytes from `268435456`, `256MiB`, `256MB`, `256M`, `4GiB`, ... Units are powers of 1024.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return Err(format!("`{unit}` is no unit; use KiB, MiB, GiB or TiB")),
    };
    let number: u64 = number.parse().map_err(|_| format!("`{text}` does not begin with digits"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("`{text}` is more than 64 bits hold"))
}

/// Bytes in the largest unit that leaves a whole number.
pub(crate) fn shown(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let fitting = units.iter().find(|(shift, _)| bytes > 0 && bytes.trailing_zeros() >= *shift);
    fitting.map_or_else(|| bytes.to_string(), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

#[cfg(test)]
mod tests {
    use super::{parse, shown};

    #[test]
    fn what_is_shown_is_read_as_the_same_size() {
        for (bytes, text) in [(0, "0"), (1, "1"), (1536, "1536"), (512 << 20, "512MiB")] {
            assert_eq!((shown(bytes).as_str(), parse(text)), (text, Ok(bytes)));
        }
        assert_eq!((shown(3 << 40), shown(63 << 20)), ("3TiB".to_owned(), "63MiB".to_owned()));
    }

    #[test]
    fn people_write_sizes_in_many_ways() {
        for (text, bytes) in [
            ("0", 0),
            ("268435456", 256 << 20),
            ("256MiB", 256 << 20),
            ("256mb", 256 << 20),
            ("256 M", 256 << 20),
            ("4GiB", 4 << 30),
            ("1t", 1 << 40),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "5 parsecs", "-1", "99999999999GiB"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
