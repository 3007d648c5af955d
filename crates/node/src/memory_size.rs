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

#[cfg(test)]
mod tests {
    use super::parse;

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
