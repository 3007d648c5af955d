//! Which passwords new ones may be.

use serde::{Deserialize, Serialize};

/// Characters of a password that has to be of other kinds than letters and digits, as the
/// original's policy counts them.
const SPECIAL: &str = "@%+\\/'\"!#$^?:,(){}[]~`-_";

/// Bytes of a password: what a login message has room for.
const LENGTH_MAX: usize = 1024;

/// What a new password must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PasswordPolicy {
    /// Bytes that it has at least.
    pub length_min: usize,
    /// A letter that is large.
    pub needs_uppercase: bool,
    /// A letter that is small.
    pub needs_lowercase: bool,
    /// A digit.
    pub needs_digit: bool,
    /// Something else.
    pub needs_special: bool,
}

impl Default for PasswordPolicy {
    fn default() -> Self {
        Self {
            length_min: 6,
            needs_uppercase: false,
            needs_lowercase: false,
            needs_digit: false,
            needs_special: false,
        }
    }
}

impl PasswordPolicy {
    /// What a password lacks, for whoever thought of it.
    ///
    /// # Errors
    /// The first thing.
    pub fn check(&self, password: &str) -> Result<(), String> {
        let lacks = |is_it: fn(char) -> bool| !password.chars().any(is_it);
        if password.len() < self.length_min {
            return Err(format!(
                "The password must be at least {} characters long.",
                self.length_min
            ));
        }
        if password.len() > LENGTH_MAX {
            return Err(format!("The password must be at most {LENGTH_MAX} bytes long."));
        }
        for (is_needed, is_lacking, what) in [
            (self.needs_uppercase, lacks(char::is_uppercase), "at least one uppercase letter"),
            (self.needs_lowercase, lacks(char::is_lowercase), "at least one lowercase letter"),
            (self.needs_digit, lacks(|it| it.is_ascii_digit()), "at least one digit"),
            (
                self.needs_special,
                lacks(|it| SPECIAL.contains(it)),
                "at least one special character",
            ),
        ] {
            if is_needed && is_lacking {
                return Err(format!("The password must contain {what}."));
            }
        }
        if password.chars().any(char::is_control) {
            return Err("The password must not contain control characters.".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_has_what_the_policy_asks_for() {
        let usual = PasswordPolicy::default();
        let strict = PasswordPolicy {
            length_min: 4,
            needs_uppercase: true,
            needs_lowercase: true,
            needs_digit: true,
            needs_special: true,
        };
        for (policy, password, lacks) in [
            (usual, "secret", None),
            (usual, "secre", Some("at least 6")),
            (usual, "sec\0ret", Some("control")),
            (usual, &"p".repeat(LENGTH_MAX), None),
            (usual, &"p".repeat(LENGTH_MAX + 1), Some("at most 1024")),
            (strict, "aB3!", None),
            (strict, "ab3!", Some("uppercase")),
            (strict, "AB3!", Some("lowercase")),
            (strict, "aBc!", Some("digit")),
            (strict, "aB34", Some("special")),
        ] {
            let found = policy.check(password);
            match lacks {
                None => assert_eq!(found, Ok(()), "{password}"),
                Some(what) => assert!(found.unwrap_err().contains(what), "{password}"),
            }
        }
    }
}
