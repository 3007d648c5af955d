//! `stats`, `flush_all`.

use std::sync::Arc;
use std::time::Duration;

use protocol::text::answer::{self, TextOutcome};
use protocol::text::exptime::Exptime;
use protocol::text::request::{Reply, TextError};

use super::executed::{Executed, line, outcome};
use super::refusals::{refuse, server_error, wrong};
use crate::buckets::BucketPart;
use crate::commands::admin::{FlushOrder, order_flush};
use crate::commands::stat::{Form, Listener, NOT_IN_MANIFEST, NoGroup, TOO_MUCH, tell};
use crate::connection::{Sight, Turn};

/// The group whose answer is a word: it begins counters anew, as far as there are any that do.
const RESET: &str = "reset";
/// What alone parts words.
const BLANK: char = ' ';

/// `stats`: all groups that STAT has.
pub(super) fn stats(part: &Arc<BucketPart>, asked: &[u8], turn: &mut Turn<'_>) -> Executed {
    let Ok(asked) = std::str::from_utf8(asked) else {
        return wrong(TextError::UnknownCommand, Reply::Wanted, turn);
    };
    let asked = asked.trim_matches(BLANK);
    let (group, argument) = asked.split_once(BLANK).unwrap_or((asked, ""));
    let asked = (group, argument.trim_start_matches(BLANK));
    let listener = Listener { form: Form::Line, sight: Sight::All, is_anonymous: true };
    match tell(listener, Some(part), asked, turn) {
        Ok(()) if group == RESET => outcome(TextOutcome::Reset, Reply::Wanted, turn),
        Ok(()) => line(answer::END, turn),
        // The port has a bucket; and what it reads of files for is no group of memcached's.
        Err(NoGroup::Unknown | NoGroup::NoBucket | NoGroup::InFile(_)) => {
            wrong(TextError::UnknownCommand, Reply::Wanted, turn)
        }
        Err(NoGroup::BadArgument) => wrong(TextError::BadFormat, Reply::Wanted, turn),
        Err(NoGroup::NotInManifest) => server_error(NOT_IN_MANIFEST, Reply::Wanted, turn),
        Err(NoGroup::NoSuchVbucket) => {
            server_error("the vBucket is not on this node", Reply::Wanted, turn)
        }
        Err(NoGroup::TooMuch) => server_error(TOO_MUCH, Reply::Wanted, turn),
        Err(NoGroup::Waits) => Executed::Waits,
        Err(NoGroup::Refused(refused)) => refuse(refused.into(), Reply::Wanted, turn),
    }
}

/// `flush_all`.
pub(super) fn flush(
    part: &BucketPart,
    exptime: Exptime,
    reply: Reply,
    turn: &mut Turn<'_>,
) -> Executed {
    if !part.flush_enabled() {
        if reply == Reply::Wanted {
            answer::line(&mut turn.output.buffer, "CLIENT_ERROR flush_all not allowed");
        }
        return Executed::Failed;
    }
    let seconds = exptime.delay_seconds(turn.now.wall.seconds());
    match order_flush(part, Duration::from_secs(seconds.into()), turn) {
        FlushOrder::Taken => outcome(TextOutcome::Ok, reply, turn),
        FlushOrder::Begun => Executed::Ordered,
        FlushOrder::Stopping => server_error("the node is stopping", reply, turn),
    }
}
