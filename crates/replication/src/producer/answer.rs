//! What a producer answers.

use document::Seqno;
use protocol::Status;

/// What is answered to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Success.
    Done,
    /// Success, with this value.
    Value(Vec<u8>),
    /// The consumer has to roll back to this seqno.
    Rollback(Seqno),
    /// A failure, and what a person reads.
    Fail(Status, &'static str),
    /// The filter names a collection that there is not.
    UnknownCollection,
    /// The filter names a scope that there is not.
    UnknownScope,
    /// Nothing: the message is not answered.
    Nothing,
    /// The connection is to be closed, for this reason.
    Close(&'static str),
}
