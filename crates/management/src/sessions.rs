//! Sessions of the console: who has signed in there, under a name that only the browser knows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use auth::{Credentials, Users};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use platform::{Clock, Entropy, Instant};
use subtle::ConstantTimeEq;
use tokio::sync::watch;

/// A session that nobody uses ends. A page that is open uses it.
pub(crate) const IDLE_TIME_MAX: Duration = Duration::from_secs(60 * 60);
/// After that somebody signs in again, whatever happens.
const AGE_MAX: Duration = Duration::from_secs(12 * 60 * 60);
/// Sessions at a time; the one that was used least lately makes room.
const SESSIONS_MAX: usize = 1024;
/// Those of one user: whoever signs in again and again ends sessions of its own.
const SESSIONS_OF_USER_MAX: usize = 32;
/// Bytes of either half of a token.
const HALF_SIZE: usize = 16;

type Half = [u8; HALF_SIZE];

/// All sessions, in memory alone: a node that starts anew has none.
#[derive(Debug)]
pub(crate) struct Sessions {
    clock: Clock,
    entropy: Entropy,
    /// By the first half of the token. A look-up may tell how alike two of them are; what proves
    /// the session is the second half.
    table: Mutex<BTreeMap<Half, Session>>,
    /// Changes when somebody signs out.
    signed_out: watch::Sender<()>,
}

struct Session {
    secret: Half,
    user: String,
    /// What the user signed in with: a new password ends the session.
    credentials: Arc<Credentials>,
    began: Instant,
    used: Instant,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Session {
    fn is_over(&self, now: Instant) -> bool {
        now.since(self.used) > IDLE_TIME_MAX || now.since(self.began) > AGE_MAX
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self::new(Clock::real(), Entropy::real())
    }
}

impl Sessions {
    fn new(clock: Clock, entropy: Entropy) -> Self {
        Self { clock, entropy, table: Mutex::default(), signed_out: watch::Sender::default() }
    }

    /// A session of a user who has just shown these credentials. Returns its token.
    pub(crate) fn begin(&self, user: &str, credentials: Arc<Credentials>) -> String {
        let (mut id, mut secret) = (Half::default(), Half::default());
        self.entropy.fill(&mut id);
        self.entropy.fill(&mut secret);
        let now = self.clock.now();
        let mut table = self.lock();
        // Those that are over make room before one that goes on has to.
        table.retain(|_, session| !session.is_over(now));
        let is_of_user = |session: &Session| session.user == user;
        if table.values().filter(|session| is_of_user(session)).count() >= SESSIONS_OF_USER_MAX {
            end_idlest(&mut table, is_of_user);
        }
        if table.len() >= SESSIONS_MAX {
            end_idlest(&mut table, |_| true);
        }
        let user = user.to_owned();
        table.insert(id, Session { secret, user, credentials, began: now, used: now });
        assert!(table.len() <= SESSIONS_MAX, "a session beyond the limit takes another's place");
        URL_SAFE_NO_PAD.encode([id, secret].concat())
    }

    /// Whose session a token is, if it is one that is not over and whose user is as it was. It
    /// counts as used.
    pub(crate) fn user_of(&self, token: &str, users: &Users) -> Option<String> {
        let (id, secret) = halves(token)?;
        let now = self.clock.now();
        let mut table = self.lock();
        let session = table.get_mut(&id)?;
        // Without removing it: whoever guesses a name ends nobody's session.
        if !bool::from(session.secret.ct_eq(&secret)) {
            return None;
        }
        let is_same = users.credentials(&session.user).is_some_and(|it| it == session.credentials);
        if session.is_over(now) || !is_same {
            table.remove(&id);
            return None;
        }
        session.used = now;
        Some(session.user.clone())
    }

    /// Ends the session of a token, if there is one.
    pub(crate) fn end(&self, token: &str) {
        let Some((id, secret)) = halves(token) else { return };
        let mut table = self.lock();
        if table.get(&id).is_some_and(|session| session.secret.ct_eq(&secret).into()) {
            table.remove(&id);
            self.signed_out.send_replace(());
        }
    }

    /// Whether the session of a token is not over. It does not count as used.
    pub(crate) fn is_on(&self, token: &str) -> bool {
        let Some((id, secret)) = halves(token) else { return false };
        let (now, table) = (self.clock.now(), self.lock());
        let is_this = |it: &Session| bool::from(it.secret.ct_eq(&secret)) && !it.is_over(now);
        table.get(&id).is_some_and(is_this)
    }

