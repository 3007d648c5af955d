//! The client's half of a login.

use std::collections::VecDeque;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use platform::Entropy;
use subtle::ConstantTimeEq;

use crate::credentials::{ITERATIONS_MAX, ITERATIONS_MIN, Keys};
use crate::mechanism::HashAlgorithm;
use crate::scram::{encode_name, xor};

/// Why the client ends the login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramClientError {
    /// The server's message is malformed, or its nonce does not continue ours.
    #[error("the server's message makes no sense")]
    Malformed,
    /// The server asks for less or more work than is sensible.
    #[error("the server asks for {0} iterations")]
    Iterations(u32),
    /// The server does not know the password either. It is not the one that it claims to be.
    #[error("the server did not prove that it knows the password")]
    WrongServerSignature,
}

/// The data of SASL_AUTH for PLAIN, which ends the login at once.
pub fn plain(user: &str, password: &[u8]) -> Vec<u8> {
    [b"\0", user.as_bytes(), b"\0", password].concat()
}

/// A login with SCRAM: [`ScramClient::first`], [`ScramClient::answer`], [`Expected::check`].
pub struct ScramClient {
    algorithm: HashAlgorithm,
    password: Vec<u8>,
    nonce: String,
    first_bare: String,
}

/// What the server must answer in the end.
pub struct Expected(Vec<u8>);

impl ScramClient {
    /// Begins a login.
    pub fn new(algorithm: HashAlgorithm, user: &str, password: &[u8], entropy: &Entropy) -> Self {
        let mut bytes = [0; 18];
        entropy.fill(&mut bytes);
        Self::with_nonce(algorithm, user, password, &STANDARD.encode(bytes))
    }

    fn with_nonce(algorithm: HashAlgorithm, user: &str, password: &[u8], nonce: &str) -> Self {
        Self {
            algorithm,
            password: password.to_owned(),
            nonce: nonce.to_owned(),
            first_bare: format!("n={},r={nonce}", encode_name(user)),
        }
    }

    /// The data of SASL_AUTH.
    pub fn first(&self) -> Vec<u8> {
        ["n,,", &self.first_bare].concat().into_bytes()
    }

    /// The data of SASL_STEP, in answer to the server's challenge. Milliseconds of work.
    pub fn answer(self, server_first: &[u8]) -> Result<(Vec<u8>, Expected), ScramClientError> {
        self.answer_with(&mut KeyCache::default(), server_first)
    }

    /// The same, but the work is done once for all logins with this cache, as RFC 5802, section
    /// 5.1, allows.
    pub fn answer_with(
        self,
        cache: &mut KeyCache,
        server_first: &[u8],
    ) -> Result<(Vec<u8>, Expected), ScramClientError> {
        let server_first =
            std::str::from_utf8(server_first).map_err(|_| ScramClientError::Malformed)?;
        let challenge = Challenge::parse(server_first).ok_or(ScramClientError::Malformed)?;
        if !challenge.nonce.starts_with(&self.nonce) || challenge.nonce.len() == self.nonce.len() {
            return Err(ScramClientError::Malformed);
        }
        if !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&challenge.iterations) {
            return Err(ScramClientError::Iterations(challenge.iterations));
        }
        let Challenge { nonce, salt, iterations } = challenge;
        let keys = cache.keys(self.algorithm, &self.password, salt, iterations);
        let without_proof = format!("c=biws,r={nonce}");
        let signed = [self.first_bare.as_str(), server_first, &without_proof].join(",");
        let stored_key = self.algorithm.hash(&keys.client_key);
        let client_signature = self.algorithm.hmac(&stored_key, signed.as_bytes());
        let proof = xor(&keys.client_key, &client_signature).ok_or(ScramClientError::Malformed)?;
        let client_final = format!("{without_proof},p={}", STANDARD.encode(proof));
        let expected = Expected(self.algorithm.hmac(&keys.server_key, signed.as_bytes()));
        Ok((client_final.into_bytes(), expected))
    }
}

/// Servers whose keys a cache holds; each has a salt of its own.
const CACHED_KEYS_MAX: usize = 64;

/// The keys of the latest logins, for many logins to a few servers. Holds secrets.
#[derive(Default)]
pub struct KeyCache(VecDeque<CachedKeys>);

struct CachedKeys {
    algorithm: HashAlgorithm,
    password: Vec<u8>,
    salt: Vec<u8>,
    iterations: u32,
    keys: Keys,
}

impl KeyCache {
    fn keys(
        &mut self,
        algorithm: HashAlgorithm,
        password: &[u8],
        salt: Vec<u8>,
        iterations: u32,
    ) -> &Keys {
        let fits = |cached: &CachedKeys| {
            (cached.algorithm, cached.iterations) == (algorithm, iterations)
                && cached.password == password
                && cached.salt == salt
        };
        let found = self.0.iter().position(fits).and_then(|index| self.0.remove(index));
        let cached = found.unwrap_or_else(|| CachedKeys {
            keys: Keys::new(algorithm, password, &salt, iterations),
            algorithm,
            password: password.to_owned(),
            salt,
            iterations,
        });
        self.0.truncate(CACHED_KEYS_MAX - 1);
        &self.0.push_front_mut(cached).keys
    }
}

impl fmt::Debug for KeyCache {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyCache")
    }
}

impl Expected {
    /// Whether the server knows the password, by its last message.
    pub fn check(self, server_final: &[u8]) -> Result<(), ScramClientError> {
        let signature = server_final.strip_prefix(b"v=").ok_or(ScramClientError::Malformed)?;
        let signature = STANDARD.decode(signature).map_err(|_| ScramClientError::Malformed)?;
        let is_expected: bool = signature.ct_eq(&self.0).into();
        if is_expected { Ok(()) } else { Err(ScramClientError::WrongServerSignature) }
    }
}

impl fmt::Debug for Expected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Expected")
    }
}

struct Challenge<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: u32,
}

impl<'a> Challenge<'a> {
    fn parse(server_first: &'a str) -> Option<Self> {
        let mut attributes = server_first.split(',');
        Some(Self {
            nonce: attributes.next()?.strip_prefix("r=")?,
            salt: STANDARD.decode(attributes.next()?.strip_prefix("s=")?).ok()?,
            iterations: attributes.next()?.strip_prefix("i=")?.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests;
