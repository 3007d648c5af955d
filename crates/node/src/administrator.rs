//! Who may log in: the users of the data directory, and the administrator that the start names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use auth::{Credentials, Users, UsersConfig, UsersFileError, UsersKeeper};
use platform::redaction::{Secret, UserData};
use platform::{Entropy, FileErrorKind, Files};

use crate::config::NodeConfig;
use crate::kept_files::KeptFiles;

/// Passwords that are remembered as verified.
const VERIFIED_MAX: usize = 1024;

/// The administrator of a start.
pub(crate) struct Administrator {
    /// The password, if it was said or generated at this start.
    pub(crate) password: Option<String>,
    /// Whether it was generated, and has to be printed.
    pub(crate) password_is_new: bool,
    /// Whether the file of users does not have this password yet.
    pub(crate) is_unkept: bool,
}

/// The users that are kept in `path`, and the administrator. What is there is changed only on
/// purpose: a variable that is left over in an environment is no order. And it is changed by
/// whoever calls, once nothing else keeps the node from starting: a password that was generated,
/// kept and never printed would lock everybody out.
pub(crate) fn open_users(
    files: &dyn Files,
    entropy: &Entropy,
    path: &Path,
    config: &NodeConfig,
) -> anyhow::Result<(Users, Administrator)> {
    let users = Users::new(UsersConfig {
        verified_max: VERIFIED_MAX,
        failed_logins_per_minute_max: config.failed_logins_per_minute_max,
        entropy: entropy.clone(),
        ..UsersConfig::default()
    });
    read_users(files, path, &users)?;
    let is_known = users.credentials(&config.user).is_some();
    let is_said_again =
        |password: &Secret| is_known && users.check_password(&config.user, password.as_bytes());
    let is_as_before = match &config.password {
        Some(password) => is_said_again(password),
        None => is_known && !config.set_password,
    };
    if is_as_before {
        let password = config.password.as_ref().map(|password| password.to_string());
        let before = Administrator { password, password_is_new: false, is_unkept: false };
        return Ok((users, before));
    }
    if !config.set_password && !users.names().is_empty() {
        refuse(&users, is_known, path, config)?;
    }
    let (password, password_is_new) = match &config.password {
        Some(password) => (password.to_string(), false),
        None => (auth::generate_password(entropy), true),
    };
    users.set_password(&config.user, password.as_bytes());
    users.make_admin(&config.user);
    let password = Some(password);
    Ok((users, Administrator { password, password_is_new, is_unkept: true }))
}

/// Gives `users` those that are kept in `path`, if any are.
fn read_users(files: &dyn Files, path: &Path, users: &Users) -> anyhow::Result<()> {
    let content = match files.read_all(path) {
        Err(error) if error.kind == FileErrorKind::NotFound => return Ok(()),
        content => content?,
    };
    let read = || -> anyhow::Result<usize> {
        let text = std::str::from_utf8(&content).context("it is not text")?;
        Ok(users.replace_from_json(text)?)
    };
    read().map(drop).map_err(|error| {
        let is_of_another_version =
            matches!(error.downcast_ref(), Some(UsersFileError::Version(_)));
        let what = if is_of_another_version {
            "was written by another version; use that version"
        } else {
            "cannot be read; put it back from a copy of the directory, or move it away: a start \
             with --user and --password makes an administrator then, and all other users and \
             groups are gone"
        };
        error.context(format!("{} {what}", path.display()))
    })
}

/// Whether the users that are kept in `path` can be read.
///
/// # Errors
/// They cannot, and keep a node from starting.
pub(crate) fn check_users(files: &dyn Files, path: &Path) -> anyhow::Result<()> {
    read_users(files, path, &Users::new(UsersConfig::default()))
}

/// The file of users.
pub(crate) struct UsersFile {
    pub(crate) kept: Arc<KeptFiles>,
    pub(crate) path: PathBuf,
    pub(crate) said: Option<SaidPassword>,
}

/// The password that this start was told. The next one is told the same, most likely, and is
/// refused if it is not the administrator's any more.
pub(crate) struct SaidPassword {
    user: String,
    credentials: Option<Arc<Credentials>>,
}

impl SaidPassword {
    /// `None` where nobody has said one.
    pub(crate) fn of(config: &NodeConfig, users: &Users) -> Option<Self> {
        config.password.as_ref()?;
        let user = config.user.clone();
        Some(Self { credentials: users.credentials(&user), user })
    }

    /// Whether users that are kept as `text` have another one.
    fn is_refused_by(&self, text: &str) -> bool {
        let users = Users::new(UsersConfig::default());
        users.replace_from_json(text).is_ok() && users.credentials(&self.user) != self.credentials
    }
}