    /// Changes when somebody signs out: for what is to end with a session, and waits long.
    pub(crate) fn signed_out(&self) -> watch::Receiver<()> {
        self.signed_out.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Half, Session>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends that of some sessions that was used least lately.
fn end_idlest(table: &mut BTreeMap<Half, Session>, is_one: impl Fn(&Session) -> bool) {
    let some = table.iter().filter(|(_, session)| is_one(session));
    let idlest = some.min_by_key(|(_, session)| session.used).map(|(id, _)| *id);
    if let Some(id) = idlest {
        table.remove(&id);
    }
}

fn halves(token: &str) -> Option<(Half, Half)> {
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (id, secret) = bytes.split_at_checked(HALF_SIZE)?;
    Some((id.try_into().ok()?, secret.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use auth::UsersConfig;
    use platform::WallTime;

    use super::*;

    fn users() -> Users {
        let users = Users::new(UsersConfig { iterations: 4096, ..UsersConfig::default() });
        users.set_password("ann", b"password");
        users
    }

    fn sessions() -> (Clock, Sessions) {
        let clock = Clock::simulated(WallTime(1_700_000_000_000_000_000));
        (clock.clone(), Sessions::new(clock, Entropy::simulated(1)))
    }

    #[test]
    fn a_token_is_its_users_until_it_ends_is_idle_or_old() {
        let (clock, sessions) = sessions();
        let users = users();
        let begin = || sessions.begin("ann", users.credentials("ann").unwrap());
        let user_of = |token: &str| sessions.user_of(token, &users);
        let (ended, idle, old) = (begin(), begin(), begin());
        assert_eq!(user_of(&ended).as_deref(), Some("ann"));
        sessions.end(&ended);
        assert_eq!(user_of(&ended), None);
        for _ in 0..12 {
            assert_eq!(user_of(&old).as_deref(), Some("ann"));
            clock.advance(IDLE_TIME_MAX);
        }
        assert_eq!(user_of(&idle), None);
        assert_eq!(user_of(&old).as_deref(), Some("ann"));
        clock.advance(Duration::from_secs(1));
        assert_eq!(user_of(&old), None);
    }

    #[test]
    fn a_new_password_and_the_end_of_the_user_end_the_session() {
        let (_, sessions) = sessions();
        let users = users();
        let token = sessions.begin("ann", users.credentials("ann").unwrap());
        users.set_password("ann", b"another");
        assert_eq!(sessions.user_of(&token, &users), None);
        let token = sessions.begin("ann", users.credentials("ann").unwrap());
        let nobody = Users::new(UsersConfig::default());
        assert_eq!(sessions.user_of(&token, &nobody), None);
    }

    #[test]
    fn half_a_token_is_none() {
        let (_, sessions) = sessions();
        let users = users();
        let token = sessions.begin("ann", users.credentials("ann").unwrap());
        let mut bytes = URL_SAFE_NO_PAD.decode(&token).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        let forged = URL_SAFE_NO_PAD.encode(&bytes);
        for wrong in ["", "*", token.get(..20).unwrap(), forged.as_str()] {
            assert_eq!(sessions.user_of(wrong, &users), None, "{wrong}");
            sessions.end(wrong);
        }
        assert!(sessions.user_of(&token, &users).is_some(), "nobody else ends it");
    }

    #[test]
    fn there_are_no_more_sessions_than_may_be_and_the_idle_ones_go_first() {
        let (clock, sessions) = sessions();
        let users = users();
        let credentials = users.credentials("ann").unwrap();
        let begin = |user: &str| sessions.begin(user, Arc::clone(&credentials));
        let (first, second) = (begin("ann"), begin("ann"));
        clock.advance(Duration::from_secs(1));
        assert!(sessions.user_of(&first, &users).is_some());
        for number in 2..=SESSIONS_MAX {
            begin(&format!("user-{number}"));
        }
        assert!(sessions.user_of(&first, &users).is_some());
        assert_eq!(sessions.user_of(&second, &users), None);
    }

    #[test]
    fn who_signs_in_again_and_again_ends_no_session_of_others() {
        let (clock, sessions) = sessions();
        let users = users();
        let credentials = users.credentials("ann").unwrap();
        let begin = |user: &str| {
            clock.advance(Duration::from_millis(1));
            sessions.begin(user, Arc::clone(&credentials))
        };
        let of_ann: Vec<String> = (0..=SESSIONS_OF_USER_MAX).map(|_| begin("ann")).collect();
        for _ in 0..=SESSIONS_MAX {
            begin("bob");
        }
        assert_eq!(sessions.user_of(&of_ann[0], &users), None, "one too many of its own");
        for token in &of_ann[1..] {
            assert!(sessions.user_of(token, &users).is_some());
        }
    }
}
