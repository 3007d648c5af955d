//! What is known of the answer to a durable write before that has ended.

use document::Datatype;
use protocol::Status;

/// What a durable write that has begun answers with once it is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnownAnswer {
    /// Nothing but that.
    Committed,
    /// The number that a counter has.
    Number(u64),
    /// What has become of parts of a document.
    Paths(Box<PathsAnswer>),
}

/// The answer to a change of parts of a document, but for the place in history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathsAnswer {
    pub(crate) status: Status,
    pub(crate) datatype: Datatype,
    pub(crate) value: Vec<u8>,
}
