//! All users and groups at one moment, and how a change makes the next of it.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use crate::access::Access;
use crate::credentials::Credentials;
use crate::password_policy::PasswordPolicy;
use crate::role::{Role, RolePlace};
use crate::user_limits::UserLimits;
use crate::users::USER_NAME_SIZE_MAX;

/// Users, and as many groups, that there may be.
pub const USERS_MAX: usize = 10_000;
/// Roles that one of them may have.
pub const ROLES_PER_USER_MAX: usize = 1_000;
/// Bytes of all of them as JSON: nodes give them to each other in one piece.
const REGISTRY_BYTES_MAX: usize = 15 << 20;
/// The last revision: that of a text from elsewhere is no higher, and each change has another one.
pub(crate) const REVISION_MAX: u64 = u64::MAX / 2;
/// Bytes of what is said of a user or group for people.
const DESCRIPTION_SIZE_MAX: usize = 1_024;

/// All users and groups. Of two that differ the one with the greater revision counts.
#[derive(Clone, Default)]
pub struct UserRegistry {
    /// Counts the changes.
    pub revision: u64,
    /// What new passwords must have.
    pub policy: PasswordPolicy,
    /// What is made up for names that nobody has comes from it.
    pub(crate) decoy_secret: [u8; 32],
    /// By name.
    pub accounts: BTreeMap<String, Arc<UserAccount>>,
    /// By name.
    pub groups: BTreeMap<String, Arc<Group>>,
}

/// It has secrets, and is shown without.
impl Debug for UserRegistry {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("UserRegistry");
        shown.field("revision", &self.revision).field("accounts", &self.accounts);
        shown.field("groups", &self.groups).finish_non_exhaustive()
    }
}

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserAccount {
    /// What is kept of the password.
    pub credentials: Arc<Credentials>,
    /// When it was set last, in seconds since 1970, if that is known.
    pub password_set_seconds: Option<u64>,
    /// The name for people.
    pub full_name: String,
    /// The user's own roles.
    pub roles: Vec<Role>,
    /// The groups that it belongs to, by name.
    pub groups: Vec<String>,
    /// What it may take of each node.
    pub limits: UserLimits,
}

/// A group: whoever belongs to it has its roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// What it is for, for people.
    pub description: String,
    /// Its roles.
    pub roles: Vec<Role>,
    /// The group of a directory (LDAP) that it stands for, empty if none: kept for programs that
    /// manage it, as no directory is asked.
    pub ldap_group_ref: String,
}

/// A password that is to be set: hashed already, which takes milliseconds.
#[derive(Clone, Debug)]
pub struct NewPassword {
    /// What is kept of it.
    pub credentials: Arc<Credentials>,
    /// When, in seconds since 1970.
    pub set_seconds: u64,
}

/// One change.
#[derive(Clone, Debug)]
pub enum UsersEdit {
    /// A user comes, or becomes another one.
    PutUser {
        /// Its name.
        user: String,
        /// Its password; `None` leaves it.
        password: Option<NewPassword>,
        /// See [`UserAccount::full_name`].
        full_name: String,
        /// See [`UserAccount::roles`].
        roles: Vec<Role>,
        /// See [`UserAccount::groups`].
        groups: Vec<String>,
        /// See [`UserAccount::limits`].
        limits: UserLimits,
    },
    /// A user goes.
    RemoveUser(String),
    /// A user's password becomes another one.
    SetPassword(String, NewPassword),
    /// A group comes, or becomes another one.
    PutGroup(String, Group),
    /// A group goes, also from its users.
    RemoveGroup(String),
    /// Buckets, scopes or collections are gone, and with them all roles in them: the next one of a
    /// name is another one.
    RemoveRolesIn(Vec<RolePlace>),
    /// New passwords have to be of another kind.
    SetPolicy(PasswordPolicy),
}

/// Who asks for a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Editor {
    /// Somebody who may change everybody.
    Admin,
    /// Somebody who may neither change nor make administrators.
    Other,
}

