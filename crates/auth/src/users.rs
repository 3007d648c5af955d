//! All users, and whether a password is theirs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use platform::Entropy;

use crate::credentials::{Credentials, HashedPassword, ITERATIONS_DEFAULT, SALT_SIZE};
use crate::mechanism::HashAlgorithm;
use crate::plain::PlainAttempt;
use crate::verified_cache::{VerifiedCache, tag};

/// Bytes of a user's name. Source: docs/specification/protocol.md, section 19.1.
pub const USER_NAME_SIZE_MAX: usize = 128;

/// How users are kept.
#[derive(Clone, Debug)]
pub struct UsersConfig {
    /// Rounds of PBKDF2 for new passwords.
    pub iterations: u32,
    /// Passwords that are remembered as verified.
    pub verified_max: usize,
    /// Where salts and nonces come from.
    pub entropy: Entropy,
}

/// The registry of users, shared by all connections.
///
/// Three locks, never held together except in this order: `credentials`, `verified`;
/// `decoy_secret` is held alone. No password is hashed under any of them.
pub struct Users {
    config: UsersConfig,
    /// Known to nobody; made anew with every process.
    secret: [u8; 32],
    /// What is made up for names that nobody has comes from it. Kept with the users: were it
    /// another one after a start, who asks before and after would tell such names from others.
    decoy_secret: RwLock<[u8; 32]>,
    credentials: RwLock<BTreeMap<String, Arc<Credentials>>>,
    verified: Mutex<VerifiedCache>,
}

impl Default for UsersConfig {
    fn default() -> Self {
        Self { iterations: ITERATIONS_DEFAULT, verified_max: 1024, entropy: Entropy::real() }
    }
}

impl Users {
    /// No users yet.
    pub fn new(config: UsersConfig) -> Self {
        let (mut secret, mut decoy_secret) = ([0; 32], [0; 32]);
        config.entropy.fill(&mut secret);
        config.entropy.fill(&mut decoy_secret);
        let verified_max = config.verified_max;
        Self {
            config,
            secret,
            decoy_secret: RwLock::new(decoy_secret),
            credentials: RwLock::default(),
            verified: Mutex::new(VerifiedCache::new(verified_max)),
        }
    }

    /// Where salts and nonces come from.
    pub(crate) fn entropy(&self) -> &Entropy {
        &self.config.entropy
    }

    /// Gives a user, new or not, this password. Milliseconds of work, on purpose.
    pub fn set_password(&self, user: &str, password: &[u8]) {
        self.insert(user, Credentials::new(password, self.config.iterations, self.entropy()));
    }

    /// Gives a user, new or not, these credentials. Forgets the passwords verified before.
    pub fn insert(&self, user: &str, credentials: Credentials) {
        let mut all = self.credentials.write().unwrap_or_else(PoisonError::into_inner);
        all.insert(user.to_owned(), Arc::new(credentials));
        self.forget_verified(user);
    }

    /// Removes a user. Whether there was one.
    pub fn remove(&self, user: &str) -> bool {
        let mut all = self.credentials.write().unwrap_or_else(PoisonError::into_inner);
        let existed = all.remove(user).is_some();
        self.forget_verified(user);
        existed
    }

    /// The names of all users, sorted.
    pub fn names(&self) -> Vec<String> {
        let all = self.credentials.read().unwrap_or_else(PoisonError::into_inner);
        all.keys().cloned().collect()
    }

    /// What is kept of a user's password.
    pub fn credentials(&self, user: &str) -> Option<Arc<Credentials>> {
        let all = self.credentials.read().unwrap_or_else(PoisonError::into_inner);
        all.get(user).cloned()
    }

    /// Whether the password was found right lately, and the user did not change since. Cheap; when
    /// it answers false, nothing is known.
    pub fn is_verified(&self, user: &str, password: &[u8]) -> bool {
        let tag = tag(&self.secret, user, password);
        self.verified.lock().unwrap_or_else(PoisonError::into_inner).contains(user, &tag)
    }

    /// Whether this is the user's password: what HTTP Basic authentication asks. Cheap when the
    /// pair was verified lately, otherwise milliseconds of work.
    pub fn check_password(&self, user: &str, password: &[u8]) -> bool {
        self.is_verified(user, password) || PlainAttempt::new(user, password).run(self).is_some()
    }

