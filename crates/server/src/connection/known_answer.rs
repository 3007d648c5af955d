//! What is known of the answer to a durable write before that has ended.

use document::{Cas, Datatype};
use protocol::Status;

/// What a durable write that has begun answers with once it is committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnownAnswer {
    /// Nothing but that.
    Committed,
    /// The same of a deletion, to a classic memcached client: those insist on no CAS behind one.
    Deleted,
    /// The number that a counter has.
    Number(u64),
    /// What has become of parts of a document.
    Paths(Box<PathsAnswer>),
}

/// What is known of a request of the text protocol that has begun, beside its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownOfLine {
    /// Nothing.
    Nothing,
    /// A counter is changed.
    Counted {
        /// The number that it has.
        number: u64,
        /// The version that this was computed from; `None` for a counter that is new.
        computed_from: Option<Cas>,
    },
    /// The version whose place an older one takes: what is stored is stale.
    Overtaken(Cas),
    /// Something is added to a document, whose body then has so many bytes.
    Added(usize),
}

impl KnownOfLine {
    /// The number that a counter has.
    pub(crate) fn number(self) -> Option<u64> {
        match self {
            Self::Counted { number, .. } => Some(number),
            Self::Nothing | Self::Overtaken(_) | Self::Added(_) => None,
        }
    }

    /// The version that a counter was computed from.
    pub(crate) fn computed_from(self) -> Option<Cas> {
        match self {
            Self::Counted { computed_from, .. } => computed_from,
            Self::Nothing | Self::Overtaken(_) | Self::Added(_) => None,
        }
    }

    /// Bytes of the body that something is added to, with that.
    pub(crate) fn body_size(self) -> Option<usize> {
        match self {
            Self::Added(size) => Some(size),
            Self::Nothing | Self::Counted { .. } | Self::Overtaken(_) => None,
        }
    }
}

/// The answer to a change of parts of a document, but for the place in history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathsAnswer {
    pub(crate) status: Status,
    pub(crate) datatype: Datatype,
    pub(crate) value: Vec<u8>,
}
