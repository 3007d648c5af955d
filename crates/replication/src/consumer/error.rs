//! Why a consumer gives its connection up.

use protocol::FrameError;

/// Why a connection is closed. Whoever owns it opens another one a little later.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConsumerError {
    /// The producer refuses something without which there is no replication.
    #[error("the producer refuses {what}: status {status:#x}")]
    Refused {
        /// What.
        what: &'static str,
        /// The status that it answered with.
        status: u16,
    },
    /// It has another bucket of that name: an earlier one, which was deleted, or a later one.
    #[error("the producer has another bucket of that name")]
    AnotherBucket,
    /// It does not prove that it knows the password.
    #[error("the login does not go on as it should")]
    Login,
    /// It sends what is no frame.
    #[error("the producer sends no frame: {0:?}")]
    Frame(FrameError),
    /// It sends something that has no place here.
    #[error("the producer breaks the rules: {0}")]
    Protocol(&'static str),
    /// It has been silent for too long.
    #[error("the producer is silent")]
    Silent,
}
