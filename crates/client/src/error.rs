//! What goes wrong between a client and its server, sorted by what the caller does about it.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use protocol::Status;

/// Why a call has no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there, or the host has no address. Callers try another node or give up.
    #[error("cannot connect to {address}: {cause}")]
    Unreachable {
        /// Host and port.
        address: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The connection has ended. Callers connect again; whether the requests that were under way
    /// took place is unknown.
    #[error("the connection to {address} is lost: {cause}")]
    Lost {
        /// Host and port.
        address: String,
        /// What the system said.
        cause: io::Error,
    },
    /// The server has not answered in time. Callers treat it as [`ClientError::Lost`].
    #[error("{address} has not answered within {timeout:?}")]
    TimedOut {
        /// Host and port.
        address: String,
        /// How long the client waited.
        timeout: Duration,
    },
    /// The server said no. Callers tell the user; the same request gets the same answer.
    #[error("{address} refused {operation}: {}{context}", status_name(*status))]
    Refused {
        /// Host and port.
        address: String,
        /// The command's name.
        operation: &'static str,
        /// The status on the wire; see [`status_name`].
        status: u16,
        /// What the server added, behind a colon; may be empty.
        context: String,
    },
    /// Client and server do not trust each other. Callers tell the user.
    #[error("login at {address} failed: {cause}")]
    Login {
        /// Host and port.
        address: String,
        /// What was wrong.
        cause: auth::client::ScramClientError,
    },
    /// What came is not the protocol. Callers close the connection: it is a bug, or the port
    /// belongs to something else.
    #[error("{address} does not speak the protocol: {reason}")]
    Nonsense {
        /// Host and port.
        address: String,
        /// What was wrong.
        reason: String,
    },
}

impl ClientError {
    /// The status with which the server refused, if it did.
    pub fn refusal(&self) -> Option<Status> {
        match self {
            Self::Refused { status, .. } => Status::from_code(*status),
            _ => None,
        }
    }

    pub(crate) fn from_io(address: &str, timeout: Duration, cause: io::Error) -> Self {
        let address = address.to_owned();
        match cause.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Self::TimedOut { address, timeout }
            }
            _ => Self::Lost { address, cause },
        }
    }
}

/// The name of a status as people know it, or its number in hexadecimal.
pub fn status_name(code: u16) -> Cow<'static, str> {
    match Status::from_code(code) {
        Some(status) => Cow::Borrowed(status.name()),
        None => Cow::Owned(format!("0x{code:02x}")),
    }
}
