//! Parameters of the original's configuration that cannot be set here while the node runs, and why.
//! Source: docs/specification/engine.md, section 9.

/// Why a parameter cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// It is decided when the bucket is made.
    Fixed,
    /// It is decided when the node starts, by this setting or, without one, by the node itself.
    AtStart(&'static str),
    /// It is changed with this field of a bucket at the management port, where it is kept.
    OverRest(&'static str),
    /// It is a constant.
    Constant,
    /// It belongs to a part that is not there, or that settles it by itself.
    Absent,
}

const PARAMETERS: [(Why, &[&str]); 12] = [
    (
        Why::Fixed,
        &[
            "backend",
            "bucket_type",
            "conflict_resolution_type",
            "couch_bucket",
            "dbname",
            "max_vbuckets",
            "uuid",
        ],
    ),
    (Why::AtStart("--durability-min-level"), &["durability_min_level"]),
    (Why::AtStart("--durability-impossible-fallback"), &["durability_impossible_fallback"]),
    (Why::OverRest("evictionPolicy"), &["item_eviction_policy"]),
    (
        Why::AtStart(""),
        &[
            "bfilter_fp_prob",
            "bfilter_key_count",
            "bucket_quota_change_task_poll_interval",
            "checkpoint_destruction_tasks",
            "checkpoint_memory_ratio",
            "checkpoint_memory_recovery_lower_mark",
            "checkpoint_memory_recovery_upper_mark",
            "compaction_max_concurrent_ratio",
            "defragmenter_chunk_duration",
            "defragmenter_interval",
            "flush_batch_max_bytes",
            "fsync_after_every_n_bytes_written",
            "ht_temp_items_allowed_percent",
            "item_compressor_chunk_duration",
            "item_compressor_interval",
            "item_eviction_strategy",
            "item_freq_decayer_percent",
            "pager_sleep_time_ms",
            "retain_erroneous_tombstones",
            "seqno_persistence_timeout",
            "sync_writes_max_allowed_replicas",
        ],
    ),
    (
        Why::Constant,
        &[
            "backfill_mem_threshold",
            "dcp_backfill_byte_limit",
            "dcp_consumer_buffer_ratio",
            "dcp_consumer_flow_control_ack_ratio",
            "dcp_consumer_flow_control_ack_seconds",
            "dcp_idle_timeout",
            "dcp_noop_tx_interval",
            "dcp_takeover_max_time",
            "ephemeral_metadata_purge_stale_chunk_duration",
            "freq_counter_increment_factor",
            "getl_default_timeout",
            "getl_max_timeout",
            "item_eviction_initial_mfu_percentile",
            "max_checkpoints",
            "max_failover_entries",
            "max_item_privileged_bytes",
            "max_item_size",
            "mem_used_merge_threshold_percent",
        ],
    ),
    // Memory, hash tables and pagers.
    (
        Why::Absent,
        &[
            "access_scanner_enabled",
            "alog_block_size",
            "alog_max_stored_items",
            "alog_path",
            "alog_resident_ratio_threshold",
            "alog_sleep_time",
            "alog_task_time",
            "bfilter_enabled",
            "bfilter_residency_threshold",
            "concurrent_pagers",
            "cross_bucket_ht_quota_sharing",
            "defragmenter_age_threshold",
            "defragmenter_auto_lower_threshold",
            "defragmenter_auto_max_sleep",
            "defragmenter_auto_min_sleep",
            "defragmenter_auto_pid_d",
            "defragmenter_auto_pid_dt",
            "defragmenter_auto_pid_i",
            "defragmenter_auto_pid_p",
            "defragmenter_auto_upper_threshold",
            "defragmenter_enabled",
            "defragmenter_mode",
            "defragmenter_stored_value_age_threshold",
            "ephemeral_mem_recovery_enabled",
            "ephemeral_mem_recovery_sleep_time",
            "ephemeral_metadata_mark_stale_chunk_duration",
            "exp_pager_enabled",
            "exp_pager_initial_run_time",
            "expiry_pager_concurrency",
            "expiry_visitor_expire_after_visit_duration_ms",
            "expiry_visitor_items_only_duration_ms",
            "ht_locks",
            "ht_resize_algo",
            "ht_resize_interval",
            "ht_size",
            "ht_size_decrease_delay",
            "item_eviction_age_percentage",
            "item_eviction_freq_counter_age_threshold",
            "item_eviction_initial_mfu_update_interval",
            "item_freq_decayer_chunk_duration",
            "paging_visitor_pause_check_count",
        ],
    ),
    // Checkpoints, files and warmup.
    (
        Why::Absent,
        &[
            "checkpoint_max_size",
            "checkpoint_remover_task_count",
            "chk_expel_enabled",
            "collections_drop_compaction_delay",
            "compaction_expiry_fetch_inline",
            "continuous_backup_enabled",
            "continuous_backup_interval",
            "continuous_backup_path",
            "couchstore_midpoint_rollback_optimisation",
            "couchstore_mprotect",
            "couchstore_tracing",
            "couchstore_write_validation",
            "failpartialwarmup",
            "flusher_total_batch_limit",
            "max_num_bgfetchers",
            "max_num_flushers",
            "max_num_shards",
            "primary_warmup_min_items_threshold",
            "primary_warmup_min_memory_threshold",
            "secondary_warmup_min_items_threshold",
            "secondary_warmup_min_memory_threshold",
            "warmup",
            "warmup_accesslog_load_batch_size",
            "warmup_accesslog_load_duration",
            "warmup_backfill_scan_chunk_duration",
            "warmup_backfill_task_shard_ratio",
            "warmup_behavior",
        ],
    ),
    // Threads.
    (
        Why::Absent,
        &[
            "executor_pool_backend",
            "max_num_workers",
            "max_threads",
            "workload_monitor_enabled",
            "workload_pattern_default",
        ],
    ),
    // What clients may do.
    (
        Why::Absent,
        &[
            "allow_sanitize_value_in_deletion",
            "collections_enabled",
            "compat_version",
            "data_traffic_enabled",
            "dcp_hlc_invalid_strategy",
            "max_ttl",
            "not_locked_returns_tmpfail",
            "time_synchronization",
            "vbucket_mapping_sanity_checking",
            "vbucket_mapping_sanity_checking_error_mode",
            "xattr_enabled",
        ],
    ),
    // Range scans, and what watches them.
    (
        Why::Absent,
        &[
            "monitor_task_interval",
            "range_scan_kv_store_scan_ratio",
            "range_scan_max_continue_tasks",
            "range_scan_max_lifetime",
            "range_scan_read_buffer_send_size",
        ],
    ),
    // Replication.
    (
        Why::Absent,
        &[
            "connection_cleanup_interval",
            "connection_manager_interval",
            "dcp_active_stream_inline_checkpoint_item_limit",
            "dcp_backfill_antilag_interval",
            "dcp_backfill_byte_drain_ratio",
            "dcp_backfill_idle_disk_threshold",
            "dcp_backfill_idle_limit_seconds",
            "dcp_backfill_idle_protection_enabled",
            "dcp_backfill_in_progress_per_connection_limit",
            "dcp_backfill_run_duration_limit",
            "dcp_cache_transfer_enabled",
            "dcp_cache_transfer_high_memory_backoff_duration",
            "dcp_cache_transfer_ht_presize",
            "dcp_cache_transfer_max_batch_bytes",
            "dcp_cache_transfer_max_batch_items",
            "dcp_cache_transfer_one_visit_per_step",
            "dcp_cache_transfer_resize_backoff_duration",
            "dcp_cache_transfer_visit_duration_ms",
            "dcp_checkpoint_dequeue_limit",
            "dcp_consumer_flow_control_enabled",
            "dcp_enable_noop",
            "dcp_flow_control_buffer_size",
            "dcp_min_compression_ratio",
            "dcp_noop_mandatory_for_v5_features",
            "dcp_oso_backfill",
            "dcp_oso_backfill_large_value_ratio",
            "dcp_oso_backfill_small_item_size_threshold",
            "dcp_oso_backfill_small_value_ratio",
            "dcp_oso_max_collections_per_backfill",
            "dcp_producer_catch_exceptions",
            "dcp_producer_processor_run_duration_us",
            "dcp_producer_snapshot_marker_yield_limit",
            "dcp_scan_byte_limit",
            "dcp_scan_item_limit",
        ],
    ),
];

/// Why the parameter of that name cannot be set; `None` for what nobody calls a parameter.
pub(super) fn why(name: &str) -> Option<String> {
    let (why, _) = PARAMETERS.iter().find(|(_, names)| names.contains(&name))?;
    Some(match why {
        Why::Fixed => format!("`{name}` is fixed when the bucket is made"),
        Why::AtStart("") => format!("`{name}` is decided when the node starts"),
        Why::AtStart(setting) => {
            format!("`{name}` is decided when the node starts: restart it with {setting}")
        }
        Why::OverRest(field) => {
            format!("`{name}` is the `{field}` of the bucket: change it at the management port")
        }
        Why::Constant => format!("`{name}` is a constant of this server"),
        Why::Absent => format!("there is nothing here that `{name}` could change"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters;

    const SPECIFICATION: &str = include_str!("../../../../docs/specification/engine.md");

    /// The names in the table of the configuration.
    fn specified() -> Vec<&'static str> {
        let (_, table) = SPECIFICATION.split_once("| Name | Original | Here |").unwrap();
        let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
        let cells = rows.map(|row| row.trim_start_matches('|').split('|').next().unwrap());
        cells.flat_map(|cell| cell.split(',').map(|name| name.trim().trim_matches('`'))).collect()
    }

    fn is_taken(name: &str) -> bool {
        parameters::PARAMETERS.iter().any(|parameter| parameter.name == name)
    }

    #[test]
    fn every_parameter_of_the_configuration_is_taken_or_refused_with_a_reason() {
        let names = specified();
        assert!(names.len() > 50, "{names:?}");
        for name in names {
            assert_ne!(is_taken(name), why(name).is_some(), "{name}");
        }
    }

    #[test]
    fn no_parameter_is_refused_twice_or_taken_as_well() {
        let mut names: Vec<&str> =
            PARAMETERS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        assert!(names.iter().all(|name| !is_taken(name)), "{names:?}");
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
