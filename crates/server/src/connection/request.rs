//! One request, checked as far as its form goes.

use document::{Cas, Vbid};
use protocol::{Frame, FrameInfos, Opcode};

use super::known_answer::KnownAnswer;

/// A request that is ready to be executed.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    /// The command; of a quiet one, the loud one that does the same.
    pub(crate) opcode: Opcode,
    /// Whether the usual outcome is not answered.
    pub(crate) is_quiet: bool,
    pub(crate) frame: Frame<'a>,
    pub(crate) infos: FrameInfos<'a>,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// It is answered, or needs no answer.
    Answered,
    /// It waits under the session's waiter, to be executed again or answered.
    Parked,
    /// It has happened but for its end, for which it waits under the session's waiter.
    Begun(KnownAnswer),
    /// It was answered, and the connection is to be closed behind the answer.
    Close,
}

impl Request<'_> {
    pub(crate) fn vbid(&self) -> Vbid {
        Vbid(self.frame.header.vbucket_or_status)
    }

    pub(crate) fn cas(&self) -> Cas {
        Cas(self.frame.header.cas)
    }
}
