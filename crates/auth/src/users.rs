//! Who may log in, and with which password and rights: shared by all connections.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use platform::{Entropy, Instant};

use crate::access::Access;
use crate::address_limit::AddressLimit;
use crate::credentials::{Credentials, HashedPassword, ITERATIONS_DEFAULT, SALT_SIZE};
use crate::mechanism::HashAlgorithm;
use crate::noted::{Actor, Noted};
use crate::plain::PlainAttempt;
use crate::registry::{Editor, NewPassword, UserAccount, UserRegistry, UsersEdit, UsersEditError};
use crate::role::Role;
use crate::user_limits::UserLimits;
use crate::users_file::UsersFileError;
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
    /// Logins that may fail in a minute from one address before others from there are refused for
    /// the rest of it; `None` for any number.
    pub failed_logins_per_minute_max: Option<u32>,
    /// Where salts and nonces come from.
    pub entropy: Entropy,
}

/// Where users are kept. Calls may wait for disks.
pub trait UsersKeeper: Send + Sync {
    /// Puts `text` in the place of what was kept, all or nothing; otherwise says why not.
    fn save(&self, text: &str) -> Result<(), String>;

    /// What is kept.
    fn load(&self) -> Result<String, String>;
}

/// The registry of users, shared by all connections.
///
/// Three locks, taken in this order: `changing`, `current`, `verified`. No password is hashed
/// under any of them, and nothing but `changing` is held while something waits for a disk.
pub struct Users {
    config: UsersConfig,
    /// Known to nobody; made anew with every process.
    secret: [u8; 32],
    current: RwLock<Arc<UserRegistry>>,
    /// Counts what has come into the place of `current`, for those who keep what follows from it.
    version: AtomicU64,
    changing: Mutex<()>,
    keeper: OnceLock<Box<dyn UsersKeeper>>,
    verified: Mutex<VerifiedCache>,
    /// Hears of what is to be noted; does not wait for anything.
    watcher: OnceLock<Watcher>,
    addresses: AddressLimit,
}

type Watcher = Box<dyn Fn(Actor<'_>, Noted<'_>) + Send + Sync>;

impl Default for UsersConfig {
    fn default() -> Self {
        Self {
            iterations: ITERATIONS_DEFAULT,
            verified_max: 1024,
            failed_logins_per_minute_max: None,
            entropy: Entropy::real(),
        }
    }
}

impl Users {
    /// No users yet.
    pub fn new(config: UsersConfig) -> Self {
        let (mut secret, mut decoy_secret) = ([0; 32], [0; 32]);
        config.entropy.fill(&mut secret);
        config.entropy.fill(&mut decoy_secret);
        let verified_max = config.verified_max;
        let addresses = AddressLimit::new(config.failed_logins_per_minute_max);
        Self {
            config,
            secret,
            current: RwLock::new(Arc::new(UserRegistry {
                decoy_secret,
                ..UserRegistry::default()
            })),
            version: AtomicU64::new(1),
            changing: Mutex::default(),
            keeper: OnceLock::new(),
            verified: Mutex::new(VerifiedCache::new(verified_max)),
            watcher: OnceLock::new(),
            addresses,
        }
    }

    /// From now on changes are kept by `keeper` before they count.
    pub fn keep_with(&self, keeper: Box<dyn UsersKeeper>) {
        assert!(self.keeper.set(keeper).is_ok(), "users are kept in one place");
    }

    /// From now on `watcher` hears of what is to be noted. It must not wait for anything.
    pub fn watch_with(&self, watcher: impl Fn(Actor<'_>, Noted<'_>) + Send + Sync + 'static) {
        assert!(self.watcher.set(Box::new(watcher)).is_ok(), "what is noted is noted by one");
    }

    /// Somebody has done something that is to be noted.
    pub fn note(&self, actor: Actor<'_>, noted: Noted<'_>) {
        if let Some(watcher) = self.watcher.get() {
            watcher(actor, noted);
        }
    }

    /// For how long logins from an address are refused, because so many of them have failed.
    pub fn refusal_of_logins_from(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        self.addresses.refusal(address, now)
    }