/// Why nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsersEditError {
    /// There is no such user.
    NoUser,
    /// There is no such group.
    NoGroup,
    /// Only administrators change administrators.
    NotAllowed,
    /// A field is wrong: which, and why, for people.
    Invalid(&'static str, String),
    /// It could not be kept, or others keep changing it: clients may try again.
    Failed(String),
}

impl UserRegistry {
    /// What a user may do; `None` if there is no such user.
    pub fn access(&self, user: &str) -> Option<Access> {
        let account = self.accounts.get(user)?;
        Some(Access::of(self.roles_of(account)))
    }

    /// All roles of a user, those of its groups included.
    pub fn roles_of<'a>(&'a self, account: &'a UserAccount) -> impl Iterator<Item = &'a Role> {
        let groups = account.groups.iter().filter_map(|name| self.groups.get(name));
        account.roles.iter().chain(groups.flat_map(|group| &group.roles))
    }

    /// Whether this user may do everything.
    pub fn is_admin(&self, user: &str) -> bool {
        let account = self.accounts.get(user);
        account.is_some_and(|account| self.roles_of(account).any(Role::is_admin))
    }

    /// Whether a user or a group has a role in this place by its name.
    pub fn has_roles_in(&self, place: &RolePlace) -> bool {
        let of_users = self.accounts.values().flat_map(|account| &account.roles);
        let of_groups = self.groups.values().flat_map(|group| &group.roles);
        of_users.chain(of_groups).any(|role| role.is_in(place))
    }

    /// The registry behind a change.
    ///
    /// # Errors
    /// See [`UsersEditError`].
    pub fn edited(&self, edit: &UsersEdit, editor: Editor) -> Result<Self, UsersEditError> {
        let mut next = self.clone();
        if next.revision >= REVISION_MAX {
            return Err(UsersEditError::Failed(
                "All revisions of the users are used up".to_owned(),
            ));
        }
        next.revision += 1;
        next.apply(edit)?;
        if next.to_json().len() > REGISTRY_BYTES_MAX {
            let why = "There are as many users, groups and roles as may be".to_owned();
            return Err(UsersEditError::Invalid("_", why));
        }
        if editor == Editor::Other && next.changes_admins_of(self) {
            return Err(UsersEditError::NotAllowed);
        }
        // A registry without an administrator stays changeable: only the last one may not go.
        let had_admin = self.accounts.keys().any(|user| self.is_admin(user));
        if had_admin && !next.accounts.keys().any(|user| next.is_admin(user)) {
            let why = "There must be a user with the role admin".to_owned();
            return Err(UsersEditError::Invalid("roles", why));
        }
        Ok(next)
    }

    /// The same, changed by a start. What was never changed but by starts counts for no other node:
    /// each has its own.
    pub(crate) fn behind_start(mut self) -> Self {
        self.revision += u64::from((1..REVISION_MAX).contains(&self.revision));
        self
    }

    /// The same, with the very credentials of `before` where they are equal: logins that are under
    /// way compare them.
    pub(crate) fn sharing_with(mut self, before: &Self) -> Self {
        for (user, account) in &mut self.accounts {
            let Some(known) = before.accounts.get(user) else { continue };
            let is_same = Arc::ptr_eq(&known.credentials, &account.credentials);
            if !is_same && known.credentials == account.credentials {
                Arc::make_mut(account).credentials = Arc::clone(&known.credentials);
            }
        }
        self
    }

