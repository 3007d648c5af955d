//! Whether a stream may begin, and where. Source: docs/specification/protocol.md, section 20.4.

use document::{CollectionId, ScopeId, Seqno, VbUuid, VbucketState};
use protocol::Status;
use protocol::dcp::{OpenFlags, StreamFlags, StreamRequest, StreamSelection};
use vbucket::checkpoint::{Registration, Tenure};
use vbucket::{Effect, StreamStart, Vbucket};

use super::answer::Answer;
use super::controls::Settings;
use super::filter::Filter;

/// A request that has passed what can be checked without its vBucket.
pub(super) struct Checked<'a> {
    pub(super) request: StreamRequest<'a>,
    pub(super) selection: StreamSelection,
    has_collections: bool,
    tells_changes: bool,
}

/// What is granted.
pub(super) struct Granted {
    /// The request as it is carried out.
    pub(super) start: Seqno,
    pub(super) end: Seqno,
    /// Whether it is of one collection.
    pub(super) is_of_one_collection: bool,
    /// Which collections it is of.
    pub(super) filter: Filter,
    /// The snapshot that the consumer is in.
    pub(super) snapshot_start: Seqno,
    pub(super) snapshot_end: Seqno,
    pub(super) registration: Registration,
    /// Tombstones up to here may be purged: what the consumer misses by that does not matter.
    pub(super) known_purge: Seqno,
    pub(super) role: VbucketState,
    /// The branch of the vBucket's history that the stream is of.
    pub(super) uuid: VbUuid,
    /// The branches of the vBucket's history.
    pub(super) failover_log: Vec<(VbUuid, Seqno)>,
}

const NOT_MY_VBUCKET: Answer = Answer::Fail(Status::NotMyVbucket, "");

/// Whether the vBucket's role lets it be read, and the request with what it leaves to the vBucket.
pub(super) fn check_role<'a>(
    vbucket: &Vbucket,
    request: StreamRequest<'a>,
) -> Result<StreamRequest<'a>, Answer> {
    let only_active = request.flags.contains(StreamFlags::ACTIVE_ONLY)
        || request.flags.contains(StreamFlags::TAKEOVER);
    match vbucket.state() {
        VbucketState::Active => {}
        VbucketState::Replica if !only_active => {}
        _ => return Err(NOT_MY_VBUCKET),
    }
    if !request.flags.contains(StreamFlags::FROM_LATEST) {
        return Ok(request);
    }
    let high = vbucket.high_seqno();
    let uuid = if request.uuid == VbUuid(0) { vbucket.uuid() } else { request.uuid };
    let (start, snapshot_start, snapshot_end) = (high, high, high);
    Ok(StreamRequest { start, snapshot_start, snapshot_end, uuid, ..request })
}

/// Checks what the connection's agreements and the request itself say.
pub(super) fn check<'a>(
    request: StreamRequest<'a>,
    settings: &Settings,
    has_noop: bool,
) -> Result<Checked<'a>, Answer> {
    let refuse = |status, context| Err(Answer::Fail(status, context));
    let needs_noop = settings.flags.contains(OpenFlags::XATTRS) || settings.has_collections();
    if needs_noop && !has_noop {
        return refuse(Status::NotSupported, "xattrs and collections need NOOPs to be enabled");
    }
    if request.flags.contains(StreamFlags::CACHE_TRANSFER) {
        return refuse(Status::NotSupported, "memory is not transferred");
    }
    if request.start > request.end {
        return refuse(Status::Erange, "the stream begins behind its end");
    }
    let range = request.snapshot_start..=request.snapshot_end;
    if !range.contains(&request.start) {
        return refuse(Status::Erange, "the stream does not begin within its snapshot");
    }
    if !settings.has_collections() && !request.value.is_empty() {
        return refuse(Status::Einval, "a filter needs collections to be negotiated");
    }
    let selection = StreamSelection::parse(request.value)
        .map_err(|invalid| Answer::Fail(invalid.status, invalid.context))?;
    if selection.wants_cache_transfer {
        return refuse(Status::NotSupported, "memory is not transferred");
    }
    if selection.stream_id.is_some() != settings.has_stream_ids {
        let context = "a stream has an id exactly if stream ids are enabled";
        return refuse(Status::DcpStreamIdInvalid, context);
    }
    if selection.is_filtered() && settings.is_sync_replication() {
        return refuse(Status::NotSupported, "a replica needs all collections");
    }
    let (has_collections, tells_changes) = (settings.has_collections(), settings.has_flat_buffers);
    Ok(Checked { request, selection, has_collections, tells_changes })
}

/// What the stream carries of the vBucket, if there is all of that.
fn filter_of(vbucket: &Vbucket, checked: &Checked<'_>) -> Result<Filter, Answer> {
    let Checked { selection, has_collections, tells_changes, .. } = checked;
    let is_here =
        |id: &CollectionId| *id == CollectionId::DEFAULT || vbucket.collection(*id).is_some();
    match (&selection.collections, selection.scope.map(ScopeId)) {
        (Some(ids), _) if ids.iter().all(is_here) => Ok(Filter::collections(ids, *tells_changes)),
        (Some(_), _) => Err(Answer::UnknownCollection),
        (None, Some(scope)) if vbucket.has_scope(scope) => {
            Ok(Filter::scope(scope, collections_of(vbucket, scope).into_iter(), *tells_changes))
        }
        (None, Some(_)) => Err(Answer::UnknownScope),
        (None, None) if *has_collections => Ok(Filter::everything(*tells_changes)),
        (None, None) => Ok(Filter::default_collection()),
    }
}