    /// A login from there has failed.
    pub fn note_failure_from(&self, address: IpAddr, now: Instant) {
        self.addresses.note_failure(address, now);
    }

    /// Where salts and nonces come from.
    pub(crate) fn entropy(&self) -> &Entropy {
        &self.config.entropy
    }

    /// All users and groups as they are now.
    pub fn registry(&self) -> Arc<UserRegistry> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another number after every change. What a user may do is looked up again when it is another
    /// one than it was.
    #[inline]
    pub fn version(&self) -> u64 {
        // Relaxed: it changes under the write lock of `current`, which whoever looks up behind this
        // takes.
        self.version.load(Ordering::Relaxed)
    }

    /// What a user may do; `None` if there is no such user.
    pub fn access(&self, user: &str) -> Option<Access> {
        self.registry().access(user)
    }

    /// What a user may take of a node; whoever is no user has no limits.
    pub fn limits(&self, user: &str) -> UserLimits {
        self.registry().accounts.get(user).map(|account| account.limits).unwrap_or_default()
    }

    /// Hashes a password that is to be set. Milliseconds of work, on purpose.
    pub fn hash(&self, password: &[u8], now_seconds: u64) -> NewPassword {
        let credentials = Credentials::new(password, self.config.iterations, self.entropy());
        NewPassword { credentials: Arc::new(credentials), set_seconds: now_seconds }
    }

    /// Gives a user this password; a new one is an administrator. Not kept. Milliseconds of work,
    /// on purpose.
    pub fn set_password(&self, user: &str, password: &[u8]) {
        self.insert(user, Credentials::new(password, self.config.iterations, self.entropy()));
    }

    /// Gives a user these credentials; a new one is an administrator. Not kept. Forgets the
    /// passwords verified before.
    pub fn insert(&self, user: &str, credentials: Credentials) {
        let _changing = self.lock_changes();
        let mut next = UserRegistry::clone(&self.registry()).behind_start();
        let credentials = Arc::new(credentials);
        let account = match next.accounts.get(user) {
            Some(before) => UserAccount { credentials, ..UserAccount::clone(before) },
            None => UserAccount { roles: vec![Role::admin()], ..UserAccount::new(credentials) },
        };
        next.accounts.insert(user.to_owned(), Arc::new(account));
        self.replace(next);
    }

    /// Gives the administrator of the start everything, whatever its roles were. Not kept.
    pub fn make_admin(&self, user: &str) {
        let _changing = self.lock_changes();
        let mut next = UserRegistry::clone(&self.registry()).behind_start();
        if let Some(account) = next.accounts.get_mut(user) {
            Arc::make_mut(account).roles = vec![Role::admin()];
            self.replace(next);
        }
    }

    /// Makes a change, and keeps it. May wait for a disk.
    ///
    /// # Errors
    /// See [`UsersEditError`].
    pub fn edit(
        &self,
        edit: &UsersEdit,
        editor: Editor,
    ) -> Result<Arc<UserRegistry>, UsersEditError> {
        let _changing = self.lock_changes();
        let next = self.registry().edited(edit, editor)?;
        // A change that would be gone after a start does not count.
        self.keep(&next).map_err(UsersEditError::Failed)?;
        self.replace(next);
        Ok(self.registry())
    }

    /// Puts another registry in the place of the one that there is, if it counts more, and keeps
    /// it. Whether it does. May wait for a disk.
    ///
    /// # Errors
    /// It could not be kept.
    pub fn adopt(&self, next: UserRegistry) -> Result<bool, String> {
        let _changing = self.lock_changes();
        if !next.counts_more_than(&self.registry()) {
            return Ok(false);
        }
        self.keep(&next)?;
        self.replace(next);
        Ok(true)
    }

    /// The same, if this registry is of that revision still: of two that follow it one is taken.
    ///
    /// # Errors
    /// It could not be kept.
    pub fn adopt_behind(&self, revision: u64, next: UserRegistry) -> Result<bool, String> {
        let _changing = self.lock_changes();
        if self.registry().revision != revision || next.revision != revision + 1 {
            return Ok(false);
        }
        self.keep(&next)?;
        self.replace(next);
        Ok(true)
    }