    fn apply(&mut self, edit: &UsersEdit) -> Result<(), UsersEditError> {
        match edit {
            UsersEdit::PutUser { user, password, full_name, roles, groups, limits } => {
                let mut account =
                    self.put_account(user, password.as_ref(), full_name, roles, groups)?;
                account.limits = *limits;
                self.accounts.insert(user.clone(), Arc::new(account));
                check_count(self.accounts.len())
            }
            UsersEdit::RemoveUser(user) => {
                self.accounts.remove(user).map(drop).ok_or(UsersEditError::NoUser)
            }
            UsersEdit::SetPassword(user, password) => {
                let account = self.accounts.get_mut(user).ok_or(UsersEditError::NoUser)?;
                Arc::make_mut(account).set_password(password);
                Ok(())
            }
            UsersEdit::PutGroup(name, group) => {
                check_name("name", name)?;
                check_text("description", &group.description)?;
                check_text("ldap_group_ref", &group.ldap_group_ref)?;
                check_roles(&group.roles)?;
                self.groups.insert(name.clone(), Arc::new(group.clone()));
                check_count(self.groups.len())
            }
            UsersEdit::RemoveGroup(name) => {
                self.groups.remove(name).ok_or(UsersEditError::NoGroup)?;
                for account in self.accounts.values_mut() {
                    if account.groups.contains(name) {
                        Arc::make_mut(account).groups.retain(|group| group != name);
                    }
                }
                Ok(())
            }
            UsersEdit::RemoveRolesIn(places) => {
                let is_left = |role: &Role| !places.iter().any(|place| role.is_in(place));
                for account in self.accounts.values_mut() {
                    if !account.roles.iter().all(is_left) {
                        Arc::make_mut(account).roles.retain(is_left);
                    }
                }
                for group in self.groups.values_mut() {
                    if !group.roles.iter().all(is_left) {
                        Arc::make_mut(group).roles.retain(is_left);
                    }
                }
                Ok(())
            }
            UsersEdit::SetPolicy(policy) => {
                self.policy = *policy;
                Ok(())
            }
        }
    }

    fn put_account(
        &self,
        user: &str,
        password: Option<&NewPassword>,
        full_name: &str,
        roles: &[Role],
        groups: &[String],
    ) -> Result<UserAccount, UsersEditError> {
        check_name("username", user)?;
        check_text("name", full_name)?;
        check_roles(roles)?;
        let unknown: Vec<&str> =
            groups.iter().filter(|name| !self.groups.contains_key(*name)).map(|it| &**it).collect();
        if !unknown.is_empty() {
            let why = format!("Groups do not exist: {}", unknown.join(","));
            return Err(UsersEditError::Invalid("groups", why));
        }
        let before = self.accounts.get(user);
        let mut account = match (before, password) {
            (Some(before), _) => UserAccount::clone(before),
            (None, Some(password)) => UserAccount::new(Arc::clone(&password.credentials)),
            (None, None) => {
                let why = "Password is required for new user.".to_owned();
                return Err(UsersEditError::Invalid("password", why));
            }
        };
        if let Some(password) = password {
            account.set_password(password);
        }
        full_name.clone_into(&mut account.full_name);
        account.roles = roles.to_vec();
        account.groups = groups.to_vec();
        Ok(account)
    }

    /// Whether a user who may do everything, now or before, is another one than before.
    fn changes_admins_of(&self, before: &Self) -> bool {
        let mut users = self.accounts.keys().chain(before.accounts.keys());
        users.any(|user| {
            let is_admin = self.is_admin(user) || before.is_admin(user);
            let (now, then) = (self.accounts.get(user), before.accounts.get(user));
            is_admin && (now != then || self.is_admin(user) != before.is_admin(user))
        }) || self.admin_groups() != before.admin_groups()
    }

    fn admin_groups(&self) -> Vec<(&String, &Group)> {
        let groups = self.groups.iter().map(|(name, group)| (name, &**group));
        groups.filter(|(_, group)| group.roles.iter().any(Role::is_admin)).collect()
    }
}

impl UserAccount {
    /// A user without any role.
    pub(crate) fn new(credentials: Arc<Credentials>) -> Self {
        Self {
            credentials,
            password_set_seconds: None,
            full_name: String::new(),
            roles: Vec::new(),
            groups: Vec::new(),
            limits: UserLimits::default(),
        }
    }

