//! Users and groups as a JSON text, for the file that keeps them and for other nodes.
//!
//! ```text
//! {"version":2,"revision":n,"decoy_secret":b64,"policy":{"length_min":n,...},
//!  "users":{"name":{"sha1":{"salt":b64,"iterations":n,"stored_key":b64,"server_key":b64},
//!                   "sha256":{...},"sha512":{...},"password_set_seconds":n,"full_name":text,
//!                   "roles":[role,...],"groups":[name,...],"limits":{...}}},
//!  "groups":{"name":{"description":text,"roles":[role,...]}}}
//! ```
//!
//! In version 1 there are neither roles nor groups, and every user is an administrator.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::credentials::{Credentials, HashedPassword, ITERATIONS_MAX, ITERATIONS_MIN};
use crate::mechanism::HashAlgorithm;
use crate::password_policy::PasswordPolicy;
use crate::registry::{Group, REVISION_MAX, UserAccount, UserRegistry};
use crate::role::Role;
use crate::user_limits::UserLimits;
use crate::users::USER_NAME_SIZE_MAX;

/// The version that is written.
const VERSION: u32 = 2;
/// The oldest version that is read.
const VERSION_MIN: u32 = 1;

/// Why a text is not a users file. The node does not start: a login that cannot be checked must
/// not be let through, and a damaged file must not be overwritten.
#[derive(Debug, thiserror::Error)]
pub enum UsersFileError {
    /// Not JSON, or not of the right form.
    #[error("the users file is malformed: {0}")]
    Malformed(serde_json::Error),
    /// Written by another version of the program.
    #[error("the users file has version {0}, this program reads {VERSION_MIN} to {VERSION}")]
    Version(u32),
    /// Nothing could follow it.
    #[error("the users file has revision {0}, which is above the last one, {REVISION_MAX}")]
    Revision(u64),
    /// A user's or group's entry cannot be right.
    #[error("the entry of {0:?} in the users file is not sound")]
    Unsound(String),
    /// A user or group has a role that there is not, or not in such a place.
    #[error(
        "the entry of {entry:?} in the users file has the role {role:?}, which this program does \
         not know; start the version that wrote it, or take the role out of the file"
    )]
    UnknownRole {
        /// Whose entry.
        entry: String,
        /// The role as it is written there.
        role: String,
    },
    /// The secret behind what is made up for unknown names cannot be right.
    #[error("the decoy secret is not sound")]
    UnsoundSecret,
}

