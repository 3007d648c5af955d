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
    let counters = &turn.bucket.commands;
    match status {
        Status::Etmpfail => count(&counters.temporary_failures),
        Status::E2big => count(&counters.store_too_large),
        Status::Enomem => count(&counters.store_no_memory),
        _ => {}
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
    count(&turn.bucket.commands.store_no_memory);
    unless_quiet(NO_MEMORY, reply, turn)
}

/// Answers a line that is not carried out.
pub(crate) fn wrong(error: TextError, reply: Reply, turn: &mut Turn<'_>) -> Executed {
    let counters = &turn.bucket.commands;
    count(match error {
        TextError::UnknownCommand => &counters.unknown_commands,
        TextError::TooLarge => &counters.store_too_large,
        _ => &counters.invalid_requests,
    });
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
