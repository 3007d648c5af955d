//! Names for clusters, nodes and buckets that nobody else has.

use std::fmt;

/// 128 random bits, written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uuid(u128);

impl Uuid {
    /// A new name.
    pub fn random() -> Self {
        let mut bytes = [0; 16];
        platform::random::secret(&mut bytes);
        Self(u128::from_be_bytes(bytes))
    }

    /// Reads 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hexadecimal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hexadecimal.then(|| u128::from_str_radix(text, 16).ok().map(Self))?
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_survives_writing_and_reading() {
        let uuid = Uuid::random();
        assert_eq!(Uuid::parse(&uuid.to_string()), Some(uuid));
        for text in
            ["", "12", "+2345678901234567890123456789012", "x2345678901234567890123456789012"]
        {
            assert_eq!(Uuid::parse(text), None, "{text}");
        }
    }
}
