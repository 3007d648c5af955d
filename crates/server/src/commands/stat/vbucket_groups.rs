//! Groups about single vBuckets.

use document::{FailoverEntry, Vbid, VbucketState};
use vbucket::Vbucket;

use super::emitter::{Emitter, NoGroup, vbucket_argument};
use crate::buckets::BucketPart;
use crate::statistic::count as number;

/// Emits what `describe` says about the vBuckets that the argument names. `look` takes it from them
/// under their locks, one after the other; names are put together, and all is sent, behind these.
pub(super) fn for_vbuckets<T>(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
    look: impl Fn(&Vbucket) -> T,
    describe: impl Fn(Vbid, T) -> Vec<(String, String)>,
) -> Result<(), NoGroup> {
    let mut seen = Vec::new();
    let bucket = &part.bucket;
    match vbucket_argument(argument)? {
        None => bucket.for_each_vbucket(|vbid, vbucket| seen.push((vbid, look(vbucket)))),
        Some(vbid) => bucket.with_vbucket(vbid, |vbucket| seen.push((vbid, look(vbucket)))),
    }
    if seen.is_empty() && !argument.is_empty() {
        return Err(NoGroup::NoSuchVbucket);
    }
    for (name, value) in seen.into_iter().flat_map(|(vbid, taken)| describe(vbid, taken)) {
        emitter.emit(&name, value);
    }
    Ok(())
}

/// `vb_<id>:<name>` and the value.
fn detail(vbid: Vbid, name: &str, value: impl std::fmt::Display) -> (String, String) {
    (format!("vb_{vbid}:{name}"), value.to_string())
}

fn state(vbid: Vbid, state: VbucketState) -> (String, String) {
    (format!("vb_{vbid}"), state.name().to_owned())
}

/// Groups "vbucket" and "prev-vbucket".
pub(super) fn states(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    for_vbuckets(emitter, part, argument, Vbucket::state, |vbid, now| vec![state(vbid, now)])
}

/// Group "vbucket-details".
pub(super) fn details(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let look = |vbucket: &Vbucket| {
        let statistics = vbucket.statistics();
        let (filter, drift) = (vbucket.key_filter(), vbucket.drift());
        let numbers: [(&str, u64); 37] = [
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
            ("whole_seqno", vbucket.last_whole_seqno().0),
        ];
        let flags = (vbucket.is_takeover_late(), vbucket.is_whole());
        // How far a copy is says something only together with the history that it is of.
        (vbucket.state(), numbers, flags, vbucket.failover_entries().to_vec())
    };
    for_vbuckets(
        emitter,
        part,
        argument,
        look,
        |vbid, (now, numbers, (is_late, is_whole), entries)| {
            let numbers = numbers.map(|(name, value)| detail(vbid, name, value));
            let others = [
                detail(vbid, "takeover_backed_up", is_late),
                detail(vbid, "whole", is_whole),
                detail(vbid, "branches", branches(&entries)),
            ];
            std::iter::once(state(vbid, now)).chain(numbers).chain(others).collect()
        },
    )
}

/// `uuid:seqno` of each branch, newest first, with commas between.
fn branches(entries: &[FailoverEntry]) -> String {
    let named = entries.iter().map(|entry| format!("{}:{}", entry.uuid.0, entry.seqno.0));
    named.collect::<Vec<_>>().join(",")
}

/// Group "vbucket-seqno".
pub(super) fn seqnos(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let look = |vbucket: &Vbucket| {
        let (high, persisted) = (vbucket.high_seqno().0, vbucket.persisted_for_clients().0);
        let position = vbucket.stream_position();
        // Of what a replica is in the middle of the end counts, as it does for the original.
        let snapshot = match vbucket.state() {
            VbucketState::Active => (persisted, persisted),
            _ => (position.snapshot_start.0, position.snapshot_end.0),
        };
        [
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
        ]
    };
    for_vbuckets(emitter, part, argument, look, |vbid, numbers: [(&str, u64); 11]| {
        numbers.map(|(name, value)| detail(vbid, name, value)).into()
    })
}

/// Group "failovers".
pub(super) fn failovers(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let look = |vbucket: &Vbucket| vbucket.failover_entries().to_vec();
    for_vbuckets(emitter, part, argument, look, |vbid, entries| {
        let mut described = vec![detail(vbid, "num_entries", entries.len())];
        for (index, entry) in entries.iter().enumerate() {
            described.push(detail(vbid, &format!("{index}:id"), entry.uuid));
            described.push(detail(vbid, &format!("{index}:seq"), entry.seqno));
        }
        described
    })
}

/// Group "checkpoint".
pub(super) fn checkpoint(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let look = |vbucket: &Vbucket| {
        let log = vbucket.checkpoints();
        let (all, open) = (log.extent(), log.open_extent());
        let numbers = [
            ("open_checkpoint_id", log.open_checkpoint_id()),
            ("num_conn_cursors", number(log.cursors().len())),
            ("num_checkpoints", log.checkpoint_count()),
            ("num_checkpoint_items", number(all.items)),
            ("num_open_checkpoint_items", number(open.items)),
            ("mem_usage", number(all.bytes())),
            ("mem_usage_queued_items", number(all.item_bytes)),
            ("mem_usage_queue_overhead", number(all.structure_bytes)),
            // The hash table is the index.
            ("mem_usage_key_index_overhead", 0),
        ];
        (vbucket.state(), numbers, log.cursors())
    };
    for_vbuckets(emitter, part, argument, look, |vbid, (now, numbers, cursors)| {
        let mut details = vec![detail(vbid, "state", now.name())];
        details.extend(numbers.map(|(name, value)| detail(vbid, name, value)));
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
pub(super) fn hash(
    emitter: &mut Emitter<'_, '_>,
    part: &BucketPart,
    argument: &str,
) -> Result<(), NoGroup> {
    let look = |vbucket: &Vbucket| {
        let counted = vbucket.document_count_in_memory() + vbucket.tombstone_count();
        (vbucket.state(), counted, vbucket.documents_bytes())
    };
    for_vbuckets(emitter, part, argument, look, |vbid, (now, counted, bytes)| {
        vec![
            detail(vbid, "state", now.name()),
            detail(vbid, "counted", counted),
            detail(vbid, "mem_size", bytes),
        ]
    })
}
