//! Groups about single vBuckets, and about single documents.

use bucket::{Attempted, Bucket, Refused};
use document::{KeyBuf, Vbid, VbucketState};
use vbucket::{Found, Vbucket};

use super::emitter::{Emitter, NoGroup, vbucket_argument};
use crate::statistic::count as number;

/// Emits what `describe` says about the vBuckets that the argument names. What is said is put
/// together under the vBucket's lock, and sent after it.
pub(super) fn for_vbuckets(
    emitter: &mut Emitter<'_, '_>,
    argument: &str,
    describe: impl Fn(&Vbucket) -> Vec<(String, String)>,
) -> Result<(), NoGroup> {
    let mut described = Vec::new();
    match vbucket_argument(argument)? {
        None => {
            emitter.part.bucket.for_each_vbucket(|_, vbucket| described.extend(describe(vbucket)))
        }
        Some(vbid) => {
            emitter.part.bucket.with_vbucket(vbid, |vbucket| described = describe(vbucket))
        }
    }
    if described.is_empty() && !argument.is_empty() {
        return Err(NoGroup::NoSuchVbucket);
    }
    for (name, value) in described {
        emitter.emit(&name, value);
    }
    Ok(())
}

/// `vb_<id>:<name>` and the value.
fn detail(vbid: Vbid, name: &str, value: impl std::fmt::Display) -> (String, String) {
    (format!("vb_{vbid}:{name}"), value.to_string())
}

fn state(vbucket: &Vbucket) -> (String, String) {
    (format!("vb_{}", vbucket.vbid()), vbucket.state().name().to_owned())
}

/// Groups "vbucket" and "prev-vbucket".
pub(super) fn states(emitter: &mut Emitter<'_, '_>, argument: &str) -> Result<(), NoGroup> {
    for_vbuckets(emitter, argument, |vbucket| vec![state(vbucket)])
}

/// Group "vbucket-details".
pub(super) fn details(emitter: &mut Emitter<'_, '_>, argument: &str) -> Result<(), NoGroup> {
    for_vbuckets(emitter, argument, |vbucket| {
        let vbid = vbucket.vbid();
        let statistics = vbucket.statistics();
        let (filter, drift) = (vbucket.key_filter(), vbucket.drift());
        let numbers: [(&str, u64); 36] = [
            ("num_items", number(vbucket.document_count())),
            ("num_non_resident", number(vbucket.ejected_count())),
            ("num_temp_items", number(vbucket.lookup_count())),
            ("ht_num_in_memory_items", number(vbucket.document_count_in_memory())),
            ("bloom_filter_key_count", number(filter.key_count())),
            ("bloom_filter_memory", number(filter.bytes())),
            ("ht_num_deleted_items", number(vbucket.tombstone_count())),
            ("ht_memory", number(vbucket.tables_bytes())),
            ("ht_item_memory", number(vbucket.documents_bytes() - vbucket.tables_bytes())),
            ("queue_size", number(vbucket.checkpoints().unflushed_count())),
            ("ops_create", statistics.creations),
            ("ops_update", statistics.updates),
            ("ops_delete", statistics.deletions),
            ("ops_reject", statistics.rejections),
            ("ops_get", statistics.reads),
            ("num_ejects", statistics.ejections),
            ("rollback_item_count", statistics.rollback_items),
            ("high_seqno", vbucket.high_seqno().0),
            ("max_visible_seqno", vbucket.max_visible_seqno().0),
            ("high_prepared_seqno", vbucket.high_prepared_seqno().0),
            ("high_completed_seqno", vbucket.high_completed_seqno().0),
            ("num_prepared_sync_writes", number(vbucket.prepare_count())),
            ("sync_write_accepted_count", statistics.sync_writes_accepted),
            ("sync_write_committed_count", statistics.sync_writes_committed),
            (
                "sync_write_committed_not_durable_count",
                statistics.sync_writes_committed_not_durable,
            ),
            ("sync_write_aborted_count", statistics.sync_writes_aborted),
            ("persistence_seqno", vbucket.persisted_for_clients().0),
            ("purge_seqno", vbucket.purge_seqno().0),
            ("max_cas", vbucket.max_cas().0),
            ("total_abs_drift", drift.total_us),
            ("total_abs_drift_count", drift.count),
            ("drift_ahead_threshold_exceeded", drift.ahead_exceeded),
            ("drift_behind_threshold_exceeded", drift.behind_exceeded),
            ("logical_clock_ticks", vbucket.logical_ticks()),
            ("max_deleted_revid", vbucket.max_deleted_revision().0),
            ("uuid", vbucket.uuid().0),
        ];
        let numbers = numbers.map(|(name, value)| detail(vbid, name, value));
        let is_late = detail(vbid, "takeover_backed_up", vbucket.is_takeover_late());
        let is_whole = detail(vbid, "whole", vbucket.is_whole());
        std::iter::once(state(vbucket)).chain(numbers).chain([is_late, is_whole]).collect()
    })
}

