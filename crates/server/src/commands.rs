//! What each command does, one file a family.

mod admin;
mod bootstrap;
mod bucket_orders;
mod collections;
mod compaction;
mod count;
mod dcp;
pub(crate) mod documents;
mod key_lookups;
mod observe;
mod parameters;
mod paths;
mod privileges;
mod properties;
mod range_scan;
mod read;
mod refusals;
mod sasl;
mod stat;
mod store;
pub(crate) mod text;
mod timers;
mod touch;
mod vbuckets;
mod with_meta;

use bucket::{Bucket, Completion};
use documents::{on_bucket, on_document, on_part};
use protocol::{Opcode, Status};

use crate::completed::Completed;
use crate::connection::{Connection, Done, Request, Turn};
use crate::privileges::needed_for;
use crate::statistics::count;

pub(crate) use store::{answer_ended, must_received_wait, store_received};

/// Executes a request that has the form of its command.
pub(crate) fn execute(
    connection: &mut Connection,
    request: &Request<'_>,
    turn: &mut Turn<'_>,
) -> Done {
    match request.opcode {
        Opcode::Get | Opcode::Getk => on_document(read::get, connection, request, turn),
        Opcode::GetMeta => on_document(read::get_meta, connection, request, turn),
        Opcode::GetReplica => on_document(read::get_replica, connection, request, turn),
        Opcode::GetLocked => on_document(read::get_locked, connection, request, turn),
        Opcode::UnlockKey => on_document(read::unlock, connection, request, turn),
        Opcode::Set | Opcode::Add | Opcode::Replace => {
            on_document(store::store, connection, request, turn)
        }
        Opcode::Append | Opcode::Prepend => {
            on_document(store::concatenate, connection, request, turn)
        }
        Opcode::SetWithMeta | Opcode::AddWithMeta | Opcode::DelWithMeta => {
            on_document(with_meta::store, connection, request, turn)
        }
        Opcode::MutateWithMeta => on_document(with_meta::mutate, connection, request, turn),
        Opcode::ReturnMeta => on_document(with_meta::return_meta, connection, request, turn),
        Opcode::Delete => on_document(store::delete, connection, request, turn),
        Opcode::Increment | Opcode::Decrement => {
            on_document(count::count, connection, request, turn)
        }
        Opcode::SubdocGet
        | Opcode::SubdocExists
        | Opcode::SubdocGetCount
        | Opcode::SubdocMultiLookup => on_document(paths::look_up, connection, request, turn),
        Opcode::SubdocDictAdd
        | Opcode::SubdocDictUpsert
        | Opcode::SubdocDelete
        | Opcode::SubdocReplace
        | Opcode::SubdocArrayPushLast
        | Opcode::SubdocArrayPushFirst
        | Opcode::SubdocArrayInsert
        | Opcode::SubdocArrayAddUnique
        | Opcode::SubdocCounter
        | Opcode::SubdocReplaceBodyWithXattr
        | Opcode::SubdocMultiMutation => on_document(paths::change, connection, request, turn),
        Opcode::Touch | Opcode::Gat => on_document(touch::touch, connection, request, turn),
        Opcode::Hello => bootstrap::hello(connection, request, turn),
        Opcode::GetErrorMap => bootstrap::error_map(connection, request, turn),
        Opcode::SelectBucket => bootstrap::select_bucket(connection, request, turn),
        Opcode::CreateBucket
        | Opcode::DeleteBucket
        | Opcode::CollectionsSetManifest
        | Opcode::SetVbucket
        | Opcode::DelVbucket
        | Opcode::SetParam
        | Opcode::Flush
        | Opcode::CompactDb
        | Opcode::RbacRefresh
        | Opcode::IsaslRefresh
        | Opcode::IoctlSet => carry_out(connection, request, turn),
        Opcode::ListBuckets => bootstrap::list_buckets(connection, request, turn),
        Opcode::GetClusterConfig => bootstrap::cluster_config(connection, request, turn),
        Opcode::SaslListMechs => sasl::list(connection, request, turn),
        Opcode::SaslAuth => sasl::start(connection, request, turn),
        Opcode::SaslStep => sasl::step(connection, request, turn),
        Opcode::CollectionsGetManifest => {
            on_bucket(collections::manifest, connection, request, turn)
        }
        Opcode::CollectionsGetCollectionId => on_bucket(collections::id, connection, request, turn),
        Opcode::CollectionsGetScopeId => {
            on_bucket(collections::scope_id, connection, request, turn)
        }
        Opcode::Observe => on_bucket(observe::observe, connection, request, turn),
        Opcode::ObserveSeqno => on_bucket(observe::observe_seqno, connection, request, turn),
        Opcode::SeqnoPersistence => {
            on_bucket(observe::seqno_persistence, connection, request, turn)
        }
        Opcode::GetFailoverLog => on_bucket(observe::failover_log, connection, request, turn),
        Opcode::GetAllVbSeqnos => on_bucket(observe::all_seqnos, connection, request, turn),
        Opcode::GetKeys => on_document(key_lookups::get_keys, connection, request, turn),
        Opcode::GetRandomKey => on_bucket(key_lookups::get_random_key, connection, request, turn),
        Opcode::RangeScanCreate => on_bucket(range_scan::create, connection, request, turn),
        Opcode::RangeScanContinue => on_bucket(range_scan::go_on, connection, request, turn),
        Opcode::RangeScanCancel => on_bucket(range_scan::cancel, connection, request, turn),
        Opcode::EvictKey => on_document(admin::evict, connection, request, turn),
        Opcode::GetVbucket => on_bucket(vbuckets::get_vbucket, connection, request, turn),
        Opcode::DropPrivilege => privileges::give_up(connection, request, turn),
        Opcode::Noop => admin::noop(connection, request, turn),
        Opcode::Version => admin::version(connection, request, turn),
        Opcode::Verbosity => admin::verbosity(connection, request, turn),
        Opcode::Quit => admin::quit(connection, request, turn),
        Opcode::IoctlGet => properties::get(connection, request, turn),
        Opcode::GetCmdTimer => timers::get_timer(connection, request, turn),
        Opcode::Stat => stat::stat(connection, request, turn),
        Opcode::DcpOpen => on_part(dcp::open, connection, request, turn),
        opcode if opcode.is_dcp() && connection.producer.is_some() => {
            dcp::message(connection, request, turn)
        }
        Opcode::DcpGetFailoverLog => on_bucket(observe::failover_log, connection, request, turn),
        opcode if opcode.is_dcp() && connection.relay.is_some() => {
            dcp::relayed(connection, request, turn)
        }
        _ => refuse(connection, request, turn),
    }
}

