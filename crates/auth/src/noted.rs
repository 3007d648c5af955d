//! What an audit log has a line about, beside what comes over REST.

use std::net::IpAddr;

/// Who does something, and from where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Actor<'a> {
    /// The user, or whoever somebody says to be who could not log in.
    pub user: &'a str,
    /// Where the connection comes from, where that is known.
    pub address: Option<IpAddr>,
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted<'a> {
    /// A login that failed.
    LoginFailed {
        /// At which port: `data` or `rest`.
        door: &'a str,
    },
    /// A change that the data port was asked for by who may.
    Ordered {
        /// The command's name.
        command: &'a str,
        /// What the command names.
        key: &'a [u8],
        /// The bucket that was selected.
        bucket: Option<&'a str>,
        /// The user in whose name it was asked for, if that is another one.
        in_name_of: Option<&'a str>,
    },
}
