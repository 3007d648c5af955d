//! Users as a JSON text, for the file that keeps them.
//!
//! ```text
//! {"version":1,"decoy_secret":b64,
//!  "users":{"name":{"sha1":{"salt":b64,"iterations":n,"stored_key":b64,
//!  "server_key":b64},"sha256":{...},"sha512":{...}}}}
//! ```

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::credentials::{Credentials, HashedPassword, ITERATIONS_MAX, ITERATIONS_MIN};
use crate::mechanism::HashAlgorithm;
use crate::users::{USER_NAME_SIZE_MAX, Users};

/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;

/// Why a text is not a users file. The node does not start: a login that cannot be checked must
/// not be let through, and a damaged file must not be overwritten.
#[derive(Debug, thiserror::Error)]
pub enum UsersFileError {
    /// Not JSON, or not of the right form.
    #[error("the users file is malformed: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Written by another version of the program.
    #[error("the users file has version {0}, this program reads {VERSION}")]
    Version(u32),
    /// A user's entry cannot be right.
    #[error("the entry of the user {0:?} is not sound")]
    Unsound(String),
    /// The secret behind what is made up for unknown names cannot be right.
    #[error("the decoy secret is not sound")]
    UnsoundSecret,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersJson {
    version: u32,
    /// 32 bytes; missing in files of before, until the next password is set.
    #[serde(default)]
    decoy_secret: Option<String>,
    users: BTreeMap<String, CredentialsJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialsJson {
    sha1: HashedJson,
    sha256: HashedJson,
    sha512: HashedJson,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HashedJson {
    salt: String,
    iterations: u32,
    stored_key: String,
    server_key: String,
}

impl Users {
    /// All users as a text to keep. It has no passwords, but who reads it can try to guess them.
    pub fn to_json(&self) -> String {
        let user = |name: String| {
            let credentials = self.credentials(&name)?;
            Some((name, CredentialsJson::from(&*credentials)))
        };
        let users = self.names().into_iter().filter_map(user).collect();
        let decoy_secret = Some(STANDARD.encode(self.decoy_secret()));
        serde_json::to_string_pretty(&UsersJson { version: VERSION, decoy_secret, users })
            .expect("names and numbers are always JSON")
    }

    /// Adds the users of a text; those of the same name are replaced. Returns how many there were.
    /// Adds nobody when one is not sound.
    pub fn add_from_json(&self, text: &str) -> Result<usize, UsersFileError> {
        let file: UsersJson = serde_json::from_str(text)?;
        if file.version != VERSION {
            return Err(UsersFileError::Version(file.version));
        }
        let mut users = Vec::new();
        for (name, json) in file.users {
            let is_name = (1..=USER_NAME_SIZE_MAX).contains(&name.len());
            match json.to_credentials().filter(|_| is_name) {
                Some(credentials) => users.push((name, credentials)),
                None => return Err(UsersFileError::Unsound(name)),
            }
        }
        if let Some(secret) = file.decoy_secret {
            let secret = STANDARD.decode(secret).ok().and_then(|bytes| bytes.try_into().ok());
            self.set_decoy_secret(secret.ok_or(UsersFileError::UnsoundSecret)?);
        }
        let count = users.len();
        for (name, credentials) in users {
            self.insert(&name, credentials);
        }
        Ok(count)
    }
}

impl From<&Credentials> for CredentialsJson {
    fn from(credentials: &Credentials) -> Self {
        Self {
            sha1: HashedJson::from(&credentials.sha1),
            sha256: HashedJson::from(&credentials.sha256),
            sha512: HashedJson::from(&credentials.sha512),
        }
    }
}

impl CredentialsJson {
    fn to_credentials(&self) -> Option<Credentials> {
        Some(Credentials {
            sha1: self.sha1.to_hashed(HashAlgorithm::Sha1)?,
            sha256: self.sha256.to_hashed(HashAlgorithm::Sha256)?,
            sha512: self.sha512.to_hashed(HashAlgorithm::Sha512)?,
        })
    }
}

impl From<&HashedPassword> for HashedJson {
    fn from(hashed: &HashedPassword) -> Self {
        Self {
            salt: STANDARD.encode(&hashed.salt),
            iterations: hashed.iterations,
            stored_key: STANDARD.encode(&hashed.stored_key),
            server_key: STANDARD.encode(&hashed.server_key),
        }
    }
}

impl HashedJson {
    fn to_hashed(&self, algorithm: HashAlgorithm) -> Option<HashedPassword> {
        let key = |text: &str| {
            STANDARD.decode(text).ok().filter(|key: &Vec<u8>| key.len() == algorithm.size())
        };
        let has_iterations = (ITERATIONS_MIN..=ITERATIONS_MAX).contains(&self.iterations);
        has_iterations.then_some(())?;
        Some(HashedPassword {
            algorithm,
            salt: STANDARD.decode(&self.salt).ok().filter(|salt| !salt.is_empty())?,
            iterations: self.iterations,
            stored_key: key(&self.stored_key)?,
            server_key: key(&self.server_key)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::users::UsersConfig;

    fn users() -> Users {
        Users::new(UsersConfig { iterations: 4096, verified_max: 4, ..UsersConfig::default() })
    }

    #[test]
    fn users_survive_the_file() {
        let before = users();
        before.set_password("bob", b"hunter2");
        before.set_password("a \"quoted\" name", b"other");
        let text = before.to_json();
        assert!(!text.contains("hunter2"));
        let after = users();
        assert_eq!(after.add_from_json(&text).unwrap(), 2);
        assert_eq!(after.names(), before.names());
        assert_eq!(after.to_json(), text);
        assert!(after.check_password("bob", b"hunter2"));
    }

    #[test]
    fn names_that_nobody_has_look_the_same_after_a_start_and_like_those_of_others() {
        let before = users();
        before.set_password("bob", b"secret");
        let after =
            Users::new(UsersConfig { iterations: 5000, verified_max: 4, ..UsersConfig::default() });
        after.add_from_json(&before.to_json()).unwrap();
        for algorithm in [HashAlgorithm::Sha1, HashAlgorithm::Sha256, HashAlgorithm::Sha512] {
            let seen = |users: &Users, name: &str| {
                let hashed = users.login(name, algorithm).hashed;
                (hashed.salt, hashed.iterations)
            };
            assert_eq!(seen(&after, "nobody"), seen(&before, "nobody"));
            assert_eq!(seen(&after, "nobody").1, seen(&after, "bob").1);
            assert_ne!(seen(&after, "nobody").0, seen(&after, "another").0);
        }
        // A file of before has no secret.
        let line = before.to_json().lines().find(|line| line.contains("decoy")).unwrap().to_owned();
        assert_eq!(users().add_from_json(&before.to_json().replace(&line, "")).unwrap(), 1);
    }

    #[test]
    fn a_file_that_is_not_sound_adds_nobody() {
        let before = users();
        before.set_password("bob", b"secret");
        let text = before.to_json();
        let after = users();
        let wrong = |from: &str, to: &str| {
            let text = text.replacen(from, to, 1);
            assert_ne!(text, before.to_json(), "{from} is in the file");
            after.add_from_json(&text).unwrap_err()
        };
        assert!(matches!(wrong("\"version\": 1", "\"version\": 2"), UsersFileError::Version(2)));
        assert!(matches!(wrong("4096", "4095"), UsersFileError::Unsound(_)));
        assert!(matches!(wrong("\"bob\"", "\"\""), UsersFileError::Unsound(_)));
        assert!(matches!(wrong("\"salt\": \"", "\"salt\": \"?"), UsersFileError::Unsound(_)));
        assert!(matches!(
            wrong("stored_key\": \"", "stored_key\": \"AAAA"),
            UsersFileError::Unsound(_)
        ));
        assert!(matches!(wrong("\"sha1\"", "\"sha2\""), UsersFileError::Malformed(_)));
        assert!(after.names().is_empty());
    }
}