    /// Reads again what is kept. May wait for a disk.
    ///
    /// # Errors
    /// In words why that cannot be read. Nothing has changed.
    pub fn reload(&self) -> Result<(), String> {
        let _changing = self.lock_changes();
        let Some(keeper) = self.keeper.get() else { return Ok(()) };
        let next = UserRegistry::from_json(&keeper.load()?).map_err(|error| error.to_string())?;
        self.replace(next.continuing(&self.registry()));
        Ok(())
    }

    /// Puts the users of a text in the place of those that there are. Returns how many there are.
    ///
    /// # Errors
    /// One is not sound. Nothing has changed.
    pub fn replace_from_json(&self, text: &str) -> Result<usize, UsersFileError> {
        let next = UserRegistry::from_json(text)?;
        let _changing = self.lock_changes();
        let count = next.accounts.len();
        self.replace(next.continuing(&self.registry()));
        Ok(count)
    }

    /// All users as a text to keep. It has no passwords, but who reads it can try to guess them.
    pub fn to_json(&self) -> String {
        self.registry().to_json()
    }

    /// The names of all users, sorted.
    pub fn names(&self) -> Vec<String> {
        self.registry().accounts.keys().cloned().collect()
    }

    /// What is kept of a user's password.
    pub fn credentials(&self, user: &str) -> Option<Arc<Credentials>> {
        let registry = self.registry();
        registry.accounts.get(user).map(|account| Arc::clone(&account.credentials))
    }

    /// Whether these are the user's credentials: neither were they changed, nor is the user another
    /// one of that name.
    pub(crate) fn has_credentials(&self, user: &str, credentials: &Arc<Credentials>) -> bool {
        let registry = self.registry();
        let account = registry.accounts.get(user);
        account.is_some_and(|account| Arc::ptr_eq(&account.credentials, credentials))
    }

    /// Whether the password was found right lately, and the user did not change since. Cheap; when
    /// it answers false, nothing is known.
    pub fn is_verified(&self, user: &str, password: &[u8]) -> bool {
        let tag = tag(&self.secret, user, password);
        self.lock_verified().contains(user, &tag)
    }

    /// Whether this is the user's password: what HTTP Basic authentication asks. Cheap when the
    /// pair was verified lately, otherwise milliseconds of work.
    pub fn check_password(&self, user: &str, password: &[u8]) -> bool {
        self.is_verified(user, password) || PlainAttempt::new(user, password).run(self).is_some()
    }

