//! Passwords that nobody has to invent.

use platform::Entropy;

/// Letters and digits that nobody takes for each other: no `0 O o 1 I l i`.
const ALPHABET: &[u8; 55] = b"abcdefghjkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789";
/// 24 letters out of 55 are 138 bits.
const SIZE: usize = 24;

/// A new password of 24 characters.
pub fn generate_password(entropy: &Entropy) -> String {
    let mut password = String::with_capacity(SIZE);
    while password.len() < SIZE {
        let mut bytes = [0; SIZE];
        entropy.fill(&mut bytes);
        // Indexes beyond the alphabet are thrown away, so that every letter is equally likely.
        let letters = bytes.iter().filter_map(|byte| ALPHABET.get(usize::from(byte & 63)));
        password.extend(letters.map(|letter| char::from(*letter)).take(SIZE - password.len()));
    }
    password
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_long_readable_and_never_the_same() {
        let mut seen: Vec<String> = (0..200).map(|_| generate_password(&Entropy::real())).collect();
        assert!(seen.iter().all(|password| password.len() == SIZE));
        assert!(seen.iter().all(|password| password.bytes().all(|byte| ALPHABET.contains(&byte))));
        let all = seen.concat();
        assert!(ALPHABET.iter().all(|letter| all.contains(char::from(*letter))));
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 200);
    }
}
