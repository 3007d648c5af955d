//! Who is speaking, and what they may do: users, passwords, SASL PLAIN and SCRAM, roles and
//! privileges.
//!
//! Nothing here reads or writes a connection: an [`Exchange`] is given what the client said and
//! answers what to say. Sources: docs/specification/protocol.md, section 8.2; RFC 5802; RFC 7677;
//! RFC 4616.
#![warn(clippy::indexing_slicing)]

mod absent_services;
pub mod access;
mod address_limit;
pub mod client;
pub mod credentials;
pub mod exchange;
pub mod fuzzing;
mod login_line;
pub mod mechanism;
pub mod noted;
pub mod password;
pub mod password_checker;
pub mod password_policy;
pub mod plain;
pub mod privilege;
pub mod registry;
pub mod role;
mod scram;
mod user_limits;
pub mod users;
pub mod users_file;
mod verified_cache;

pub use access::{Access, BucketAccess};
pub use credentials::{Credentials, HashedPassword};
pub use exchange::{Exchange, Outcome};
pub use mechanism::{HashAlgorithm, MECHANISMS, Mechanism};
pub use noted::{Actor, Noted};
pub use password::generate_password;
pub use password_checker::{Asked, Checked, PasswordChecker, TooManyLogins};
pub use password_policy::PasswordPolicy;
pub use plain::PlainAttempt;
pub use privilege::{Privilege, PrivilegeSet};
pub use registry::{
    Editor, Group, NewPassword, UserAccount, UserRegistry, UsersEdit, UsersEditError,
};
pub use role::{Role, RoleExtent, RoleKind, RolePlace, all_roles};
pub use user_limits::UserLimits;
pub use users::{Users, UsersConfig, UsersKeeper};
pub use users_file::UsersFileError;
