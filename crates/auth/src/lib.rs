//! Who is speaking: users, their passwords, SASL PLAIN and SCRAM.
//!
//! Nothing here reads or writes a connection: an [`Exchange`] is given what the client said and
//! answers what to say. Sources: docs/specification/protocol.md, section 8.2; RFC 5802; RFC 7677;
//! RFC 4616.
#![warn(clippy::indexing_slicing)]

pub mod client;
pub mod credentials;
pub mod exchange;
pub mod fuzzing;
pub mod mechanism;
pub mod password;
pub mod password_checker;
pub mod plain;
mod scram;
pub mod users;
pub mod users_file;
mod verified_cache;

pub use credentials::{Credentials, HashedPassword};
pub use exchange::{Exchange, Outcome};
pub use mechanism::{HashAlgorithm, MECHANISMS, Mechanism};
pub use password::generate_password;
pub use password_checker::{Asked, PasswordChecker, TooManyLogins};
pub use plain::PlainAttempt;
pub use users::{Users, UsersConfig};
pub use users_file::UsersFileError;