/// Carries out an order that changes more than documents. It is noted whose it was, before it
/// begins: whoever deletes a bucket may be gone when that ends. Who has selected no bucket comes
/// here without the right to it, to be told so.
fn carry_out(connection: &mut Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    if needed_for(request.opcode).is_met_by(connection.privileges()) {
        let (command, in_name_of) = (request.opcode.name(), request.infos.impersonate);
        connection.note_order(command, request.frame.key, in_name_of, turn);
    }
    match request.opcode {
        Opcode::CreateBucket => bucket_orders::create(connection, request, turn),
        Opcode::DeleteBucket => bucket_orders::delete(connection, request, turn),
        Opcode::CollectionsSetManifest => {
            on_bucket(collections::set_manifest, connection, request, turn)
        }
        Opcode::SetVbucket => on_bucket(vbuckets::set_vbucket, connection, request, turn),
        Opcode::DelVbucket => on_bucket(vbuckets::delete_vbucket, connection, request, turn),
        Opcode::SetParam => on_bucket(parameters::set_parameter, connection, request, turn),
        Opcode::Flush => on_part(admin::flush, connection, request, turn),
        Opcode::CompactDb => on_bucket(compaction::compact, connection, request, turn),
        Opcode::RbacRefresh | Opcode::IsaslRefresh => {
            privileges::refresh(connection, request, turn)
        }
        Opcode::IoctlSet => properties::set(connection, request, turn),
        _ => refuse(connection, request, turn),
    }
}

