//! COMPACT_DB. Source: docs/specification/protocol.md, section 18.1.

use bucket::{Bucket, CompactionEnd, CompactionOrder};
use document::Seqno;
use protocol::Status;
use protocol::request::CompactDb;

use super::refusals::refuse;
use crate::completed::Completed;
use crate::connection::{Connection, Done, Request, Turn};

/// COMPACT_DB: compacts the file of one vBucket. The answer comes when it is done.
pub(super) fn compact(
    connection: &mut Connection,
    request: &Request<'_>,
    bucket: &Bucket,
    turn: &mut Turn<'_>,
) -> Done {
    let reply = request.reply(connection);
    let Some(wanted) = CompactDb::parse(&request.frame) else {
        reply.fail(turn, Status::Einval, "the extras of COMPACT_DB have 24 bytes");
        return Done::Answered;
    };
    let order = CompactionOrder {
        purge_before_seconds: u32::try_from(wanted.purge_before_seconds).unwrap_or(u32::MAX),
        purge_before_seqno: Seqno(wanted.purge_before_seqno),
        drop_deletes: wanted.drop_deletes,
    };
    let waiter = turn.session.waiter;
    let mailboxes = turn.shared.mailboxes.clone();
    let on_end = move |end| mailboxes.complete_with(waiter, Completed::Compacted(end));
    match bucket.compact(request.vbid(), order, on_end) {
        Ok(()) => Done::Parked,
        Err(refused) => refuse(connection, request, refused, turn),
    }
}

/// The compaction has ended.
pub(super) fn compacted(
    connection: &Connection,
    request: &Request<'_>,
    end: CompactionEnd,
    turn: &mut Turn<'_>,
) {
    let reply = request.reply(connection);
    match end {
        CompactionEnd::Done => reply.done(turn),
        CompactionEnd::Failed => {
            let context = "the file could not be compacted; see the node's log";
            reply.fail(turn, Status::Etmpfail, context);
        }
        CompactionEnd::Aborted => {
            reply.fail(turn, Status::Etmpfail, "the compaction was stopped; try again");
        }
    }
}
