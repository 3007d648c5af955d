//! The general statistics, under the names that operators and their dashboards know.

use super::{Emitter, NoGroup};

/// Group "".
pub(super) fn all(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    process(emitter);
    super::classic::general(emitter);
    for (name, value) in emitter.turn.shared.statistics().all() {
        emitter.emit(name, value);
    }
    let bucket = emitter.bucket.statistics();
    let vbuckets = bucket.vbuckets;
    let used_bytes = bucket.used_bytes();
    let is_failing = bucket.disk_block.is_some();
    let resident = bucket.document_count - bucket.ejected_count;
    let resident_percent = (resident * 100).checked_div(bucket.document_count).unwrap_or(100);
    let numbers: [(&str, u64); _] = [
        ("mem_used", used_bytes),
        ("ep_kv_size", bucket.documents_bytes),
        ("ep_checkpoint_memory", bucket.checkpoints_bytes),
        ("ep_checkpoint_memory_pending_destruction", bucket.checkpoints_pending_bytes),
        ("ep_checkpoint_memory_quota", bucket.checkpoints_quota_bytes),
        ("ep_checkpoint_memory_recovery_upper_mark_bytes", bucket.checkpoints_upper_mark_bytes),
        ("ep_checkpoint_memory_recovery_lower_mark_bytes", bucket.checkpoints_lower_mark_bytes),
        ("ep_checkpoint_memory_recovery_runs", bucket.checkpoint_recoveries),
        ("ep_checkpoint_computed_max_size", number(bucket.checkpoint_bytes_max)),
        ("ep_items_rm_from_checkpoints", bucket.checkpoint_items_removed),
        ("ep_mem_freed_by_checkpoint_removal", bucket.checkpoint_bytes_removed),
        ("ep_cursors_dropped", bucket.cursors_dropped),
        ("ep_checkpoint_refusals", bucket.checkpoint_refusals),
        ("ep_max_size", bucket.memory_quota_bytes),
        ("ep_mem_low_wat", bucket.watermarks.low_bytes),
        ("ep_mem_high_wat", bucket.watermarks.high_bytes),
        ("ep_mutation_mem_limit", bucket.used_bytes_max),
        ("ep_tmp_oom_errors", bucket.memory_refusals),
        ("ep_oom_errors", 0),
        ("ep_disk_refusals", bucket.disk_refusals),
        ("ep_disk_failing", u64::from(is_failing)),
        ("ep_vbuckets_damaged", number(bucket.damaged_vbucket_count)),
        ("curr_items", number(bucket.active_document_count)),
        ("curr_items_tot", number(bucket.document_count)),
        ("ep_num_non_resident", number(bucket.ejected_count)),
        ("vb_active_perc_mem_resident", number(resident_percent)),
        ("ep_queue_size", number(bucket.queued_item_count)),
        ("ep_diskqueue_items", number(bucket.queued_item_count)),
        ("ep_flusher_todo", number(bucket.queued_vbucket_count)),
        ("ep_num_checkpoints", bucket.checkpoint_count),
        ("ep_commit_num", bucket.commits),
        ("ep_item_commit_failed", bucket.commits_failed),
        ("ep_data_write_failed", bucket.write_failures()),
        ("ep_data_read_failed", bucket.reads_failed),
        ("ep_total_persisted", bucket.items_persisted),
        ("ep_total_deduplicated", vbuckets.deduplications),
        ("ep_total_deduplicated_flusher", bucket.flusher_deduplications),
        ("ep_bg_fetched", bucket.values_fetched),
        ("ep_bg_meta_fetched", bucket.documents_fetched),
        ("ep_bg_remaining_items", number(bucket.fetches_waiting)),
        ("ep_num_value_ejects", vbuckets.ejections),
        ("vb_active_eject", vbuckets.ejections),
        ("ep_num_pager_runs", bucket.pager_rounds),
        ("ep_num_freq_decayer_runs", bucket.decayer_rounds),
        ("curr_temp_items", number(bucket.lookup_count)),
        ("ep_bloom_filter_keys", number(bucket.filter_key_count)),
        ("ep_bloom_filter_memory", number(bucket.filter_bytes)),
        ("ep_num_evicted_items", number(bucket.evicted_count)),
        ("ep_num_expiry_pager_runs", bucket.expiry_pager_rounds),
        ("ep_item_compressor_num_visited", bucket.compressor_visited),
        ("ep_item_compressor_num_compressed", bucket.compressor_compressed),
        ("ep_defragmenter_runs", bucket.defragmenter_rounds),
        ("ep_defragmenter_num_moved", bucket.defragmenter_moved),
        ("vb_active_ops_create", vbuckets.creations),
        ("vb_active_ops_update", vbuckets.updates),
        ("vb_active_ops_delete", vbuckets.deletions),
        ("vb_active_ops_reject", vbuckets.rejections),
        ("vb_active_expired", vbuckets.expirations),
        ("vb_active_auto_delete_count", vbuckets.auto_deletions),
        ("vb_active_ht_tombstone_purged_count", vbuckets.purged_tombstones),
        ("ep_pending_ops", number(bucket.parked_count)),
        ("ep_rollback_count", bucket.rollbacks),
        ("rollback_item_count", vbuckets.rollback_items),
        ("vb_active_num", number(bucket.vbucket_counts[0])),
        ("vb_replica_num", number(bucket.vbucket_counts[1])),
        ("vb_pending_num", number(bucket.vbucket_counts[2])),
        ("vb_dead_num", number(bucket.vbucket_counts[3])),
    ];
    for (name, value) in numbers {
        emitter.emit(name, value);
    }
    super::compaction::counters(emitter);
    for (name, count) in DATATYPE_NAMES.iter().zip(bucket.datatype_counts) {
        emitter.emit(&format!("ep_active_datatype_{name}"), count);
    }
    Ok(())
}