/// Answers that there is no such command here.
fn refuse(connection: &Connection, request: &Request<'_>, turn: &mut Turn<'_>) -> Done {
    count(&turn.bucket.commands.unsupported_commands);
    let context = match request.opcode.is_dcp() {
        true => "make it a connection of replication first, by DCP_OPEN",
        false => "this server does not carry out this command",
    };
    request.reply(connection).fail(turn, Status::NotSupported, context);
    Done::Answered
}

/// Carries on with a request whose wait is over.
///
/// # Panics
/// If that was for the end of a durable write: of one that has begun, the answer alone is left.
pub(crate) fn complete(
    connection: &mut Connection,
    request: &Request<'_>,
    completed: Completed,
    turn: &mut Turn<'_>,
) -> Done {
    match completed {
        Completed::Bucket(Completion::Retry(fetched)) => {
            assert!(turn.session.fetched.is_none(), "what was fetched for one is no other's");
            turn.session.fetched = fetched;
            let done = execute(connection, request, turn);
            // The command may have ended before it came to its document.
            turn.session.fetched = None;
            done
        }
        Completed::Bucket(Completion::Persisted) if request.opcode == Opcode::RangeScanCreate => {
            on_bucket(range_scan::persisted, connection, request, turn)
        }
        Completed::Bucket(Completion::Persisted) => {
            observe::persisted(connection, request, turn);
            Done::Answered
        }
        Completed::Bucket(Completion::SyncWrite(end)) => {
            panic!("a request that has not begun does not end: {end:?}")
        }
        Completed::Bucket(Completion::NotPersisted) => {
            let context = "the seqno was not persisted in time";
            request.reply(connection).fail(turn, Status::Etmpfail, context);
            Done::Answered
        }
        Completed::Bucket(Completion::ReadFailed) => {
            let context = "the value cannot be read from the data directory; see the node's log";
            request.reply(connection).fail(turn, Status::Etmpfail, context);
            Done::Answered
        }
        Completed::Flushed(result) => {
            admin::flushed(connection, request, result, turn);
            Done::Answered
        }
        Completed::ScanOpened(result) => range_scan::opened(connection, request, result, turn),
        Completed::ScanRead(portion) => {
            let read = |connection: &mut Connection,
                        request: &Request<'_>,
                        bucket: &Bucket,
                        turn: &mut Turn<'_>| {
                range_scan::read_portion(connection, request, bucket, *portion, turn)
            };
            on_bucket(read, connection, request, turn)
        }
        Completed::KeysListed(result) => key_lookups::listed(connection, request, result, turn),
        Completed::RandomDocument(found) => {
            key_lookups::found_random(connection, request, found, turn)
        }
        Completed::KeyChecked(told) => {
            stat::checked(connection, request, told, turn);
            Done::Answered
        }
        Completed::Compacted(end) => {
            compaction::compacted(connection, request, end, turn);
            Done::Answered
        }
        Completed::ManifestSet(result) => {
            collections::manifest_set(connection, request, &result, turn);
            Done::Answered
        }
        Completed::VbucketChanged(result) => vbuckets::changed(connection, request, result, turn),
        Completed::UsersRead(result) => {
            privileges::refreshed(connection, request, &result, turn);
            Done::Answered
        }
        Completed::BucketChanged(result) => {
            bucket_orders::changed(connection, request, result, turn);
            Done::Answered
        }
        Completed::Plain(result) => sasl::finish_plain(connection, request, result, turn),
    }
}

impl Request<'_> {
    /// The identity of this request's answer.
    pub(crate) fn reply(&self, connection: &Connection) -> crate::connection::Reply {
        connection.reply(self.frame.header.opcode, self.frame.header.opaque)
    }
}
