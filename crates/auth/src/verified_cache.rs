//! Which passwords were found right lately, so that checking them again is cheap.
//!
//! What is kept is an HMAC under a key that lives as long as the process, not the password.

use std::collections::VecDeque;

use subtle::ConstantTimeEq;

use crate::mechanism::HashAlgorithm;

struct Entry {
    user: String,
    tag: Vec<u8>,
}

/// The pairs of user and password that were verified, the oldest first.
pub(crate) struct VerifiedCache {
    entries: VecDeque<Entry>,
    entries_max: usize,
}

impl VerifiedCache {
    pub(crate) fn new(entries_max: usize) -> Self {
        Self { entries: VecDeque::new(), entries_max }
    }

    /// Whether the pair was verified and its user did not change since.
    pub(crate) fn contains(&self, user: &str, tag: &[u8]) -> bool {
        let mut of_user = self.entries.iter().filter(|entry| entry.user == user);
        of_user.any(|entry| entry.tag.ct_eq(tag).into())
    }

    /// Remembers a pair, and forgets the oldest when there are too many.
    pub(crate) fn insert(&mut self, user: &str, tag: Vec<u8>) {
        if self.entries_max == 0 || self.contains(user, &tag) {
            return;
        }
        if self.entries.len() >= self.entries_max {
            self.entries.pop_front();
        }
        self.entries.push_back(Entry { user: user.to_owned(), tag });
    }

    /// Forgets what is known of a user whose password changed.
    pub(crate) fn forget(&mut self, user: &str) {
        self.entries.retain(|entry| entry.user != user);
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

/// What stands for a pair of user and password.
pub(crate) fn tag(secret: &[u8], user: &str, password: &[u8]) -> Vec<u8> {
    let size = u64::try_from(user.len()).unwrap_or(u64::MAX).to_be_bytes();
    let message = [&size, user.as_bytes(), password].concat();
    HashAlgorithm::Sha256.hmac(secret, &message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first_and_a_change_forgets() {
        let tag = |user, password: &str| tag(b"secret", user, password.as_bytes());
        let mut cache = VerifiedCache::new(2);
        cache.insert("a", tag("a", "1"));
        cache.insert("a", tag("a", "1"));
        cache.insert("b", tag("b", "2"));
        assert_eq!(cache.len(), 2);
        assert!(cache.contains("a", &tag("a", "1")) && cache.contains("b", &tag("b", "2")));
        assert!(!cache.contains("b", &tag("a", "1")) && !cache.contains("a", &tag("a", "2")));
        cache.insert("c", tag("c", "3"));
        assert!(!cache.contains("a", &tag("a", "1")));
        cache.forget("b");
        assert!(!cache.contains("b", &tag("b", "2")));
        assert_eq!(cache.len(), 1);
        let mut nothing = VerifiedCache::new(0);
        nothing.insert("a", tag("a", "1"));
        assert_eq!(nothing.len(), 0);
    }

    #[test]
    fn the_border_between_user_and_password_counts() {
        assert!(tag(b"s", "ab", b"c") != tag(b"s", "a", b"bc"));
    }
}