/// The names of datatypes, by their bits.
const DATATYPE_NAMES: [&str; 8] = [
    "raw",
    "json",
    "snappy",
    "snappy,json",
    "xattr",
    "json,xattr",
    "snappy,xattr",
    "snappy,json,xattr",
];

fn process(emitter: &mut Emitter<'_, '_>) {
    let shared = emitter.turn.shared;
    let uptime = shared.clock.now().since(shared.started);
    emitter.emit("pid", platform::process::id());
    emitter.emit("uptime", uptime.as_secs());
    emitter.emit("time", shared.clock.wall_time().seconds());
    emitter.emit("version", &shared.options.version);
    emitter.emit("threads", shared.mailboxes.count());
    emitter.emit("max_connections", shared.options.limits.connections_max);
    emitter.emit("resident_bytes", platform::process::resident_bytes());
    emitter.emit("cpu_time_ns", platform::process::cpu_time_ns());
}

/// Group "clocks".
pub(super) fn clocks(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    let clock = &emitter.turn.shared.clock;
    let (now, wall) = (clock.now(), clock.wall_time());
    emitter.emit("clock.monotonic_ns", now.0);
    emitter.emit("clock.wall_ns", wall.0);
    Ok(())
}

/// Group "connections".
pub(super) fn connections(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    let statistics = emitter.turn.shared.statistics();
    let limits = emitter.turn.shared.options.limits;
    emitter.emit("curr_connections", statistics.curr_connections);
    emitter.emit("total_connections", statistics.total_connections);
    emitter.emit("rejected_connections", statistics.rejected_connections);
    emitter.emit("connections_max", limits.connections_max);
    emitter.emit("packet_bytes_max", limits.packet_bytes_max);
    emitter.emit("unsent_bytes_max", limits.unsent_bytes_max);
    emitter.emit("unauthenticated_unsent_bytes_max", limits.unauthenticated_unsent_bytes_max);
    emitter.emit("parked_requests_max", limits.parked_requests_max);
    emitter.emit("client_bytes", emitter.turn.shared.client_memory.used_bytes());
    emitter.emit("client_bytes_max", emitter.turn.shared.client_memory.bytes_max());
    emitter.emit("login_time_max_s", limits.login_time_max.as_secs());
    emitter.emit("login_timeouts", statistics.login_timeouts);
    emitter.emit("stalled_write_time_max_s", limits.stalled_write_time_max.as_secs());
    emitter.emit("stalled_writes", statistics.stalled_writes);
    emitter.emit("refused_large_requests", statistics.refused_large_requests);
    Ok(())
}

/// Group "info".
pub(super) fn info(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    let version = emitter.turn.shared.options.version.clone();
    emitter.emit("info", format!(r#"{{"version":"{version}"}}"#));
    Ok(())
}

/// Group "settings".
pub(super) fn settings(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    let shared = emitter.turn.shared;
    emitter.emit("num_threads", shared.mailboxes.count());
    emitter.emit("maxconns", shared.options.limits.connections_max);
    emitter.emit("item_size_max", document::limits::VALUE_SIZE_MAX);
    emitter.emit("binding_protocol", "binary");
    emitter.emit("cas_enabled", "yes");
    emitter.emit("flush_enabled", if shared.options.flush_enabled { "yes" } else { "no" });
    Ok(())
}

/// Group "uuid".
pub(super) fn uuid(emitter: &mut Emitter<'_, '_>, _argument: &str) -> Result<(), NoGroup> {
    let uuid = emitter.bucket.uuid().to_owned();
    emitter.emit("uuid", uuid);
    Ok(())
}

pub(super) fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