    fn set_password(&mut self, password: &NewPassword) {
        self.credentials = Arc::clone(&password.credentials);
        self.password_set_seconds = Some(password.set_seconds);
    }
}

/// Names stand in forms, lists and URLs; the original refuses the same characters.
fn check_name(field: &'static str, name: &str) -> Result<(), UsersEditError> {
    let is_sound = (1..=USER_NAME_SIZE_MAX).contains(&name.len())
        && !name.starts_with('@')
        && !name.chars().any(|it| it.is_control() || " ()<>,;:\\\"/[]?={}".contains(it));
    let why = "The name must have 1 to 128 bytes, not begin with @, and not contain spaces, \
               control characters or any of ()<>,;:\\\"/[]?={}";
    if is_sound { Ok(()) } else { Err(UsersEditError::Invalid(field, why.to_owned())) }
}

fn check_text(field: &'static str, text: &str) -> Result<(), UsersEditError> {
    if text.len() <= DESCRIPTION_SIZE_MAX && !text.chars().any(char::is_control) {
        return Ok(());
    }
    let why = format!("At most {DESCRIPTION_SIZE_MAX} bytes, and no control characters");
    Err(UsersEditError::Invalid(field, why))
}

fn check_roles(roles: &[Role]) -> Result<(), UsersEditError> {
    if roles.len() <= ROLES_PER_USER_MAX {
        return Ok(());
    }
    let why = format!("There may be at most {ROLES_PER_USER_MAX} roles");
    Err(UsersEditError::Invalid("roles", why))
}

fn check_count(count: usize) -> Result<(), UsersEditError> {
    if count <= USERS_MAX {
        return Ok(());
    }
    Err(UsersEditError::Invalid("_", format!("There are {USERS_MAX} already, as many as may be")))
}

#[cfg(test)]
mod tests {
    use platform::Entropy;

    use super::*;
    use crate::privilege::Privilege;

    fn password() -> NewPassword {
        let credentials = Arc::new(Credentials::new(b"secret", 0, &Entropy::real()));
        NewPassword { credentials, set_seconds: 5 }
    }

    fn user(name: &str, roles: &str, groups: &[&str]) -> UsersEdit {
        UsersEdit::PutUser {
            user: name.to_owned(),
            password: Some(password()),
            full_name: String::new(),
            roles: Role::parse_all(roles).unwrap(),
            groups: groups.iter().map(|&name| name.to_owned()).collect(),
            limits: UserLimits::default(),
        }
    }

    fn group(name: &str, roles: &str) -> UsersEdit {
        let roles = Role::parse_all(roles).unwrap();
        UsersEdit::PutGroup(name.to_owned(), Group { roles, ..Group::default() })
    }

    fn after(edits: &[UsersEdit]) -> UserRegistry {
        edits.iter().fold(UserRegistry::default(), |registry, edit| {
            registry.edited(edit, Editor::Admin).unwrap()
        })
    }

    #[test]
    fn a_user_has_its_own_roles_and_those_of_its_groups() {
        let registry = after(&[group("g", "data_reader[b]"), user("u", "data_writer[b]", &["g"])]);
        let access = registry.access("u").unwrap().in_bucket("b").everywhere;
        assert!(access.contains(Privilege::Read) && access.contains(Privilege::Upsert));
        assert_eq!(registry.revision, 2);
        let without = registry.edited(&UsersEdit::RemoveGroup("g".to_owned()), Editor::Admin);
        let without = without.unwrap();
        assert!(!without.access("u").unwrap().in_bucket("b").everywhere.contains(Privilege::Read));
        assert!(without.accounts["u"].groups.is_empty());
        assert_eq!(registry.access("v"), None);
    }

