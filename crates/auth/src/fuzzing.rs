//! Entrances for the fuzzers: any bytes, no panic.

use std::hint::black_box;
use std::sync::LazyLock;

use platform::Entropy;

use crate::client::ScramClient;
use crate::exchange::{Exchange, Outcome};
use crate::mechanism::{HashAlgorithm, MECHANISMS};
use crate::users::{Users, UsersConfig};

/// Gives `bytes`, split at the first NUL, to every mechanism as its first and second message. No
/// password is ever checked, since that would take milliseconds.
pub fn scram(bytes: &[u8]) {
    static USERS: LazyLock<Users> = LazyLock::new(|| Users::new(UsersConfig::default()));
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let first = parts.next().unwrap_or_default();
    let second = parts.next().unwrap_or_default();
    for mechanism in MECHANISMS.split(' ') {
        for beginning in [first, bytes, b"n,,n=u,r=abc"] {
            let mut exchange = Exchange::default();
            let outcome = exchange.start(&USERS, mechanism, beginning);
            assert!(!matches!(outcome, Outcome::Done { .. }), "nobody has an account here");
            let outcome = exchange.step(mechanism, second);
            assert!(!matches!(outcome, Outcome::Done { .. }), "nobody has an account here");
        }
    }
    // Its nonce is random, so that no challenge gets as far as hashing the password.
    let client = ScramClient::new(HashAlgorithm::Sha1, "u", b"p", &Entropy::real());
    black_box(client.answer(bytes).is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_garbage_never_panics() {
        let words: [&[u8]; 12] = [
            b"n,,", b"n=", b"r=", b"c=biws", b",", b"p=", b"=2C", b"\0", b"abc", b"\xff", b"v=",
            b"s=",
        ];
        for seed in platform::seeds::seeds(3_000) {
            let mut random = platform::Random::from_seed(seed);
            let mut bytes = Vec::new();
            for _ in 0..random.below(12) {
                let index = usize::try_from(random.below(12)).unwrap();
                bytes.extend_from_slice(words[index]);
            }
            let mut noise = vec![0; usize::try_from(random.below(20)).unwrap()];
            random.fill(&mut noise);
            scram(&bytes);
            bytes.extend(noise);
            scram(&bytes);
        }
    }
}
