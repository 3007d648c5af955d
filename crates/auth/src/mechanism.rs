//! The mechanisms, and the hash functions beneath them.

use hmac::{Hmac, Mac};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha512};

/// What SASL_LIST_MECHS answers: the strongest first.
pub const MECHANISMS: &str = "SCRAM-SHA512 SCRAM-SHA256 SCRAM-SHA1 PLAIN";

/// A way to log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// The password never crosses the connection.
    Scram(HashAlgorithm),
    /// The password crosses the connection as it is.
    Plain,
}

/// A hash function that SCRAM can use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashAlgorithm {
    /// 20 bytes.
    Sha1,
    /// 32 bytes.
    Sha256,
    /// 64 bytes.
    Sha512,
}

impl Mechanism {
    /// The mechanism with this name, in whatever case.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Plain].into_iter().chain(HashAlgorithm::ALL.map(Self::Scram));
        all.into_iter().find(|mechanism| mechanism.name().eq_ignore_ascii_case(name))
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scram(HashAlgorithm::Sha1) => "SCRAM-SHA1",
            Self::Scram(HashAlgorithm::Sha256) => "SCRAM-SHA256",
            Self::Scram(HashAlgorithm::Sha512) => "SCRAM-SHA512",
            Self::Plain => "PLAIN",
        }
    }
}

macro_rules! with_hash {
    ($algorithm:expr, $hash:ident => $body:expr) => {
        match $algorithm {
            HashAlgorithm::Sha1 => {
                type $hash = Sha1;
                $body
            }
            HashAlgorithm::Sha256 => {
                type $hash = Sha256;
                $body
            }
            HashAlgorithm::Sha512 => {
                type $hash = Sha512;
                $body
            }
        }
    };
}

impl HashAlgorithm {
    /// Every algorithm, the weakest first.
    pub const ALL: [Self; 3] = [Self::Sha1, Self::Sha256, Self::Sha512];

    /// Bytes of a hash.
    pub fn size(self) -> usize {
        with_hash!(self, H => H::output_size())
    }

    pub(crate) fn hash(self, bytes: &[u8]) -> Vec<u8> {
        with_hash!(self, H => H::digest(bytes).to_vec())
    }

    pub(crate) fn hmac(self, key: &[u8], message: &[u8]) -> Vec<u8> {
        with_hash!(self, H => {
            let mut mac = Hmac::<H>::new_from_slice(key).expect("a key of HMAC has any size");
            mac.update(message);
            mac.finalize().into_bytes().to_vec()
        })
    }

    /// The salted password: PBKDF2 with this hash. Milliseconds of work, on purpose.
    pub(crate) fn salt_password(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        let mut salted = vec![0; self.size()];
        with_hash!(self, H => pbkdf2::pbkdf2_hmac::<H>(password, salt, iterations, &mut salted));
        salted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_mechanism_is_known_in_any_case() {
        for name in MECHANISMS.split(' ') {
            let mechanism = Mechanism::from_name(&name.to_lowercase()).unwrap();
            assert_eq!(mechanism.name(), name);
        }
        for name in ["", "SCRAM-SHA-256", "OAUTHBEARER", "PLAIN "] {
            assert_eq!(Mechanism::from_name(name), None);
        }
    }
}
