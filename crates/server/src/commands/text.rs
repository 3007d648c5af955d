//! What each command of the text protocol does: it asks the bucket as the binary commands do, and
//! answers in lines.

mod admin;
mod change;
mod documents;
mod executed;
mod meta;
mod meta_get;
mod operations;
mod recaching;
mod refusals;
mod retrieve;
mod store;

use std::sync::Arc;

use bucket::{Bucket, Completion};
use protocol::text::answer::{END, TextOutcome};
use protocol::text::meta::MetaVerb;
use protocol::text::request::Request;
use vbucket::SyncWriteEnd;

use super::store::ambiguity;
use crate::buckets::BucketPart;
use crate::completed::Completed;
use crate::connection::{KnownOfLine, Turn};
use executed::{line, outcome};

pub(crate) use executed::Executed;
pub(crate) use operations::VBID_OF_LINES;
pub(crate) use refusals::{no_memory, without_bucket, wrong};
pub(crate) use store::{StoreOrder, StoredValue};

/// Executes a request. `value` is its data block.
pub(crate) fn execute(
    part: &Arc<BucketPart>,
    request: &Request<'_>,
    value: StoredValue<'_>,
    turn: &mut Turn<'_>,
) -> Executed {
    let bucket = &part.bucket;
    match request {
        Request::Get(key, retrieval) => retrieve::get(bucket, key, *retrieval, turn),
        Request::EndOfKeys => line(END, turn),
        Request::Store(_) => store::store(bucket, request, value, turn),
        Request::Delete(key, reply) => change::delete(bucket, key, *reply, turn),
        Request::Count(count) => change::count(bucket, count, turn),
        Request::Touch(key, exptime, reply) => change::touch(bucket, key, *exptime, *reply, turn),
        Request::Meta(meta) => match meta.verb {
            MetaVerb::Get => meta_get::get(bucket, meta, turn),
            MetaVerb::Debug => meta_get::debug(bucket, meta, turn),
            MetaVerb::Store => meta::store(bucket, request, meta, value, turn),
            MetaVerb::Delete => meta::delete(bucket, meta, turn),
            MetaVerb::Count => meta::count(bucket, meta, turn),
        },
        Request::Noop => line("MN", turn),
        Request::Stats(asked) => admin::stats(part, asked, turn),
        Request::Version => {
            let version = format!("VERSION {}", turn.shared.options.version);
            line(&version, turn)
        }
        Request::Verbosity(reply) => outcome(TextOutcome::Ok, *reply, turn),
        Request::Flush(exptime, reply) => admin::flush(part, *exptime, *reply, turn),
        Request::Quit => Executed::Close,
    }
}

/// Answers a request whose end has come.
pub(crate) fn complete(
    bucket: &Bucket,
    request: &Request<'_>,
    completed: &Completed,
    known: KnownOfLine,
    turn: &mut Turn<'_>,
) {
    match completed {
        Completed::Bucket(Completion::SyncWrite(SyncWriteEnd::Committed { mutation, .. })) => {
            match request {
                Request::Store(store) => outcome(TextOutcome::Stored, store.reply, turn),
                Request::Delete(_, reply) => outcome(TextOutcome::Deleted, *reply, turn),
                Request::Count(count) => change::committed(bucket, count, *mutation, known, turn),
                Request::Meta(meta) => meta::committed(bucket, meta, *mutation, known, turn),
                _ => Executed::Answered,
            };
        }
        Completed::Flushed(Ok(())) => {
            if let Request::Flush(_, reply) = request {
                outcome(TextOutcome::Ok, *reply, turn);
            }
        }
        other => {
            failed(request, other, turn);
        }
    }
}

/// Answers a request whose wait has ended without what it waited for.
pub(crate) fn failed(
    request: &Request<'_>,
    completed: &Completed,
    turn: &mut Turn<'_>,
) -> Executed {
    let why = match completed {
        Completed::Bucket(Completion::ReadFailed) => {
            "the value cannot be read from the data directory; see the node's log"
        }
        Completed::Bucket(Completion::SyncWrite(SyncWriteEnd::Ambiguous(why))) => ambiguity(*why),
        Completed::Bucket(Completion::SyncWrite(SyncWriteEnd::Dropped)) => {
            "the collection was dropped before the durable write was committed"
        }
        Completed::Flushed(Err(why)) => why.as_str(),
        _ => "the wait has ended without its end",
    };
    // A line too many would be taken for the answer of what comes next.
    refusals::server_error(why, request.reply(), turn)
}