impl UsersKeeper for UsersFile {
    fn save(&self, text: &str) -> Result<(), String> {
        // A start, or whoever has them read again, must not find what was refused.
        let replaced = self.kept.replace(&self.path, text.as_bytes());
        replaced.map_err(|error| format!("The users could not be written: {error}"))?;
        if let Some(said) = self.said.as_ref().filter(|said| said.is_refused_by(text)) {
            let user = UserData(&said.user);
            tracing::warn!(
                %user,
                "the administrator has another password than this start was told; a start that is \
                 told the same is refused: change it in --password-file, --password or \
                 SETTEE_PASSWORD, too"
            );
        }
        Ok(())
    }

    fn load(&self) -> Result<String, String> {
        let content = self.kept.read_all(&self.path).map_err(|error| error.to_string())?;
        String::from_utf8(content).map_err(|_| "the file of users is not text".to_owned())
    }
}

fn refuse(users: &Users, is_known: bool, path: &Path, config: &NodeConfig) -> anyhow::Result<()> {
    let (user, shown) = (&config.user, path.display());
    if is_known {
        bail!(
            "{shown} has another password of `{user}` than --password or SETTEE_PASSWORD; leave \
             that out to keep it, or change it with --set-password"
        );
    }
    bail!(
        "{shown} has no user `{user}`, as --user or SETTEE_USER says, but `{}`; give that name, or \
         add another administrator with --set-password",
        users.names().join("`, `")
    );
}

#[cfg(test)]
mod tests {
    use platform::files::RealFiles;

    use super::*;

    /// What a start with this user, password and `--set-password` says.
    fn start(path: &Path, user: &str, password: Option<&str>, sets: bool) -> anyhow::Result<Users> {
        let config = NodeConfig {
            user: user.to_owned(),
            password: password.map(Into::into),
            set_password: sets,
            ..NodeConfig::default()
        };
        let (users, administrator) = open_users(&RealFiles, &Entropy::real(), path, &config)?;
        if administrator.is_unkept {
            RealFiles.replace_all(path, users.to_json().as_bytes())?;
        }
        Ok(users)
    }

    #[test]
    fn what_a_directory_knows_is_changed_only_on_purpose() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users.json");
        start(&path, "root", Some("old"), false).unwrap();
        for (user, password, names) in [
            ("root", Some("new"), "--set-password"),
            ("bob", Some("old"), "`root`"),
            ("bob", None, "--set-password"),
        ] {
            let before = RealFiles.read_all(&path).unwrap();
            let error = start(&path, user, password, false).err().unwrap().to_string();
            assert!(error.contains(names), "{user} {password:?}: {error}");
            assert_eq!(RealFiles.read_all(&path).unwrap(), before, "{user} {password:?}");
        }
        for (user, password, sets, old_holds) in [
            ("root", None, false, true),
            ("root", Some("old"), false, true),
            ("bob", Some("other"), true, true),
            ("root", Some("new"), true, false),
            ("root", None, true, false),
        ] {
            let users = start(&path, user, password, sets).unwrap();
            assert_eq!(users.check_password("root", b"old"), old_holds, "{user} {password:?}");
            if let Some(password) = password {
                assert!(users.check_password(user, password.as_bytes()), "{user} {password}");
            }
        }
        let users = start(&path, "root", None, false).unwrap();
        assert_eq!(users.names(), ["bob", "root"]);
        assert!(!users.check_password("root", b"new"), "one was generated");
    }

    #[test]
    fn a_password_that_the_next_start_is_refused_with_is_another_one() {
        let config = |password: Option<&str>| NodeConfig {
            user: "root".to_owned(),
            password: password.map(Into::into),
            ..NodeConfig::default()
        };
        let users = Users::new(UsersConfig::default());
        users.set_password("root", b"old");
        users.make_admin("root");
        assert!(SaidPassword::of(&config(None), &users).is_none());
        let said = SaidPassword::of(&config(Some("old")), &users).unwrap();
        assert!(!said.is_refused_by(&users.to_json()));
        users.set_password("bob", b"secret");
        assert!(!said.is_refused_by(&users.to_json()), "it is somebody else's");
        users.set_password("root", b"new");
        assert!(said.is_refused_by(&users.to_json()));
    }

    #[test]
    fn nobody_is_told_to_move_the_users_of_a_newer_version_away() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("users.json");
        for (text, words) in [
            (r#"{"version": 9, "users": {}, "new": 1}"#, "use that version"),
            (r#"{"version": 2, "users": {}, "new": 1}"#, "move it away"),
        ] {
            RealFiles.replace_all(&path, text.as_bytes()).unwrap();
            let refusal = start(&path, "root", None, false).err().unwrap().to_string();
            let told = ["use that version", "move it away"].map(|it| refusal.contains(it));
            assert!(refusal.contains(words) && told != [true; 2], "{refusal}");
        }
    }
}
