//! The statistics of a bucket, a row each: STAT shows them, Prometheus reads them.

use bucket::BucketStatistics;

use crate::command_statistics::operations;
use crate::statistic::{MetricName, Statistic, count};

type Row = Statistic<BucketStatistics>;

const DRIFT_HELP: &str = "Time between the clocks of others and this one";
const DRIFT_COUNT_HELP: &str = "Versions of other clocks";
const AHEAD_HELP: &str = "Versions too far ahead of this node's clock";
const BEHIND_HELP: &str = "Versions too far behind this node's clock";

const LOST_HELP: &str = "Versions from elsewhere that did not win, by what they were";
const DATATYPE_HELP: &str = "Documents in memory, by their datatype";

const MEMORY_HELP: &str = "Memory by what it is for";
const HASH_TABLES: &[(&str, &str)] = &[("for", "hashtable")];

const ACTIVE: &[(&str, &str)] = &[("state", "active")];
const REPLICA: &[(&str, &str)] = &[("state", "replica")];

/// Of memory, documents, vBuckets and background work.
pub static BUCKET_STATISTICS: &[Row] = &[
    Row::gauge("Memory that counts against the quota", BucketStatistics::used_bytes)
        .bytes()
        .stat(&[("mem_used", &["", "memory"]), ("total_malloced", &["slabs"])])
        .metric("kv_mem_used_bytes"),
    Row::gauge("Memory that counts against the quota", BucketStatistics::used_bytes)
        .bytes()
        .metric("kv_total_memory_used_bytes"),
    // It is not estimated.
    Row::gauge("Memory that counts against the quota", BucketStatistics::used_bytes)
        .bytes()
        .metric("kv_mem_used_estimate_bytes"),
    Row::gauge("Documents in memory", BucketStatistics::items_bytes)
        .bytes()
        .metric("kv_ep_total_cache_size_bytes"),
    Row::gauge("Documents in memory, and the tables that find them", |it| it.documents_bytes)
        .bytes()
        .stat(&[
            ("ep_kv_size", &["", "memory"]),
            ("bytes", &[""]),
            ("items:1:mem_requested", &["items"]),
            ("1:mem_requested", &["slabs"]),
        ])
        .metric("kv_ep_kv_size_bytes"),
    Row::gauge(
        "Memory that is no documents: tables, logs and filters",
        BucketStatistics::overhead_bytes,
    )
    .bytes()
    .stat(&[("ep_overhead", &["", "memory"])])
    .metric("kv_total_memory_overhead_bytes"),
    Row::gauge("Tables that find documents", |it| it.tables_bytes)
        .bytes()
        .read_as(MetricName::one_of("kv_memory_used_bytes", MEMORY_HELP, HASH_TABLES)),
    Row::gauge("Memory of checkpoints", |it| it.checkpoints_bytes)
        .bytes()
        .stat(&[("ep_checkpoint_memory", &["", "memory"])])
        .metric("kv_ep_checkpoint_memory_bytes"),
    Row::gauge("Checkpoints that have left their logs and wait to be freed", |it| {
        it.checkpoints_pending_bytes
    })
    .bytes()
    .stat(&[("ep_checkpoint_memory_pending_destruction", &[""])])
    .metric("kv_ep_checkpoint_memory_pending_destruction_bytes"),
    Row::gauge("What checkpoints may take", |it| it.checkpoints_quota_bytes)
        .bytes()
        .stat(&[("ep_checkpoint_memory_quota", &[""])])
        .metric("kv_ep_checkpoint_memory_quota_bytes"),
    Row::gauge("Memory of checkpoints from which on it is recovered", |it| {
        it.checkpoints_upper_mark_bytes
    })
    .bytes()
    .stat(&[("ep_checkpoint_memory_recovery_upper_mark_bytes", &[""])])
    .metric("kv_ep_checkpoint_memory_recovery_upper_mark_bytes"),
    Row::gauge("Memory of checkpoints down to which it is recovered", |it| {
        it.checkpoints_lower_mark_bytes
    })
    .bytes()
    .stat(&[("ep_checkpoint_memory_recovery_lower_mark_bytes", &[""])])
    .metric("kv_ep_checkpoint_memory_recovery_lower_mark_bytes"),
    Row::counter("Runs of the recovery of checkpoints' memory", |it| it.checkpoint_recoveries)
        .stat(&[("ep_checkpoint_memory_recovery_runs", &[""])]),
    Row::gauge("What an open checkpoint may take while there are streams", |it| {
        count(it.checkpoint_bytes_max)
    })
    .bytes()
    .stat(&[("ep_checkpoint_computed_max_size", &[""])])
    .metric("kv_ep_checkpoint_computed_max_size_bytes"),
    Row::counter("Items that have left logs", |it| it.checkpoint_items_removed)
        .stat(&[("ep_items_rm_from_checkpoints", &[""])])
        .metric("kv_ep_items_rm_from_checkpoints"),
    Row::counter("What items that have left logs were, with their slots", |it| {
        it.checkpoint_bytes_removed
    })
    .bytes()
    .stat(&[("ep_mem_freed_by_checkpoint_removal", &[""])])
    .metric("kv_ep_mem_freed_by_checkpoint_removal_bytes"),
    Row::counter("Cursors of streams that the recovery dropped", |it| it.cursors_dropped)
        .stat(&[("ep_cursors_dropped", &[""])])
        .metric("kv_ep_cursors_dropped"),
    Row::counter("Writes refused because of checkpoints", |it| it.checkpoint_refusals)
        .stat(&[("ep_checkpoint_refusals", &[""])])
        .metric("settee_checkpoint_refusals_total"),
    Row::gauge("The memory quota in bytes", |it| it.memory_quota_bytes)
        .bytes()
        .stat(&[("ep_max_size", &["", "memory"]), ("limit_maxbytes", &[""])])
        .metric("kv_ep_max_size"),
    Row::gauge("Memory down to which values leave it", |it| it.watermarks.low_bytes)
        .bytes()
        .stat(&[("ep_mem_low_wat", &["", "memory"])])
        .metric("kv_ep_mem_low_wat"),
    Row::gauge("Memory from which on values leave it", |it| it.watermarks.high_bytes)
        .bytes()
        .stat(&[("ep_mem_high_wat", &["", "memory"])])
        .metric("kv_ep_mem_high_wat"),
    Row::gauge("Memory above which writes are refused", |it| it.used_bytes_max)
        .bytes()
        .stat(&[("ep_mutation_mem_limit", &["", "memory"])])
        .metric("kv_ep_mutation_mem_limit"),
    Row::counter("Writes without memory", |it| it.memory_refusals)
        .stat(&[("ep_tmp_oom_errors", &[""]), ("items:1:outofmemory", &["items"])])
        .metric("kv_ep_tmp_oom_errors"),
    Row::counter("Always 0: a write without memory may be tried again", |_| 0)
        .stat(&[("ep_oom_errors", &[""])])
        .metric("kv_ep_oom_errors"),
    Row::counter("Writes refused because of the disk", |it| it.disk_refusals)
        .stat(&[("ep_disk_refusals", &[""])])
        .metric("settee_disk_refusals_total"),
    Row::gauge("Whether writes are refused because of the disk: 0 or 1", |it| {
        u64::from(it.disk_block.is_some())
    })
    .stat(&[("ep_disk_failing", &[""])])
    .metric("settee_disk_failing"),
    Row::gauge("vBuckets whose files are damaged", |it| count(it.damaged_vbucket_count))
        .stat(&[("ep_vbuckets_damaged", &[""])])
        .metric("settee_vbuckets_damaged"),
    Row::gauge("Copies that do not surely have what others hold", |it| count(it.incomplete_count))
        .stat(&[("ep_vbuckets_incomplete", &[""])])
        .metric("settee_vbuckets_incomplete"),
    Row::gauge("Live documents of active vBuckets", |it| count(it.active_document_count))
        .stat(&[("curr_items", &[""]), ("items:1:number", &["items"])])
        .metric("kv_curr_items"),
    Row::gauge("Live documents", |it| count(it.document_count))
        .stat(&[("curr_items_tot", &[""]), ("1:used_chunks", &["slabs"])])
        .metric("kv_curr_items_tot"),
    Row::counter("Documents created or changed", |it| it.vbuckets.creations + it.vbuckets.updates)
        .stat(&[("total_items", &[""])]),
    Row::gauge("Values on disk alone", |it| count(it.ejected_count))
        .stat(&[("ep_num_non_resident", &[""])])
        .metric("kv_ep_num_non_resident"),
    Row::gauge("Writes that wait to become durable", |it| count(it.queued_item_count))
        .stat(&[("ep_queue_size", &[""])])
        .metric("kv_ep_queue_size"),
    Row::gauge("Writes that wait to become durable", |it| count(it.queued_item_count))
        .stat(&[("ep_diskqueue_items", &[""])])
        .metric("kv_ep_diskqueue_items"),
    Row::counter("Writes queued to become durable", |it| it.vbuckets.queue_fills)
        .stat(&[("ep_diskqueue_fill", &[""])])
        .metric("kv_ep_diskqueue_fill"),
    Row::counter("Writes queued to become durable", |it| it.vbuckets.queue_fills)
        .stat(&[("ep_total_enqueued", &[""])])
        .metric("kv_ep_total_enqueued"),
    Row::counter("Queued writes made durable", |it| it.vbuckets.queue_drains)
        .stat(&[("ep_diskqueue_drain", &[""])])
        .metric("kv_ep_diskqueue_drain"),
    Row::gauge("vBuckets that wait for a flusher", |it| count(it.queued_vbucket_count))
        .stat(&[("ep_flusher_todo", &[""])])
        .metric("kv_ep_flusher_todo"),
    Row::gauge("How long the oldest write waits that is not durable", |it| {
        u64::try_from(it.oldest_unflushed.as_micros()).unwrap_or(u64::MAX)
    })
    .microseconds()
    .stat(&[("ep_storage_age", &[""])])
    .metric("kv_ep_storage_age_seconds"),
    Row::gauge("Checkpoints of all vBuckets", |it| it.checkpoint_count)
        .stat(&[("ep_num_checkpoints", &[""])])
        .metric("kv_ep_num_checkpoints"),
    Row::counter("Commits of files or of the journal", |it| it.commits)
        .stat(&[("ep_commit_num", &[""]), ("rw_0:commits", &["kvstore"])])
        .metric("kv_ep_commit_num"),
    Row::counter("Commits that failed, and were tried again", |it| it.commits_failed)
        .stat(&[("ep_item_commit_failed", &[""]), ("rw_0:failure_set", &["kvstore"])])
        .metric("kv_ep_item_commit_failed"),
    Row::counter("Writes that failed", BucketStatistics::write_failures)
        .stat(&[("ep_data_write_failed", &[""])])
        .metric("kv_ep_data_write_failed"),
    Row::counter("Reads that failed", |it| it.reads_failed)
        .stat(&[("ep_data_read_failed", &[""]), ("rw_0:failure_get", &["kvstore"])])
        .metric("kv_ep_data_read_failed"),
    Row::counter("Writes made durable", |it| it.items_persisted)
        .stat(&[("ep_total_persisted", &[""]), ("rw_0:items_persisted", &["kvstore"])])
        .metric("kv_ep_total_persisted"),
    Row::counter("Versions in logs that a newer one made superfluous", |it| {
        it.vbuckets.deduplications
    })
    .stat(&[("ep_total_deduplicated", &[""])])
    .metric("kv_ep_total_deduplicated"),
    Row::counter("Queued versions that a newer one in the same flush made superfluous", |it| {
        it.flusher_deduplications
    })
    .stat(&[("ep_total_deduplicated_flusher", &[""])])
    .metric("kv_ep_total_deduplicated_flusher"),
    Row::counter("Values read from disk", |it| it.values_fetched)
        .stat(&[("ep_bg_fetched", &[""])])
        .metric("kv_ep_bg_fetched"),
    Row::counter("Keys read from disk", |it| it.documents_fetched)
        .stat(&[("ep_bg_meta_fetched", &[""])])
        .metric("kv_ep_bg_meta_fetched"),
    Row::gauge("Requests that wait for values", |it| count(it.fetches_waiting))
        .stat(&[("ep_bg_remaining_items", &[""])])
        .metric("kv_ep_bg_remaining_items"),
    Row::counter("Values that left memory", |it| it.vbuckets.ejections)
        .stat(&[("ep_num_value_ejects", &[""])])
        .metric("kv_ep_num_value_ejects"),
    Row::counter("Rounds of the pager", |it| it.pager_rounds)
        .stat(&[("ep_num_pager_runs", &[""])])
        .metric("kv_ep_num_pager_runs"),
    Row::counter("Rounds that halve frequency counters", |it| it.decayer_rounds)
        .stat(&[("ep_num_freq_decayer_runs", &[""])])
        .metric("kv_ep_num_freq_decayer_runs"),
    Row::gauge("Keys being looked up on disk", |it| count(it.lookup_count))
        .stat(&[("curr_temp_items", &[""])])
        .metric("kv_curr_temp_items"),
    Row::gauge("Keys in the filters of what is on disk and may not be in memory", |it| {
        count(it.filter_key_count)
    })
    .stat(&[("ep_bloom_filter_keys", &[""])]),
    Row::gauge("Memory of the filters of keys", |it| count(it.filter_bytes))
        .bytes()
        .stat(&[("ep_bloom_filter_memory", &[""])]),
    Row::gauge("Documents of which nothing is in memory", |it| count(it.evicted_count))
        .stat(&[("ep_num_evicted_items", &[""])]),
    Row::gauge("vBuckets whose keys are to stay in memory and are not all there yet", |it| {
        count(it.loading_keys_count)
    })
    .stat(&[("ep_vbuckets_loading_keys", &[""])]),
    Row::counter("Rounds of the expiry pager", |it| it.expiry_pager_rounds)
        .stat(&[("ep_num_expiry_pager_runs", &[""])])
        .metric("kv_ep_num_expiry_pager_runs"),
    Row::counter("Documents that the compressor looked at", |it| it.compressor_visited)
        .stat(&[("ep_item_compressor_num_visited", &[""])])
        .metric("kv_ep_item_compressor_num_visited"),
    Row::counter("Documents that the compressor compressed", |it| it.compressor_compressed)
        .stat(&[("ep_item_compressor_num_compressed", &[""])])
        .metric("kv_ep_item_compressor_num_compressed"),
    Row::counter("Rounds of the defragmenter", |it| it.defragmenter_rounds)
        .stat(&[("ep_defragmenter_runs", &[""])]),
    Row::counter("Documents that the defragmenter moved", |it| it.defragmenter_moved)
        .stat(&[("ep_defragmenter_num_moved", &[""])])
        .metric("kv_ep_defragmenter_num_moved"),
    Row::counter("Documents that a full ephemeral bucket deleted", |it| it.vbuckets.auto_deletions)
        .stat(&[("evictions", &[""]), ("items:1:evicted", &["items"])]),
    Row::counter("Versions taken that came about elsewhere", |it| it.vbuckets.foreign_stores)
        .stat(&[("ep_num_ops_set_meta", &[""])])
        .read_as(operations(&[("op", "set_meta"), ("result", "hit")])),
    Row::counter("Tombstones taken that came about elsewhere", |it| it.vbuckets.foreign_deletions)
        .stat(&[("ep_num_ops_del_meta", &[""])])
        .read_as(operations(&[("op", "del_meta"), ("result", "hit")])),
    Row::counter("Versions from elsewhere that did not win", |it| it.vbuckets.foreign_stores_lost)
        .stat(&[("ep_num_ops_set_meta_res_fail", &[""])])
        .read_as(lost(&[("op", "set_meta")])),
    Row::counter("Tombstones from elsewhere that did not win", |it| {
        it.vbuckets.foreign_deletions_lost
    })
    .stat(&[("ep_num_ops_del_meta_res_fail", &[""])])
    .read_as(lost(&[("op", "del_meta")])),
    Row::counter("Time between the clocks of others and this one, in active vBuckets", |it| {
        it.active_drift.total_us
    })
    .microseconds()
    .stat(&[("ep_active_hlc_drift", &[""])])
    .read_as(MetricName::one_of("kv_ep_hlc_drift_seconds", DRIFT_HELP, ACTIVE)),
    Row::counter("Time between the clocks of others and this one, in replicas", |it| {
        it.replica_drift.total_us
    })
    .microseconds()
    .stat(&[("ep_replica_hlc_drift", &[""])])
    .read_as(MetricName::one_of("kv_ep_hlc_drift_seconds", DRIFT_HELP, REPLICA)),
    Row::counter("Versions of other clocks, in active vBuckets", |it| it.active_drift.count)
        .stat(&[("ep_active_hlc_drift_count", &[""])])
        .read_as(MetricName::one_of("kv_ep_hlc_drift_count", DRIFT_COUNT_HELP, ACTIVE)),
    Row::counter("Versions of other clocks, in replicas", |it| it.replica_drift.count)
        .stat(&[("ep_replica_hlc_drift_count", &[""])])
        .read_as(MetricName::one_of("kv_ep_hlc_drift_count", DRIFT_COUNT_HELP, REPLICA)),
    Row::counter("Versions too far ahead of this node's clock, in active vBuckets", |it| {
        it.active_drift.ahead_exceeded
    })
    .stat(&[("ep_active_ahead_exceptions", &[""])])
    .read_as(MetricName::one_of("kv_ep_ahead_exceptions", AHEAD_HELP, ACTIVE)),
    Row::counter("Versions too far ahead of this node's clock, in replicas", |it| {
        it.replica_drift.ahead_exceeded
    })
    .stat(&[("ep_replica_ahead_exceptions", &[""])])
    .read_as(MetricName::one_of("kv_ep_ahead_exceptions", AHEAD_HELP, REPLICA)),
    Row::counter("Versions too far behind this node's clock, in active vBuckets", |it| {
        it.active_drift.behind_exceeded
    })
    .stat(&[("ep_active_behind_exceptions", &[""])])
    .read_as(MetricName::one_of("kv_ep_behind_exceptions", BEHIND_HELP, ACTIVE)),
    Row::counter("Versions too far behind this node's clock, in replicas", |it| {
        it.replica_drift.behind_exceeded
    })
    .stat(&[("ep_replica_behind_exceptions", &[""])])
    .read_as(MetricName::one_of("kv_ep_behind_exceptions", BEHIND_HELP, REPLICA)),
    Row::counter("Versions too far ahead or behind", drift_exceptions)
        .stat(&[("ep_clock_cas_drift_threshold_exceeded", &[""])])
        .metric("kv_ep_clock_cas_drift_threshold_exceeded"),
    Row::gauge("Requests that wait for pending vBuckets to take up another role", |it| {
        count(it.parked_count)
    })
    .stat(&[("ep_pending_ops", &[""])])
    .metric("kv_ep_pending_ops"),
    Row::counter("Rollbacks of vBuckets", |it| it.rollbacks)
        .stat(&[("ep_rollback_count", &[""])])
        .metric("kv_ep_rollback_count"),
    Row::gauge("vBuckets of all roles", BucketStatistics::vbucket_count)
        .stat(&[("ep_vb_total", &[""])])
        .metric("kv_ep_vb_total"),
    Row::gauge("Dead vBuckets", |it| count(it.by_state[3].vbucket_count))
        .stat(&[("vb_dead_num", &[""])]),
    datatypes(&[("ep_active_datatype_raw", &[""])], &[("datatype", "raw")], |it| {
        count(it.datatype_counts[0])
    }),
    datatypes(&[("ep_active_datatype_json", &[""])], &[("datatype", "json")], |it| {
        count(it.datatype_counts[1])
    }),
    datatypes(&[("ep_active_datatype_snappy", &[""])], &[("datatype", "snappy")], |it| {
        count(it.datatype_counts[2])
    }),
    datatypes(&[("ep_active_datatype_snappy,json", &[""])], &[("datatype", "snappy,json")], |it| {
        count(it.datatype_counts[3])
    }),
    datatypes(&[("ep_active_datatype_xattr", &[""])], &[("datatype", "xattr")], |it| {
        count(it.datatype_counts[4])
    }),
    datatypes(&[("ep_active_datatype_json,xattr", &[""])], &[("datatype", "json,xattr")], |it| {
        count(it.datatype_counts[5])
    }),
    datatypes(
        &[("ep_active_datatype_snappy,xattr", &[""])],
        &[("datatype", "snappy,xattr")],
        |it| count(it.datatype_counts[6]),
    ),
    datatypes(
        &[("ep_active_datatype_snappy,json,xattr", &[""])],
        &[("datatype", "snappy,json,xattr")],
        |it| count(it.datatype_counts[7]),
    ),
    Row::counter("Items that rollbacks took back", |it| it.vbuckets.rollback_items)
        .stat(&[("rollback_item_count", &[""])])
        .metric("kv_rollback_item_count"),
];

/// Versions from elsewhere that a resolution of conflicts has refused.
const fn lost(labels: &'static [(&'static str, &'static str)]) -> MetricName {
    MetricName::one_of("kv_ops_failed", LOST_HELP, labels)
}

/// The documents of one datatype.
const fn datatypes(
    shown: &'static [(&'static str, &'static [&'static str])],
    labels: &'static [(&'static str, &'static str)],
    read: fn(&BucketStatistics) -> u64,
) -> Row {
    let name = MetricName::one_of("kv_datatype_count", DATATYPE_HELP, labels);
    Row::gauge(DATATYPE_HELP, read).stat(shown).read_as(name)
}

fn drift_exceptions(it: &BucketStatistics) -> u64 {
    let of = |drift: vbucket::Drift| drift.ahead_exceeded + drift.behind_exceeded;
    of(it.active_drift) + of(it.replica_drift)
}
