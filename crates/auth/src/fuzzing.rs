//! Entrances for the fuzzers: any bytes, no panic.

use std::hint::black_box;
use std::sync::LazyLock;

use platform::Entropy;

use crate::client::ScramClient;
use crate::exchange::{Exchange, Outcome};
use crate::mechanism::{HashAlgorithm, MECHANISMS};
use crate::registry::UserRegistry;
use crate::role::Role;
use crate::user_limits::UserLimits;
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
            let outcome = exchange.step(&USERS, mechanism, second);
            assert!(!matches!(outcome, Outcome::Done { .. }), "nobody has an account here");
        }
    }
    // Its nonce is random, so that no challenge gets as far as hashing the password.
    let client = ScramClient::new(HashAlgorithm::Sha1, "u", b"p", &Entropy::real());
    black_box(client.answer(bytes).is_ok());
}

/// Reads `bytes` as what administrators send of users: lists of roles, limits, and all users and
/// groups. What is read is the same when it is written and read again.
pub fn user_texts(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for role in Role::parse_all(&text).unwrap_or_default() {
        assert_eq!(Role::parse(&role.to_string()).as_ref(), Some(&role), "a role is its text");
    }
    if let Ok(limits) = UserLimits::from_json(&text) {
        let read_back = UserLimits::from_json(&limits.to_json());
        assert_eq!(read_back, Ok(limits), "limits are their text");
    }
    if let Ok(registry) = UserRegistry::from_json(&text) {
        let written = registry.to_json();
        let read_back = UserRegistry::from_json(&written).map(|registry| registry.to_json());
        assert!(read_back.is_ok_and(|again| again == written), "users are their text");
    }
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

    #[test]
    fn texts_of_users_never_panic_and_are_read_as_they_are_written() {
        let words = [
            "admin",
            "data_reader",
            "[",
            "]",
            ":",
            "*",
            ",",
            "b",
            "{",
            "}",
            "\"kv\":",
            "\"num_ops_per_min\":",
            "7",
            "\"version\":2",
            "\"users\":{}",
            "-1",
            " ",
        ];
        for seed in platform::seeds::seeds(3_000) {
            let mut random = platform::Random::from_seed(seed);
            let mut text = String::new();
            for _ in 0..random.below(12) {
                let index = random.below(words.len() as u64);
                text.push_str(words[usize::try_from(index).unwrap()]);
            }
            user_texts(text.as_bytes());
        }
    }
}