/// What every version says of itself, whatever else is in it.
#[derive(Deserialize)]
struct VersionJson {
    version: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsersJson {
    version: u32,
    #[serde(default)]
    revision: u64,
    /// 32 bytes; missing in files of before, until the next password is set.
    #[serde(default)]
    decoy_secret: Option<String>,
    #[serde(default)]
    policy: PasswordPolicy,
    users: BTreeMap<String, UserJson>,
    #[serde(default)]
    groups: BTreeMap<String, GroupJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UserJson {
    sha1: HashedJson,
    sha256: HashedJson,
    sha512: HashedJson,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password_set_seconds: Option<u64>,
    #[serde(default)]
    full_name: String,
    /// Missing in version 1.
    #[serde(default)]
    roles: Option<Vec<String>>,
    #[serde(default)]
    groups: Vec<String>,
    /// Left out where there is none, so that older programs read the file.
    #[serde(default, skip_serializing_if = "UserLimits::is_none")]
    limits: UserLimits,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct GroupJson {
    description: String,
    roles: Vec<String>,
    /// Left out where there is none, so that older programs read the file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    ldap_group_ref: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HashedJson {
    salt: String,
    iterations: u32,
    stored_key: String,
    server_key: String,
}

impl UserRegistry {
    /// All users and groups as a text. It has no passwords, but who reads it can try to guess them.
    pub fn to_json(&self) -> String {
        let users = self.accounts.iter();
        let groups = self.groups.iter();
        let file = UsersJson {
            version: VERSION,
            revision: self.revision,
            decoy_secret: Some(STANDARD.encode(self.decoy_secret)),
            policy: self.policy,
            users: users.map(|(name, user)| (name.clone(), UserJson::from(&**user))).collect(),
            groups: groups.map(|(name, group)| (name.clone(), GroupJson::from(&**group))).collect(),
        };
        serde_json::to_string_pretty(&file).expect("names and numbers are always JSON")
    }

    /// Reads such a text.
    ///
    /// # Errors
    /// See [`UsersFileError`].
    pub fn from_json(text: &str) -> Result<Self, UsersFileError> {
        let VersionJson { version } =
            serde_json::from_str(text).map_err(UsersFileError::Malformed)?;
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(UsersFileError::Version(version));
        }
        let file: UsersJson = serde_json::from_str(text).map_err(UsersFileError::Malformed)?;
        if file.revision > REVISION_MAX {
            return Err(UsersFileError::Revision(file.revision));
        }
        let mut registry = Self { revision: file.revision, policy: file.policy, ..Self::default() };
        for (name, group) in file.groups {
            check_roles(&name, &group.roles)?;
            match group.to_group().filter(|_| is_name(&name)) {
                Some(group) => registry.groups.insert(name, Arc::new(group)),
                None => return Err(UsersFileError::Unsound(name)),
            };
        }
        let is_first_version = file.version == VERSION_MIN;
        for (name, user) in file.users {
            check_roles(&name, user.roles.as_deref().unwrap_or_default())?;
            match user.to_account(is_first_version).filter(|_| is_name(&name)) {
                Some(account) => registry.accounts.insert(name, Arc::new(account)),
                None => return Err(UsersFileError::Unsound(name)),
            };
        }
        if let Some(secret) = file.decoy_secret {
            let secret = STANDARD.decode(secret).ok().and_then(|bytes| bytes.try_into().ok());
            registry.decoy_secret = secret.ok_or(UsersFileError::UnsoundSecret)?;
        }
        Ok(registry)
    }

    /// The same, where `before` was: it goes on counting, and has its secret if there is none.
    pub(crate) fn continuing(mut self, before: &Self) -> Self {
        self.revision = self.revision.max(before.revision);
        if self.decoy_secret == [0; 32] {
            self.decoy_secret = before.decoy_secret;
        }
        self
    }

    /// Whether it counts, and not `other`. Of two that differ exactly one does, unless both were
    /// never changed.
    pub fn counts_more_than(&self, other: &Self) -> bool {
        let revisions = self.revision.cmp(&other.revision);
        let is_changed = self.revision > 0;
        is_changed && revisions.then_with(|| self.to_json().cmp(&other.to_json())).is_gt()
    }
}

fn is_name(name: &str) -> bool {
    (1..=USER_NAME_SIZE_MAX).contains(&name.len())
}

/// Refuses roles that nobody can be given, by their names: whoever mends the file has to find them.
fn check_roles(entry: &str, texts: &[String]) -> Result<(), UsersFileError> {
    match texts.iter().find(|text| Role::parse(text).is_none()) {
        Some(role) => {
            Err(UsersFileError::UnknownRole { entry: entry.to_owned(), role: role.clone() })
        }
        None => Ok(()),
    }
}

fn roles_from(texts: &[String]) -> Option<Vec<Role>> {
    texts.iter().map(|text| Role::parse(text)).collect()
}

fn roles_to(roles: &[Role]) -> Vec<String> {
    roles.iter().map(Role::to_string).collect()
}

impl From<&Group> for GroupJson {
    fn from(group: &Group) -> Self {
        let Group { description, roles, ldap_group_ref } = group.clone();
        Self { description, roles: roles_to(&roles), ldap_group_ref }
    }
}

impl GroupJson {
    fn to_group(&self) -> Option<Group> {
        let roles = roles_from(&self.roles)?;
        let Self { description, ldap_group_ref, .. } = self;
        Some(Group {
            description: description.clone(),
            roles,
            ldap_group_ref: ldap_group_ref.clone(),
        })
    }
}

impl From<&UserAccount> for UserJson {
    fn from(account: &UserAccount) -> Self {
        let credentials = &account.credentials;
        Self {
            sha1: HashedJson::from(&credentials.sha1),
            sha256: HashedJson::from(&credentials.sha256),
            sha512: HashedJson::from(&credentials.sha512),
            password_set_seconds: account.password_set_seconds,
            full_name: account.full_name.clone(),
            roles: Some(roles_to(&account.roles)),
            groups: account.groups.clone(),
            limits: account.limits,
        }
    }
}

impl UserJson {
    fn to_account(&self, is_first_version: bool) -> Option<UserAccount> {
        let roles = match &self.roles {
            Some(roles) => roles_from(roles)?,
            None if is_first_version => vec![Role::admin()],
            None => return None,
        };
        let credentials = Credentials {
            sha1: self.sha1.to_hashed(HashAlgorithm::Sha1)?,
            sha256: self.sha256.to_hashed(HashAlgorithm::Sha256)?,
            sha512: self.sha512.to_hashed(HashAlgorithm::Sha512)?,
        };
        Some(UserAccount {
            credentials: Arc::new(credentials),
            password_set_seconds: self.password_set_seconds,
            full_name: self.full_name.clone(),
            roles,
            groups: self.groups.clone(),
            limits: self.limits,
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
    use crate::registry::{Editor, UsersEdit};
    use crate::users::{Users, UsersConfig};

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
        assert_eq!(after.replace_from_json(&text).unwrap(), 2);
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
        after.replace_from_json(&before.to_json()).unwrap();
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
        assert_eq!(users().replace_from_json(&before.to_json().replace(&line, "")).unwrap(), 1);
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
            after.replace_from_json(&text).unwrap_err()
        };
        assert!(matches!(wrong("\"version\": 2", "\"version\": 3"), UsersFileError::Version(3)));
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

    #[test]
    fn roles_and_groups_survive_the_file() {
        let before = users();
        before.set_password("root", b"secret");
        let roles = Role::parse_all("data_reader[b:s:c],bucket_admin[*]").unwrap();
        let group = Group {
            description: "readers".to_owned(),
            roles: roles.clone(),
            ldap_group_ref: "cn=readers".to_owned(),
        };
        for edit in [
            UsersEdit::PutGroup("g".to_owned(), group),
            UsersEdit::PutUser {
                user: "bob".to_owned(),
                password: Some(before.hash(b"secret", 17)),
                full_name: "Bob".to_owned(),
                roles,
                groups: vec!["g".to_owned()],
                limits: UserLimits::from_json(r#"{"kv":{"num_ops_per_min":7}}"#).unwrap(),
            },
            UsersEdit::SetPolicy(PasswordPolicy { length_min: 9, ..PasswordPolicy::default() }),
        ] {
            before.edit(&edit, Editor::Admin).unwrap();
        }
        let after = users();
        after.replace_from_json(&before.to_json()).unwrap();
        let (before, after) = (before.registry(), after.registry());
        assert_eq!(after.accounts, before.accounts);
        assert_eq!(after.groups, before.groups);
        assert_eq!((after.policy, after.revision), (before.policy, before.revision));
    }

    #[test]
    fn a_role_that_there_is_not_is_named_with_whose_it_is() {
        let users = users();
        users.set_password("bob", b"secret");
        let group = Group { roles: vec![Role::admin()], ..Group::default() };
        users.edit(&UsersEdit::PutGroup("g".to_owned(), group), Editor::Admin).unwrap();
        let file: serde_json::Value = serde_json::from_str(&users.to_json()).unwrap();
        for (kind, entry) in [("users", "bob"), ("groups", "g")] {
            for role in ["no_such_role", "bucket_admin", "admin[b]"] {
                let mut file = file.clone();
                file[kind][entry]["roles"] = serde_json::json!(["ro_admin", role]);
                let error = UserRegistry::from_json(&file.to_string()).unwrap_err().to_string();
                let said =
                    format!("the entry of {entry:?} in the users file has the role {role:?}");
                assert!(error.starts_with(&said), "{error}");
            }
        }
    }

    #[test]
    fn a_revision_that_nothing_could_follow_is_refused_and_behind_the_last_nothing_changes() {
        let users = users();
        users.set_password("bob", b"secret");
        let mut file: serde_json::Value = serde_json::from_str(&users.to_json()).unwrap();
        for (revision, is_taken) in
            [(u64::MAX, false), (REVISION_MAX + 1, false), (REVISION_MAX, true)]
        {
            file["revision"] = revision.into();
            let taken = users.replace_from_json(&file.to_string());
            assert_eq!(taken.is_ok(), is_taken, "{revision}");
        }
        let edit = UsersEdit::RemoveUser("bob".to_owned());
        let refused = users.edit(&edit, Editor::Admin);
        assert!(matches!(refused, Err(crate::UsersEditError::Failed(_))), "{refused:?}");
        // A start does change them.
        users.set_password("bob", b"another");
        let written = users.to_json();
        assert!(users.check_password("bob", b"another"));
        assert_eq!(UserRegistry::from_json(&written).unwrap().revision, REVISION_MAX);
    }

    #[test]
    fn in_a_file_of_the_first_version_everybody_is_an_administrator() {
        let before = users();
        before.set_password("bob", b"secret");
        let mut file: serde_json::Value = serde_json::from_str(&before.to_json()).unwrap();
        file["version"] = 1.into();
        for name in ["revision", "policy", "groups"] {
            file.as_object_mut().unwrap().remove(name);
        }
        for name in ["roles", "groups", "full_name"] {
            file["users"]["bob"].as_object_mut().unwrap().remove(name);
        }
        let after = users();
        after.replace_from_json(&file.to_string()).unwrap();
        assert!(after.registry().is_admin("bob") && after.check_password("bob", b"secret"));
        file["version"] = 2.into();
        let error = after.replace_from_json(&file.to_string()).unwrap_err();
        assert!(matches!(error, UsersFileError::Unsound(_)), "roles are never made up");
    }
}
