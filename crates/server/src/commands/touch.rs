//! TOUCH, GAT.

use bucket::{Attempted, Refused};
use protocol::request::touch_expiry;
use protocol::{Opcode, Status};

use super::documents::{Document, absolute_expiry, count_attempt};
use super::read::{answer_miss, answer_with};
use super::refusals::refuse;
use crate::connection::{Connection, Content, Done, Request, Turn};
use crate::statistics::count;

/// Gives a document another expiry; GAT answers with the document as well.
pub(super) fn touch(
    connection: &mut Connection,
    request: &Request<'_>,
    document: &Document<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    let Document { bucket, key } = document;
    let Some(requested) = touch_expiry(request.frame.extras) else {
        request.reply(connection).fail(turn, Status::Einval, "the extras have the wrong size");
        return Done::Answered;
    };
    let expiry = match absolute_expiry(connection, request, document, requested, turn) {
        Ok(expiry) => expiry,
        Err(done) => return done,
    };
    let result = bucket.touch(turn.session, request.vbid(), key.as_key(), expiry);
    count_attempt(&turn.bucket.commands.cmd_touch, &result);
    match result {
        Ok(Attempted::Answered(found)) if request.opcode == Opcode::Gat => {
            count(&turn.bucket.commands.touch_hits);
            answer_with(connection, request, found, turn);
            Done::Answered
        }
        Ok(Attempted::Answered(found)) => {
            count(&turn.bucket.commands.touch_hits);
            let content = Content { cas: found.cas, ..Content::default() };
            request.reply(connection).send(turn, content);
            Done::Answered
        }
        Ok(Attempted::Waits) => Done::Parked,
        Err(Refused::NotFound) => {
            count(&turn.bucket.commands.touch_misses);
            answer_miss(connection, request, turn)
        }
        Err(refused) => refuse(connection, request, refused, turn),
    }
}