    #[test]
    fn with_a_place_go_the_roles_in_it_and_no_others() {
        const ALL: [&str; 6] = [
            "data_reader[b]",
            "data_reader[c:s:d]",
            "scope_admin[b:s]",
            "data_writer[b:s:d]",
            "bucket_admin[*]",
            "ro_admin",
        ];
        let registry = after(&[group("g", &ALL.join(",")), user("u", &ALL.join(","), &["g"])]);
        for (scope, collection, left) in [
            (None, None, &[1, 4, 5][..]),
            (Some("s"), None, &[0, 1, 4, 5]),
            (Some("s"), Some("d"), &[0, 1, 2, 4, 5]),
            (Some("s"), Some("e"), &[0, 1, 2, 3, 4, 5]),
            (Some("t"), Some("d"), &[0, 1, 2, 3, 4, 5]),
        ] {
            let [scope, collection] = [scope, collection].map(|name| name.map(str::to_owned));
            let place = RolePlace { bucket: "b".to_owned(), scope, collection };
            assert_eq!(registry.has_roles_in(&place), left.len() < ALL.len(), "{place:?}");
            let edit = UsersEdit::RemoveRolesIn(vec![place]);
            let without = registry.edited(&edit, Editor::Admin).unwrap();
            let left: Vec<_> = left.iter().map(|at| Role::parse(ALL[*at]).unwrap()).collect();
            assert_eq!(without.accounts["u"].roles, left, "{edit:?}");
            assert_eq!(without.groups["g"].roles, left, "{edit:?}");
            assert_eq!(without.accounts["u"].groups, ["g"]);
        }
    }

    #[test]
    fn what_cannot_be_is_refused_and_says_which_field_is_wrong() {
        let registry = after(&[user("root", "admin", &[])]);
        let no_password = UsersEdit::PutUser {
            user: "new".to_owned(),
            password: None,
            full_name: String::new(),
            roles: Vec::new(),
            groups: Vec::new(),
            limits: UserLimits::default(),
        };
        for (edit, field) in [
            (no_password, "password"),
            (user("", "", &[]), "username"),
            (user("a/b", "", &[]), "username"),
            (user("@a", "", &[]), "username"),
            (user("u", "", &["none"]), "groups"),
            (user("root", "ro_admin", &[]), "roles"),
            (UsersEdit::RemoveUser("root".to_owned()), "roles"),
            (group("a b", ""), "name"),
        ] {
            let error = registry.edited(&edit, Editor::Admin).unwrap_err();
            assert!(matches!(error, UsersEditError::Invalid(it, _) if it == field), "{error:?}");
        }
        let nobody = "nobody".to_owned();
        for (edit, expected) in [
            (UsersEdit::RemoveUser(nobody.clone()), UsersEditError::NoUser),
            (UsersEdit::SetPassword(nobody.clone(), password()), UsersEditError::NoUser),
            (UsersEdit::RemoveGroup(nobody), UsersEditError::NoGroup),
        ] {
            assert_eq!(registry.edited(&edit, Editor::Admin).unwrap_err(), expected);
        }
    }

    #[test]
    fn who_is_no_administrator_makes_none_and_changes_none() {
        let registry = after(&[
            group("admins", "admin"),
            user("root", "admin", &[]),
            user("bob", "", &["admins"]),
            user("eve", "security_admin", &[]),
        ]);
        for edit in [
            user("eve", "admin", &[]),
            user("eve", "", &["admins"]),
            group("new", "admin"),
            group("admins", ""),
            UsersEdit::RemoveGroup("admins".to_owned()),
            UsersEdit::RemoveUser("bob".to_owned()),
            UsersEdit::SetPassword("root".to_owned(), password()),
            UsersEdit::SetPassword("bob".to_owned(), password()),
        ] {
            let refused = registry.edited(&edit, Editor::Other).unwrap_err();
            assert_eq!(refused, UsersEditError::NotAllowed, "{edit:?}");
        }
        assert!(registry.edited(&user("u", "data_reader[*]", &[]), Editor::Other).is_ok());
        let own = UsersEdit::SetPassword("eve".to_owned(), password());
        assert!(registry.edited(&own, Editor::Other).is_ok());
    }
}
