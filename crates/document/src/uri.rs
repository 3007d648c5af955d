//! Names in URIs (RFC 3986).

/// A name as one part of a path, or as a value behind the question mark: everything is escaped but
/// what stands for itself everywhere (section 2.3), so that no name ends its part. Names of buckets
/// may have `%`, those of users and documents anything.
pub fn escaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte));
            }
            _ => {
                text.push('%');
                text.extend([byte >> 4, byte & 0xF].map(hex_digit));
            }
        }
    }
    text
}

fn hex_digit(digit: u8) -> char {
    char::from(if digit < 10 { b'0' + digit } else { b'A' + (digit - 10) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_part_of_a_path_whatever_is_in_it() {
        for (name, expected) in [
            ("travel-sample_1.x~", "travel-sample_1.x~"),
            ("50%25", "50%2525"),
            ("a/b?c#d", "a%2Fb%3Fc%23d"),
            ("127.0.0.1:8091", "127.0.0.1%3A8091"),
            ("\u{e4} +", "%C3%A4%20%2B"),
            ("", ""),
        ] {
            assert_eq!(escaped(name), expected);
        }
    }
}
