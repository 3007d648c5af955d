//! The statistics of a bucket, a row each: STAT shows them, Prometheus reads them.

use bucket::BucketStatistics;

use crate::statistic::{MetricName, Statistic, count};

type Row = Statistic<BucketStatistics>;

const DRIFT_HELP: &str = "Time between the clocks of others and this one";
const DRIFT_COUNT_HELP: &str = "Versions of other clocks";
const AHEAD_HELP: &str = "Versions too far ahead of this node's clock";
const BEHIND_HELP: &str = "Versions too far behind this node's clock";

const ACTIVE: &[(&str, &str)] = &[("state", "active")];
const REPLICA: &[(&str, &str)] = &[("state", "replica")];

/// Of memory, documents, vBuckets and background work.
pub static BUCKET_STATISTICS: &[Row] = &[
    Row::gauge("Memory that counts against the quota", BucketStatistics::used_bytes)
        .bytes()
        .stat(&[("mem_used", &["", "memory"]), ("total_malloced", &["slabs"])])
        .metric("kv_mem_used_bytes"),
    Row::gauge("Documents in memory, and the tables that find them", |it| it.documents_bytes)
        .bytes()
        .stat(&[
            ("ep_kv_size", &["", "memory"]),
            ("bytes", &[""]),
            ("items:1:mem_requested", &["items"]),
            ("1:mem_requested", &["slabs"]),
        ]),
    Row::gauge("Memory of checkpoints", |it| it.checkpoints_bytes)
        .bytes()
        .stat(&[("ep_checkpoint_memory", &["", "memory"])])
        .metric("kv_ep_checkpoint_memory_bytes"),
    Row::gauge("Checkpoints that have left their logs and wait to be freed", |it| {
        it.checkpoints_pending_bytes
    })
    .bytes()
    .stat(&[("ep_checkpoint_memory_pending_destruction", &[""])]),
    Row::gauge("What checkpoints may take", |it| it.checkpoints_quota_bytes)
        .bytes()
        .stat(&[("ep_checkpoint_memory_quota", &[""])]),
    Row::gauge("Memory of checkpoints from which on it is recovered", |it| {
        it.checkpoints_upper_mark_bytes
    })
    .bytes()
    .stat(&[("ep_checkpoint_memory_recovery_upper_mark_bytes", &[""])]),
    Row::gauge("Memory of checkpoints down to which it is recovered", |it| {
        it.checkpoints_lower_mark_bytes
    })
    .bytes()
    .stat(&[("ep_checkpoint_memory_recovery_lower_mark_bytes", &[""])]),
    Row::counter("Runs of the recovery of checkpoints' memory", |it| it.checkpoint_recoveries)
        .stat(&[("ep_checkpoint_memory_recovery_runs", &[""])]),
    Row::gauge("What an open checkpoint may take while there are streams", |it| {
        count(it.checkpoint_bytes_max)
    })
    .bytes()
    .stat(&[("ep_checkpoint_computed_max_size", &[""])]),
    Row::counter("Items that have left logs", |it| it.checkpoint_items_removed)
        .stat(&[("ep_items_rm_from_checkpoints", &[""])]),
    Row::counter("What items that have left logs were, with their slots", |it| {
        it.checkpoint_bytes_removed
    })
    .bytes()
    .stat(&[("ep_mem_freed_by_checkpoint_removal", &[""])]),
    Row::counter("Cursors of streams that the recovery dropped", |it| it.cursors_dropped)
        .stat(&[("ep_cursors_dropped", &[""])]),
    Row::counter("Writes refused because of checkpoints", |it| it.checkpoint_refusals)
        .stat(&[("ep_checkpoint_refusals", &[""])]),
    Row::gauge("The memory quota in bytes", |it| it.memory_quota_bytes)
        .bytes()
        .stat(&[("ep_max_size", &["", "memory"]), ("limit_maxbytes", &[""])])
        .metric("kv_ep_max_size"),
    Row::gauge("Memory down to which values leave it", |it| it.watermarks.low_bytes)
        .bytes()
        .stat(&[("ep_mem_low_wat", &["", "memory"])])
        .metric("kv_ep_mem_low_wat_bytes"),
    Row::gauge("Memory from which on values leave it", |it| it.watermarks.high_bytes)
        .bytes()
        .stat(&[("ep_mem_high_wat", &["", "memory"])])
        .metric("kv_ep_mem_high_wat_bytes"),
    Row::gauge("Memory above which writes are refused", |it| it.used_bytes_max)
        .bytes()
        .stat(&[("ep_mutation_mem_limit", &["", "memory"])]),
    Row::counter("Writes without memory", |it| it.memory_refusals)
        .stat(&[("ep_tmp_oom_errors", &[""]), ("items:1:outofmemory", &["items"])])
        .metric("kv_ep_tmp_oom_errors_total"),
    Row::counter("Always 0: a write without memory may be tried again", |_| 0)
        .stat(&[("ep_oom_errors", &[""])]),
    Row::counter("Writes refused because of the disk", |it| it.disk_refusals)
        .stat(&[("ep_disk_refusals", &[""])]),
    Row::gauge("Whether writes are refused because of the disk: 0 or 1", |it| {
        u64::from(it.disk_block.is_some())
    })
    .stat(&[("ep_disk_failing", &[""])]),
    Row::gauge("vBuckets whose files are damaged", |it| count(it.damaged_vbucket_count))
        .stat(&[("ep_vbuckets_damaged", &[""])])
        .metric("kv_ep_vbuckets_damaged"),
    Row::gauge("Copies that began empty and do not have yet what others hold", |it| {
        count(it.incomplete_count)
    })
    .stat(&[("ep_vbuckets_incomplete", &[""])])
    .metric("kv_ep_vbuckets_incomplete"),
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
    Row::gauge("Documents whose value is in memory, in percent", resident_percent)
        .stat(&[("vb_active_perc_mem_resident", &[""])]),
    Row::gauge("Writes that wait to become durable", |it| count(it.queued_item_count))
        .stat(&[("ep_queue_size", &[""])])
        .metric("kv_ep_queue_size"),
    Row::gauge("Writes that wait to become durable", |it| count(it.queued_item_count))
        .stat(&[("ep_diskqueue_items", &[""])])
        .metric("kv_ep_diskqueue_items"),
    Row::gauge("vBuckets that wait for a flusher", |it| count(it.queued_vbucket_count))
        .stat(&[("ep_flusher_todo", &[""])]),
    Row::gauge("Checkpoints of all vBuckets", |it| it.checkpoint_count)
        .stat(&[("ep_num_checkpoints", &[""])]),
    Row::counter("Commits of files or of the journal", |it| it.commits)
        .stat(&[("ep_commit_num", &[""]), ("rw_0:commits", &["kvstore"])])
        .metric("kv_ep_commit_num_total"),
    Row::counter("Commits that failed, and were tried again", |it| it.commits_failed)
        .stat(&[("ep_item_commit_failed", &[""]), ("rw_0:failure_set", &["kvstore"])]),
    Row::counter("Writes that failed", BucketStatistics::write_failures)
        .stat(&[("ep_data_write_failed", &[""])])
        .metric("kv_ep_data_write_failed_total"),
    Row::counter("Reads that failed", |it| it.reads_failed)
        .stat(&[("ep_data_read_failed", &[""]), ("rw_0:failure_get", &["kvstore"])])
        .metric("kv_ep_data_read_failed_total"),
    Row::counter("Writes made durable", |it| it.items_persisted)
        .stat(&[("ep_total_persisted", &[""]), ("rw_0:items_persisted", &["kvstore"])])
        .metric("kv_ep_total_persisted_total"),
    Row::counter("Versions in logs that a newer one made superfluous", |it| {
        it.vbuckets.deduplications
    })
    .stat(&[("ep_total_deduplicated", &[""])]),
    Row::counter("Queued versions that a newer one in the same flush made superfluous", |it| {
        it.flusher_deduplications
    })
    .stat(&[("ep_total_deduplicated_flusher", &[""])]),
    Row::counter("Values read from disk", |it| it.values_fetched)
        .stat(&[("ep_bg_fetched", &[""])])
        .metric("kv_ep_bg_fetched_total"),
    Row::counter("Keys read from disk", |it| it.documents_fetched)
        .stat(&[("ep_bg_meta_fetched", &[""])])
        .metric("kv_ep_bg_meta_fetched_total"),
    Row::gauge("Requests that wait for values", |it| count(it.fetches_waiting))
        .stat(&[("ep_bg_remaining_items", &[""])]),
    Row::counter("Values that left memory", |it| it.vbuckets.ejections)
        .stat(&[("ep_num_value_ejects", &[""]), ("vb_active_eject", &[""])])
        .metric("kv_ep_num_value_ejects_total"),
    Row::counter("Rounds of the pager", |it| it.pager_rounds)
        .stat(&[("ep_num_pager_runs", &[""])])
        .metric("kv_ep_num_pager_runs_total"),
    Row::counter("Rounds that halve frequency counters", |it| it.decayer_rounds)
        .stat(&[("ep_num_freq_decayer_runs", &[""])])
        .metric("kv_ep_num_freq_decayer_runs_total"),
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
    Row::counter("Rounds of the expiry pager", |it| it.expiry_pager_rounds)
        .stat(&[("ep_num_expiry_pager_runs", &[""])]),
    Row::counter("Documents that the compressor looked at", |it| it.compressor_visited)
        .stat(&[("ep_item_compressor_num_visited", &[""])])
        .metric("kv_ep_item_compressor_num_visited_total"),
    Row::counter("Documents that the compressor compressed", |it| it.compressor_compressed)
        .stat(&[("ep_item_compressor_num_compressed", &[""])])
        .metric("kv_ep_item_compressor_num_compressed_total"),
    Row::counter("Rounds of the defragmenter", |it| it.defragmenter_rounds)
        .stat(&[("ep_defragmenter_runs", &[""])]),
    Row::counter("Documents that the defragmenter moved", |it| it.defragmenter_moved)
        .stat(&[("ep_defragmenter_num_moved", &[""])]),
    Row::counter("Documents created", |it| it.vbuckets.creations)
        .stat(&[("vb_active_ops_create", &[""])])
        .metric("kv_vb_ops_create_total"),
    Row::counter("Documents changed", |it| it.vbuckets.updates)
        .stat(&[("vb_active_ops_update", &[""])])
        .metric("kv_vb_ops_update_total"),
    Row::counter("Documents deleted", |it| it.vbuckets.deletions)
        .stat(&[("vb_active_ops_delete", &[""])])
        .metric("kv_vb_ops_delete_total"),
    Row::counter("Writes that vBuckets refused", |it| it.vbuckets.rejections)
        .stat(&[("vb_active_ops_reject", &[""])]),
    Row::counter("Documents whose time was over", |it| it.vbuckets.expirations)
        .stat(&[("vb_active_expired", &[""])]),
    Row::counter("Documents that a full ephemeral bucket deleted", |it| it.vbuckets.auto_deletions)
        .stat(&[
            ("vb_active_auto_delete_count", &[""]),
            ("evictions", &[""]),
            ("items:1:evicted", &["items"]),
        ])
        .metric("kv_vb_auto_delete_total"),
    Row::counter("Tombstones that left memory", |it| it.vbuckets.purged_tombstones)
        .stat(&[("vb_active_ht_tombstone_purged_count", &[""])]),
    Row::counter("Versions taken that came about elsewhere", |it| it.vbuckets.foreign_stores)
        .stat(&[("ep_num_ops_set_meta", &[""])]),
    Row::counter("Tombstones taken that came about elsewhere", |it| it.vbuckets.foreign_deletions)
        .stat(&[("ep_num_ops_del_meta", &[""])]),
    Row::counter("Versions from elsewhere that did not win", |it| it.vbuckets.foreign_stores_lost)
        .stat(&[("ep_num_ops_set_meta_res_fail", &[""])]),
    Row::counter("Tombstones from elsewhere that did not win", |it| {
        it.vbuckets.foreign_deletions_lost
    })
    .stat(&[("ep_num_ops_del_meta_res_fail", &[""])]),
    Row::counter("Time between the clocks of others and this one, in active vBuckets", |it| {
        it.active_drift.total_us
    })
    .microseconds()
    .stat(&[("ep_active_hlc_drift", &[""])])
    .read_as(MetricName::one_of("kv_ep_hlc_drift_seconds_total", DRIFT_HELP, ACTIVE)),
    Row::counter("Time between the clocks of others and this one, in replicas", |it| {
        it.replica_drift.total_us
    })
    .microseconds()
    .stat(&[("ep_replica_hlc_drift", &[""])])
    .read_as(MetricName::one_of("kv_ep_hlc_drift_seconds_total", DRIFT_HELP, REPLICA)),
    Row::counter("Versions of other clocks, in active vBuckets", |it| it.active_drift.count)
        .stat(&[("ep_active_hlc_drift_count", &[""])])
        .read_as(MetricName::one_of("kv_ep_hlc_drift_count_total", DRIFT_COUNT_HELP, ACTIVE)),
    Row::counter("Versions of other clocks, in replicas", |it| it.replica_drift.count)
        .stat(&[("ep_replica_hlc_drift_count", &[""])])
        .read_as(MetricName::one_of("kv_ep_hlc_drift_count_total", DRIFT_COUNT_HELP, REPLICA)),
    Row::counter("Versions too far ahead of this node's clock, in active vBuckets", |it| {
        it.active_drift.ahead_exceeded
    })
    .stat(&[("ep_active_ahead_exceptions", &[""])])
    .read_as(MetricName::one_of("kv_ep_ahead_exceptions_total", AHEAD_HELP, ACTIVE)),
    Row::counter("Versions too far ahead of this node's clock, in replicas", |it| {
        it.replica_drift.ahead_exceeded
    })
    .stat(&[("ep_replica_ahead_exceptions", &[""])])
    .read_as(MetricName::one_of("kv_ep_ahead_exceptions_total", AHEAD_HELP, REPLICA)),
    Row::counter("Versions too far behind this node's clock, in active vBuckets", |it| {
        it.active_drift.behind_exceeded
    })
    .stat(&[("ep_active_behind_exceptions", &[""])])
    .read_as(MetricName::one_of("kv_ep_behind_exceptions_total", BEHIND_HELP, ACTIVE)),
    Row::counter("Versions too far behind this node's clock, in replicas", |it| {
        it.replica_drift.behind_exceeded
    })
    .stat(&[("ep_replica_behind_exceptions", &[""])])
    .read_as(MetricName::one_of("kv_ep_behind_exceptions_total", BEHIND_HELP, REPLICA)),
    Row::counter("Versions too far ahead or behind", drift_exceptions)
        .stat(&[("ep_clock_cas_drift_threshold_exceeded", &[""])]),
    Row::gauge("Requests that wait for pending vBuckets to take up another role", |it| {
        count(it.parked_count)
    })
    .stat(&[("ep_pending_ops", &[""])]),
    Row::counter("Rollbacks of vBuckets", |it| it.rollbacks).stat(&[("ep_rollback_count", &[""])]),
    Row::counter("Items that rollbacks took back", |it| it.vbuckets.rollback_items)
        .stat(&[("rollback_item_count", &[""])]),
    Row::gauge("Active vBuckets", |it| count(it.vbucket_counts[0]))
        .stat(&[("vb_active_num", &[""])]),
    Row::gauge("Replica vBuckets", |it| count(it.vbucket_counts[1]))
        .stat(&[("vb_replica_num", &[""])]),
    Row::gauge("Pending vBuckets", |it| count(it.vbucket_counts[2]))
        .stat(&[("vb_pending_num", &[""])]),
    Row::gauge("Dead vBuckets", |it| count(it.vbucket_counts[3])).stat(&[("vb_dead_num", &[""])]),
];

fn drift_exceptions(it: &BucketStatistics) -> u64 {
    let of = |drift: vbucket::Drift| drift.ahead_exceeded + drift.behind_exceeded;
    of(it.active_drift) + of(it.replica_drift)
}

fn resident_percent(it: &BucketStatistics) -> u64 {
    let resident = it.document_count - it.ejected_count;
    count((resident * 100).checked_div(it.document_count).unwrap_or(100))
}