    /// Passwords that are remembered as verified, at most [`UsersConfig::verified_max`].
    pub fn verified_count(&self) -> usize {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// What to check a login with. For unknown users that is something made up, the same every
    /// time, so that nobody learns from the answers which names exist.
    pub(crate) fn login(&self, user: &str, algorithm: HashAlgorithm) -> Login {
        match self.credentials(user) {
            Some(credentials) => {
                Login { hashed: credentials.hashed(algorithm).clone(), known: Some(credentials) }
            }
            None => Login { hashed: self.made_up(user, algorithm), known: None },
        }
    }

    /// Remembers a verified password, unless the user changed while it was being verified.
    pub(crate) fn remember(
        &self,
        user: &str,
        password: &[u8],
        verified: &Arc<Credentials>,
    ) -> bool {
        let tag = tag(&self.secret, user, password);
        let all = self.credentials.read().unwrap_or_else(PoisonError::into_inner);
        let is_current = all.get(user).is_some_and(|current| Arc::ptr_eq(current, verified));
        if is_current {
            self.verified.lock().unwrap_or_else(PoisonError::into_inner).insert(user, tag);
        }
        is_current
    }

    pub(crate) fn decoy_secret(&self) -> [u8; 32] {
        *self.decoy_secret.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_decoy_secret(&self, secret: [u8; 32]) {
        *self.decoy_secret.write().unwrap_or_else(PoisonError::into_inner) = secret;
    }

    /// Rounds of PBKDF2 that somebody's password has, as most have after a while.
    fn usual_iterations(&self, algorithm: HashAlgorithm) -> u32 {
        let all = self.credentials.read().unwrap_or_else(PoisonError::into_inner);
        let known = all.values().next().map(|credentials| credentials.hashed(algorithm).iterations);
        known.unwrap_or(self.config.iterations.max(crate::credentials::ITERATIONS_MIN))
    }

    fn made_up(&self, user: &str, algorithm: HashAlgorithm) -> HashedPassword {
        let secret = self.decoy_secret();
        let derive = |purpose: &str, size| {
            let message = [purpose, algorithm_name(algorithm), user].join("\0");
            let mut bytes = HashAlgorithm::Sha512.hmac(&secret, message.as_bytes());
            bytes.truncate(size);
            bytes
        };
        HashedPassword {
            algorithm,
            salt: derive("salt", SALT_SIZE),
            iterations: self.usual_iterations(algorithm),
            stored_key: derive("stored key", algorithm.size()),
            server_key: derive("server key", algorithm.size()),
        }
    }

    fn forget_verified(&self, user: &str) {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner).forget(user);
    }
}

fn algorithm_name(algorithm: HashAlgorithm) -> &'static str {
    crate::mechanism::Mechanism::Scram(algorithm).name()
}

/// What a login is checked with.
pub(crate) struct Login {
    pub(crate) hashed: HashedPassword,
    /// `None`: there is no such user, and the login fails whatever the client proves.
    pub(crate) known: Option<Arc<Credentials>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> Users {
        let users =
            Users::new(UsersConfig { iterations: 4096, verified_max: 4, ..UsersConfig::default() });
        users.set_password("bob", b"secret");
        users
    }

    #[test]
    fn a_verified_password_is_remembered_until_it_changes() {
        let users = users();
        assert!(!users.is_verified("bob", b"secret"));
        assert!(users.check_password("bob", b"secret"));
        assert!(users.is_verified("bob", b"secret"));
        assert!(!users.check_password("bob", b"wrong"));
        assert!(!users.check_password("eve", b"secret"));
        assert_eq!(users.verified_count(), 1);
        users.set_password("bob", b"new");
        assert!(!users.is_verified("bob", b"secret"));
        assert!(!users.check_password("bob", b"secret"));
        assert!(users.check_password("bob", b"new"));
        assert!(users.remove("bob"));
        assert!(!users.remove("bob"));
        assert!(!users.check_password("bob", b"new"));
        assert_eq!(users.verified_count(), 0);
    }

    #[test]
    fn a_change_during_verification_is_not_overlooked() {
        let users = users();
        let before = users.credentials("bob").unwrap();
        users.set_password("bob", b"new");
        assert!(!users.remember("bob", b"secret", &before));
        assert!(!users.is_verified("bob", b"secret"));
    }

    #[test]
    fn an_unknown_user_looks_the_same_every_time_and_like_a_known_one() {
        let users = users();
        for algorithm in HashAlgorithm::ALL {
            let first = users.login("eve", algorithm);
            assert!(first.known.is_none());
            assert!(first.hashed == users.login("eve", algorithm).hashed);
            assert!(first.hashed.salt != users.login("mallory", algorithm).hashed.salt);
            let known = users.login("bob", algorithm).hashed;
            assert_eq!(first.hashed.salt.len(), known.salt.len());
            assert_eq!(first.hashed.iterations, known.iterations);
        }
    }
}