/// Group "vbucket-seqno".
pub(super) fn seqnos(emitter: &mut Emitter<'_, '_>, argument: &str) -> Result<(), NoGroup> {
    for_vbuckets(emitter, argument, |vbucket| {
        let vbid = vbucket.vbid();
        let (high, persisted) = (vbucket.high_seqno().0, vbucket.persisted_for_clients().0);
        let position = vbucket.stream_position();
        // Of what a replica is in the middle of the end counts, as it does for the original.
        let snapshot = match vbucket.state() {
            VbucketState::Active => (persisted, persisted),
            _ => (position.snapshot_start.0, position.snapshot_end.0),
        };
        let numbers: [(&str, u64); 11] = [
            ("high_seqno", high.max(snapshot.1)),
            ("abs_high_seqno", high),
            ("last_persisted_seqno", persisted),
            ("last_applied_seqno", vbucket.applied_seqno().0),
            ("uuid", vbucket.uuid().0),
            ("purge_seqno", vbucket.purge_seqno().0),
            ("last_persisted_snap_start", snapshot.0),
            ("last_persisted_snap_end", snapshot.1),
            ("high_prepared_seqno", vbucket.high_prepared_seqno().0),
            ("high_completed_seqno", vbucket.high_completed_seqno().0),
            ("max_visible_seqno", vbucket.max_visible_seqno().0),
        ];
        numbers.map(|(name, value)| detail(vbid, name, value)).into()
    })
}

/// Group "failovers".
pub(super) fn failovers(emitter: &mut Emitter<'_, '_>, argument: &str) -> Result<(), NoGroup> {
    for_vbuckets(emitter, argument, |vbucket| {
        let vbid = vbucket.vbid();
        let entries = vbucket.failover_entries();
        let mut described = vec![detail(vbid, "num_entries", entries.len())];
        for (index, entry) in entries.iter().enumerate() {
            described.push(detail(vbid, &format!("{index}:id"), entry.uuid));
            described.push(detail(vbid, &format!("{index}:seq"), entry.seqno));
        }
        described
    })
}

/// Group "checkpoint".
pub(super) fn checkpoint(emitter: &mut Emitter<'_, '_>, argument: &str) -> Result<(), NoGroup> {
    for_vbuckets(emitter, argument, |vbucket| {
        let vbid = vbucket.vbid();
        let log = vbucket.checkpoints();
        let (all, open) = (log.extent(), log.open_extent());
        let cursors = log.cursors();
        let mut details = vec![
            detail(vbid, "state", vbucket.state().name()),
            detail(vbid, "open_checkpoint_id", log.open_checkpoint_id()),
            detail(vbid, "num_conn_cursors", cursors.len()),
            detail(vbid, "num_checkpoints", log.checkpoint_count()),
            detail(vbid, "num_checkpoint_items", all.items),
            detail(vbid, "num_open_checkpoint_items", open.items),
            detail(vbid, "mem_usage", all.bytes()),
            detail(vbid, "mem_usage_queued_items", all.item_bytes),
            detail(vbid, "mem_usage_queue_overhead", all.structure_bytes),
            // The hash table is the index.
            detail(vbid, "mem_usage_key_index_overhead", 0),
        ];
        for cursor in cursors {
            let of = |what: &str| format!("{}:{what}", cursor.name);
            let last_read = cursor.next_seqno.0.saturating_sub(1);
            details.extend([
                detail(vbid, &of("cursor_checkpoint_id"), cursor.checkpoint_id),
                detail(vbid, &of("cursor_seqno"), last_read),
                detail(vbid, &of("num_visits"), cursor.visits),
                detail(vbid, &of("num_items_for_cursor"), cursor.remaining),
            ]);
        }
        details
    })
}

/// Group "hash".
pub(super) fn hash(emitter: &mut Emitter<'_, '_>, argument: &str) -> Result<(), NoGroup> {
    for_vbuckets(emitter, argument, |vbucket| {
        let vbid = vbucket.vbid();
        vec![
            detail(vbid, "state", vbucket.state().name()),
            detail(vbid, "counted", vbucket.document_count_in_memory() + vbucket.tombstone_count()),
            detail(vbid, "mem_size", vbucket.documents_bytes()),
        ]
    })
}

/// Group "key": `<key> <vBucket>`, a key of the default collection. What is on disk is read first,
/// so that the request may wait.
pub(super) fn key(emitter: &mut Emitter<'_, '_>, argument: &str) -> Result<(), NoGroup> {
    let (name, vbid) = argument.rsplit_once(' ').ok_or(NoGroup::BadArgument)?;
    let vbid = Vbid(vbid.parse().map_err(|_| NoGroup::BadArgument)?);
    let key = KeyBuf::in_default_collection(name.as_bytes()).map_err(|_| NoGroup::BadArgument)?;
    let bucket: Bucket = emitter.part.bucket.clone();
    let mut here = None;
    bucket.with_vbucket(vbid, |vbucket| {
        here = Some((vbucket.state(), vbucket.persisted_seqno().0));
    });
    let (state, persisted) = here.ok_or(NoGroup::NoSuchVbucket)?;
    let session = &mut *emitter.turn.session;
    let found = match state {
        VbucketState::Active => bucket.get_metadata(session, vbid, key.as_key()),
        VbucketState::Replica => bucket.get_replica(session, vbid, key.as_key()),
        VbucketState::Pending | VbucketState::Dead => return Err(NoGroup::NoSuchVbucket),
    };
    let Attempted::Answered(Found { item, .. }) = found.map_err(NoGroup::Refused)? else {
        return Err(NoGroup::Waits);
    };
    if item.is_deleted() {
        return Err(NoGroup::Refused(Refused::NotFound));
    }
    emitter.emit("key_is_dirty", item.seqno().0 > persisted);
    emitter.emit("key_exptime", item.expiry());
    emitter.emit("key_flags", u32::from_be_bytes(item.flags()));
    emitter.emit("key_cas", item.cas());
    emitter.emit("key_datatype", item.datatype().bits());
    emitter.emit("key_vb_state", state.name());
    emitter.emit("key_is_resident", !item.is_ejected());
    Ok(())
}
