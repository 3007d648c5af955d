//! Names for clusters, nodes and buckets that nobody else has.

use std::fmt;

use platform::Entropy;

/// 128 random bits, written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uuid(u128);

impl Uuid {
    /// A new name.
    pub fn random(entropy: &Entropy) -> Self {
        let mut bytes = [0; 16];
        entropy.fill(&mut bytes);
        Self(u128::from_be_bytes(bytes))
    }

    /// Reads 32 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hexadecimal = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_hexadecimal.then(|| u128::from_str_radix(text, 16).ok().map(Self))?
    }
}

impl Uuid {
    /// The name of the part of this one's bearer that is called `name`: the same wherever it is
    /// asked for, and different from those of other parts (FNV-1a of 128 bits).
    #[must_use]
    pub fn derived(self, name: &str) -> Self {
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let bytes = self.0.to_be_bytes().into_iter().chain(name.bytes());
        Self(bytes.fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME)))
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
    fn parts_of_two_bearers_have_four_names() {
        let (one, other) = (Uuid::random(&Entropy::real()), Uuid::random(&Entropy::real()));
        assert_eq!(one.derived("a"), one.derived("a"));
        let names = [one.derived("a"), one.derived("b"), other.derived("a"), other.derived("b")];
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{names:?}");
        }
    }

    #[test]
    fn a_name_survives_writing_and_reading() {
        let uuid = Uuid::random(&Entropy::real());
        assert_eq!(Uuid::parse(&uuid.to_string()), Some(uuid));
        for text in
            ["", "12", "+2345678901234567890123456789012", "x2345678901234567890123456789012"]
        {
            assert_eq!(Uuid::parse(text), None, "{text}");
        }
    }
}
