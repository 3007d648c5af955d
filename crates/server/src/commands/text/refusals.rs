//! Errors in the words of the text protocol.

use bucket::{Refused, WriteBlock};
use protocol::Status;
use protocol::text::answer;
use protocol::text::request::{Reply, TextError};

use super::executed::Executed;
use super::operations::NoResult;
use crate::commands::refusals::told;
use crate::connection::Turn;
use crate::statistics::count;

const NOT_A_NUMBER: &str = "CLIENT_ERROR cannot increment or decrement non-numeric value";
const NO_MEMORY: &str = "SERVER_ERROR out of memory storing object";

/// Answers what a bucket refused that is none of the usual outcomes, or has the request wait.
pub(super) fn refuse(why: NoResult, reply: Reply, turn: &mut Turn<'_>) -> Executed {
    let refused = match why {
        NoResult::Waits => return Executed::Waits,
        NoResult::Begun(known) => return Executed::Begun(known),
        NoResult::Refused(refused) => refused,
    };
    let (status, why) = told(refused);
    if status == Status::Etmpfail {
        count(&turn.bucket.commands.temporary_failures);
    }
    let text = match refused {
        Refused::TooLarge => TextError::TooLarge.line(),
        Refused::NotANumber => NOT_A_NUMBER,
        Refused::Blocked(WriteBlock::NoMemory) => NO_MEMORY,
        Refused::Locked => "SERVER_ERROR the document is locked",
        _ => {
            let why = why.unwrap_or("the document is in another state");
            return unless_quiet(&format!("SERVER_ERROR {why}"), reply, turn);
        }
    };
    unless_quiet(text, reply, turn)
}

/// Answers that there is no bucket, whatever was asked for: no other can be selected in lines.
pub(crate) fn without_bucket(turn: &mut Turn<'_>) -> Executed {
    let why = "SERVER_ERROR this port serves the default bucket, which this node does not have";
    answer::line(&mut turn.output.buffer, why);
    Executed::Close
}

/// Answers that there is no room for a data block.
pub(crate) fn no_memory(reply: Reply, turn: &mut Turn<'_>) -> Executed {
    count(&turn.bucket.commands.temporary_failures);
    unless_quiet(NO_MEMORY, reply, turn)
}

/// Answers a line that is not carried out.
pub(crate) fn wrong(error: TextError, reply: Reply, turn: &mut Turn<'_>) -> Executed {
    let counters = &turn.bucket.commands;
    let is_unknown = error == TextError::UnknownCommand;
    count(if is_unknown { &counters.unknown_commands } else { &counters.invalid_requests });
    unless_quiet(error.line(), reply, turn)
}

/// Answers that something has failed here.
pub(super) fn server_error(why: &str, reply: Reply, turn: &mut Turn<'_>) -> Executed {
    count(&turn.bucket.commands.temporary_failures);
    unless_quiet(&format!("SERVER_ERROR {why}"), reply, turn)
}

fn unless_quiet(text: &str, reply: Reply, turn: &mut Turn<'_>) -> Executed {
    if reply == Reply::Wanted {
        answer::line(&mut turn.output.buffer, text);
    }
    Executed::Failed
}
