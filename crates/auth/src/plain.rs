//! The mechanism PLAIN: the client says its password. Source: RFC 4616.

use crate::mechanism::HashAlgorithm;
use crate::users::{USER_NAME_SIZE_MAX, Users};

/// A password that is still to be checked, which takes milliseconds: [`PlainAttempt::run`] may be
/// called on another thread.
#[derive(Clone, PartialEq, Eq)]
pub struct PlainAttempt {
    user: String,
    password: Vec<u8>,
}

impl PlainAttempt {
    /// `user` says that its password is `password`.
    pub fn new(user: &str, password: &[u8]) -> Self {
        Self { user: user.to_owned(), password: password.to_owned() }
    }

    /// Reads `[authzid] NUL user NUL password`; one NUL behind the password is tolerated. Nobody
    /// acts for another user: whoever names one is refused, and does not become itself unasked.
    /// Source: RFC 4616, section 2.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let mut parts = data.splitn(3, |byte| *byte == 0);
        let (authzid, user, password) = (parts.next()?, parts.next()?, parts.next()?);
        if !authzid.is_empty() && authzid != user {
            return None;
        }
        let password = password.strip_suffix(&[0]).unwrap_or(password);
        let is_sound = (1..=USER_NAME_SIZE_MAX).contains(&user.len()) && !password.contains(&0);
        let user = std::str::from_utf8(user).ok().filter(|_| is_sound)?;
        Some(Self::new(user, password))
    }

    /// Who says so.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Whether the pair was verified lately, so that there is nothing to run.
    pub(crate) fn is_verified(&self, users: &Users) -> bool {
        users.is_verified(&self.user, &self.password)
    }

    /// Checks the password: the user's name when it is right. As much work for unknown users as
    /// for known ones, and none for what was found right lately: of many who come at once and say
    /// the same one is hashed.
    pub fn run(self, users: &Users) -> Option<String> {
        if self.is_verified(users) {
            return Some(self.user);
        }
        let login = users.login(&self.user, HashAlgorithm::Sha512);
        let matches = login.hashed.matches(&self.password);
        let known = login.known?;
        // A change of the password in the meantime makes the attempt fail.
        (matches && users.remember(&self.user, &self.password, &known)).then_some(self.user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_passwords_are_told_apart() {
        let attempt = |user: &str, password: &[u8]| Some(PlainAttempt::new(user, password));
        for (data, expected) in [
            (&b"\0bob\0secret"[..], attempt("bob", b"secret")),
            (b"bob\0bob\0secret", attempt("bob", b"secret")),
            (b"bob\0bob\0secret\0", attempt("bob", b"secret")),
            (b"\0bob\0", attempt("bob", b"")),
            (b"\0bob\0\xff", attempt("bob", b"\xff")),
            (b"", None),
            (b"bob", None),
            (b"\0bob", None),
            (b"\0\0secret", None),
            (b"\0bob\0sec\0ret", None),
            (b"\0\xff\0secret", None),
        ] {
            assert!(PlainAttempt::parse(data) == expected, "{}", data.escape_ascii());
        }
        for of_another in [&b"eve\0bob\0secret"[..], b"BOB\0bob\0secret", b"bo\0bob\0secret\0"] {
            assert!(PlainAttempt::parse(of_another).is_none(), "{}", of_another.escape_ascii());
        }
        let long = [&b"\0"[..], &[b'u'; 129], b"\0p"].concat();
        assert!(PlainAttempt::parse(&long).is_none());
    }
}