    /// Passwords that are remembered as verified, at most [`UsersConfig::verified_max`].
    pub fn verified_count(&self) -> usize {
        self.lock_verified().len()
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
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner);
        let account = current.accounts.get(user);
        let is_current = account.is_some_and(|account| Arc::ptr_eq(&account.credentials, verified));
        if is_current {
            // Under the lock of `current`, which `replace` holds while it forgets: what is outdated
            // by then cannot come in behind that.
            self.lock_verified().insert(user, tag);
        }
        is_current
    }

    fn keep(&self, next: &UserRegistry) -> Result<(), String> {
        self.keeper.get().map_or(Ok(()), |keeper| keeper.save(&next.to_json()))
    }

    /// The caller has the right to change. What was verified for who has other credentials now, or
    /// none, is forgotten.
    fn replace(&self, next: UserRegistry) {
        let next = Arc::new(next.sharing_with(&self.registry()));
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, Arc::clone(&next));
        let mut verified = self.lock_verified();
        for (user, account) in &before.accounts {
            let now = next.accounts.get(user);
            if now.is_none_or(|now| !Arc::ptr_eq(&now.credentials, &account.credentials)) {
                verified.forget(user);
            }
        }
        // Behind the change: whoever sees the number finds what it stands for.
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Rounds of PBKDF2 that somebody's password has, as most have after a while.
    fn usual_iterations(&self, algorithm: HashAlgorithm) -> u32 {
        let registry = self.registry();
        let known = registry.accounts.values().next();
        let known = known.map(|account| account.credentials.hashed(algorithm).iterations);
        known.unwrap_or(self.config.iterations.max(crate::credentials::ITERATIONS_MIN))
    }

    fn made_up(&self, user: &str, algorithm: HashAlgorithm) -> HashedPassword {
        let secret = self.registry().decoy_secret;
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

    fn lock_changes(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_verified(&self) -> MutexGuard<'_, VerifiedCache> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
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
        users.set_password("root", b"other");
        let removal = UsersEdit::RemoveUser("bob".to_owned());
        users.edit(&removal, Editor::Admin).unwrap();
        assert_eq!(users.edit(&removal, Editor::Admin).unwrap_err(), UsersEditError::NoUser);
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

    /// Keeps a text, or refuses to.
    #[derive(Default)]
    struct Memory {
        kept: Arc<Mutex<String>>,
        is_full: bool,
    }

    impl UsersKeeper for Memory {
        fn save(&self, text: &str) -> Result<(), String> {
            if self.is_full {
                return Err("full".to_owned());
            }
            text.clone_into(&mut self.kept.lock().unwrap());
            Ok(())
        }

        fn load(&self) -> Result<String, String> {
            Ok(self.kept.lock().unwrap().clone())
        }
    }

    #[test]
    fn a_change_is_kept_before_it_counts_and_read_again_when_asked() {
        let users = users();
        let kept = Arc::new(Mutex::new(String::new()));
        users.keep_with(Box::new(Memory { kept: Arc::clone(&kept), is_full: false }));
        let version = users.version();
        let password = users.hash(b"other", 5);
        let edit = UsersEdit::SetPassword("bob".to_owned(), password);
        users.edit(&edit, Editor::Admin).unwrap();
        assert_ne!(users.version(), version);
        assert_eq!(*kept.lock().unwrap(), users.to_json());
        users.set_password("eve", b"not kept");
        let revision = users.registry().revision;
        users.reload().unwrap();
        assert_eq!(users.names(), ["bob"]);
        assert_eq!(users.registry().revision, revision, "what was read does not go back");
        *kept.lock().unwrap() = "{".to_owned();
        users.reload().unwrap_err();
        assert_eq!(users.names(), ["bob"]);
    }

    #[test]
    fn a_change_that_cannot_be_kept_has_not_happened() {
        let users = users();
        users.keep_with(Box::new(Memory { is_full: true, ..Memory::default() }));
        let before = (users.version(), users.to_json());
        let edit = UsersEdit::SetPassword("bob".to_owned(), users.hash(b"other", 5));
        let full = UsersEditError::Failed("full".to_owned());
        assert_eq!(users.edit(&edit, Editor::Admin).unwrap_err(), full);
        assert_eq!((users.version(), users.to_json()), before);
        assert!(users.check_password("bob", b"secret"));
    }

    #[test]
    fn of_two_registries_the_one_with_more_changes_counts() {
        let (here, there) = (users(), users());
        let registry = |users: &Users| UserRegistry::clone(&users.registry());
        let change = |users: &Users| {
            let edit = UsersEdit::SetPassword("bob".to_owned(), users.hash(b"other", 5));
            users.edit(&edit, Editor::Admin).unwrap();
        };
        there.set_password("eve", b"secret");
        assert!(!here.adopt(registry(&there)).unwrap(), "a start changes no other node");
        change(&there);
        assert!(here.adopt(registry(&there)).unwrap());
        assert_eq!(here.to_json(), there.to_json());
        assert!(!there.adopt(registry(&here)).unwrap(), "it is the same");
        change(&here);
        assert!(!here.adopt(registry(&there)).unwrap(), "it is older");
        change(&there);
        let taken = [here.adopt(registry(&there)).unwrap(), there.adopt(registry(&here)).unwrap()];
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "of two equal ones, one");
        let next = UserRegistry { revision: 3, ..registry(&there) };
        assert!(!here.adopt_behind(1, next.clone()).unwrap(), "another has followed already");
        assert!(here.adopt_behind(2, next).unwrap());
    }
}