/// The collections of a scope.
fn collections_of(vbucket: &Vbucket, scope: ScopeId) -> Vec<CollectionId> {
    let of_scope = vbucket.collections().filter(|(_, it)| it.scope == scope).map(|(id, _)| id);
    let default = (scope == ScopeId::DEFAULT).then_some(CollectionId::DEFAULT);
    default.into_iter().chain(of_scope).collect()
}

/// The last seqno of anything that a filtered stream would carry; none of an unfiltered one.
fn filtered_high(vbucket: &Vbucket, selection: &StreamSelection) -> Option<Seqno> {
    let ids = match (&selection.collections, selection.scope) {
        (Some(ids), _) => ids.clone(),
        (None, Some(scope)) => collections_of(vbucket, ScopeId(scope)),
        (None, None) => return None,
    };
    let high = |id: CollectionId| match vbucket.collection(id) {
        Some(collection) => collection.high_seqno,
        None => vbucket.high_seqno(),
    };
    ids.into_iter().map(high).max().or(Some(Seqno(0)))
}

/// Who asks for a stream, and whether there is memory for one that has to read a file.
#[derive(Clone, Copy)]
pub(super) struct Asker<'a> {
    /// What its place in the log is called.
    pub(super) cursor_name: &'a str,
    pub(super) tenure: Tenure,
    /// A node that holds durable writes from now on: replicas come however short memory is.
    pub(super) node: Option<&'a str>,
    pub(super) has_room: bool,
    /// Whether the bucket has files: what is read of another one is in memory, all of it.
    pub(super) has_files: bool,
}

/// Decides, and takes a place in the log for a stream that is granted.
pub(super) fn grant(
    vbucket: &mut Vbucket,
    checked: &Checked<'_>,
    asker: Asker<'_>,
    effects: &mut Vec<Effect>,
) -> Result<Granted, Answer> {
    let Asker { cursor_name, tenure, node, has_room, has_files } = asker;
    // Once more: the lock was let go of since, and role and high seqno may have changed.
    let request = check_role(vbucket, checked.request)?;
    let filter = filter_of(vbucket, checked)?;
    let StreamRequest { flags, start, snapshot_start, snapshot_end, uuid, .. } = request;
    let high = vbucket.high_seqno();
    let asked = StreamStart {
        start,
        snapshot_start,
        snapshot_end,
        uuid,
        is_strict: flags.contains(StreamFlags::STRICT_UUID),
        purge: checked.selection.purge_seqno,
        ignores_purge: flags.contains(StreamFlags::IGNORE_PURGED),
        filtered_high: filtered_high(vbucket, &checked.selection),
    };
    if let Some(seqno) = vbucket.rollback_point(&asked) {
        return Err(Answer::Rollback(seqno));
    }
    let mut end = request.end;
    if flags.contains(StreamFlags::TO_LATEST) {
        end = high;
    }
    if flags.contains(StreamFlags::DISK_ONLY) {
        end = if has_files { vbucket.persisted_seqno() } else { high };
    }
    if start > end || start > high {
        return Err(Answer::Fail(Status::Erange, "the stream begins behind what there is"));
    }
    // What a node has of a snapshot may be from a file: without the prepares that had ended, whose
    // commits in the log it could not carry out. The rest has to come from the file, too.
    let is_within_snapshot = node.is_some() && snapshot_start < start && start < snapshot_end;
    let opened = vbucket.open_stream(cursor_name, start, tenure);
    let mut registration =
        opened.map_err(|_| Answer::Fail(Status::Erange, "the stream begins behind the end"))?;
    registration.needs_backfill |= is_within_snapshot || flags.contains(StreamFlags::DISK_ONLY);
    let refusal = if registration.needs_backfill && !has_room && node.is_none() {
        Some((Status::Enomem, "memory is short: the stream would have to read a file"))
    } else if vbucket.is_receiving_initial_disk_snapshot() {
        Some((Status::Etmpfail, "the vBucket does not have its first snapshot yet"))
    } else if is_within_snapshot && vbucket.persisted_seqno() < snapshot_end {
        Some((Status::Etmpfail, "the rest of the snapshot is not persisted yet"))
    } else {
        None
    };
    if let Some((status, context)) = refusal {
        // The log keeps nothing for a stream that is refused.
        vbucket.close_stream(registration.id, effects);
        return Err(Answer::Fail(status, context));
    }
    if let Some(node) = node {
        // What a node has acknowledged behind its start it does not have any more.
        vbucket.restart_acknowledgements(node, start);
    }
    let entries = vbucket.failover_entries().iter();
    let failover_log = entries.map(|entry| (entry.uuid, entry.seqno)).collect();
    let role = vbucket.state();
    let collections = checked.selection.collections.as_ref();
    let is_of_one_collection = collections.is_some_and(|collections| collections.len() == 1);
    Ok(Granted {
        start,
        end,
        is_of_one_collection,
        filter,
        snapshot_start,
        snapshot_end,
        registration,
        known_purge: match flags.contains(StreamFlags::IGNORE_PURGED) {
            true => Seqno(u64::MAX),
            false => vbucket.stream_purge_seqno(),
        },
        role,
        uuid: vbucket.uuid(),
        failover_log,
    })
}
