//! What becomes of requests of the text protocol, and the answers that say no more than that.

use protocol::text::answer::{self, TextOutcome};
use protocol::text::request::Reply;

use crate::connection::{KnownOfLine, Turn};

/// What became of a request of the text protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Executed {
    /// It is answered, or needs no answer.
    Answered,
    /// It is answered with an error: nothing more of its line is carried out.
    Failed,
    /// It waits under the session's waiter, to be executed again.
    Waits,
    /// It waits under the session's waiter for an end that is answered.
    Ordered,
    /// It has happened but for its end, for which it waits under the session's waiter.
    Begun(KnownOfLine),
    /// The connection is to be closed.
    Close,
}

/// Answers with a line.
pub(super) fn line(text: &str, turn: &mut Turn<'_>) -> Executed {
    answer::line(&mut turn.output.buffer, text);
    Executed::Answered
}

/// Answers an outcome, if the client wants to hear of it.
pub(super) fn outcome(outcome: TextOutcome, reply: Reply, turn: &mut Turn<'_>) -> Executed {
    if reply == Reply::Wanted {
        answer::line(&mut turn.output.buffer, outcome.word());
    }
    Executed::Answered
}
