//! What is kept of a password.

use std::fmt;

use platform::Entropy;
use subtle::ConstantTimeEq;

use crate::mechanism::HashAlgorithm;

/// Rounds of PBKDF2 for new passwords. Source: docs/specification/protocol.md, section 8.2.
pub const ITERATIONS_DEFAULT: u32 = 15_000;
/// Fewer rounds are refused, here as by clients (RFC 7677, section 4).
pub const ITERATIONS_MIN: u32 = 4_096;
/// More rounds are a way to keep a machine busy.
pub const ITERATIONS_MAX: u32 = 10_000_000;
/// Bytes of a new salt.
pub(crate) const SALT_SIZE: usize = 16;

/// A password, hashed with one algorithm: enough to check it, not enough to use it elsewhere.
#[derive(Clone, PartialEq, Eq)]
pub struct HashedPassword {
    pub(crate) algorithm: HashAlgorithm,
    pub(crate) salt: Vec<u8>,
    pub(crate) iterations: u32,
    pub(crate) stored_key: Vec<u8>,
    pub(crate) server_key: Vec<u8>,
}

/// A password, hashed for every mechanism.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub(crate) sha1: HashedPassword,
    pub(crate) sha256: HashedPassword,
    pub(crate) sha512: HashedPassword,
}

impl HashedPassword {
    /// Hashes a password. Milliseconds of work, on purpose.
    pub fn new(algorithm: HashAlgorithm, password: &[u8], salt: Vec<u8>, iterations: u32) -> Self {
        let keys = Keys::new(algorithm, password, &salt, iterations);
        let stored_key = algorithm.hash(&keys.client_key);
        Self { algorithm, salt, iterations, stored_key, server_key: keys.server_key }
    }

    /// Whether this is the password. Milliseconds of work, on purpose.
    pub fn matches(&self, password: &[u8]) -> bool {
        let keys = Keys::new(self.algorithm, password, &self.salt, self.iterations);
        let stored_key = self.algorithm.hash(&keys.client_key);
        stored_key.ct_eq(&self.stored_key).into()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials")
    }
}

/// The two keys that follow from a salted password.
pub(crate) struct Keys {
    pub(crate) client_key: Vec<u8>,
    pub(crate) server_key: Vec<u8>,
}

impl Keys {
    pub(crate) fn new(
        algorithm: HashAlgorithm,
        password: &[u8],
        salt: &[u8],
        iterations: u32,
    ) -> Self {
        let salted = algorithm.salt_password(password, salt, iterations);
        let client_key = algorithm.hmac(&salted, b"Client Key");
        let server_key = algorithm.hmac(&salted, b"Server Key");
        Self { client_key, server_key }
    }
}

impl Credentials {
    /// Hashes a password with new salts; `iterations` below [`ITERATIONS_MIN`] or above
    /// [`ITERATIONS_MAX`] count as these. Milliseconds of work, on purpose.
    pub fn new(password: &[u8], iterations: u32, entropy: &Entropy) -> Self {
        let iterations = iterations.clamp(ITERATIONS_MIN, ITERATIONS_MAX);
        let hashed = |algorithm| {
            let mut salt = vec![0; SALT_SIZE];
            entropy.fill(&mut salt);
            HashedPassword::new(algorithm, password, salt, iterations)
        };
        Self {
            sha1: hashed(HashAlgorithm::Sha1),
            sha256: hashed(HashAlgorithm::Sha256),
            sha512: hashed(HashAlgorithm::Sha512),
        }
    }

    /// The password as this algorithm hashed it.
    pub fn hashed(&self, algorithm: HashAlgorithm) -> &HashedPassword {
        match algorithm {
            HashAlgorithm::Sha1 => &self.sha1,
            HashAlgorithm::Sha256 => &self.sha256,
            HashAlgorithm::Sha512 => &self.sha512,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_password_matches_and_salts_differ() {
        let first = Credentials::new(b"secret", 0, &Entropy::real());
        let second = Credentials::new(b"secret", 0, &Entropy::real());
        for algorithm in HashAlgorithm::ALL {
            let hashed = first.hashed(algorithm);
            assert_eq!(hashed.iterations, ITERATIONS_MIN);
            assert!(hashed.matches(b"secret"));
            assert!(!hashed.matches(b"Secret"));
            assert!(!hashed.matches(b""));
            assert!(hashed.salt != second.hashed(algorithm).salt);
        }
    }
}
