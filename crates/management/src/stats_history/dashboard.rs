//! The figures that are kept for long: those that dashboards show.

const LONG: [&str; 51] = [
    "couch_docs_actual_disk_size",
    "couch_docs_data_size",
    "kv_auth_errors",
    "kv_curr_connections",
    "kv_curr_items",
    "kv_curr_items_tot",
    "kv_curr_temp_items",
    "kv_dcp_items_remaining",
    "kv_dcp_items_sent",
    "kv_dcp_total_data_size_bytes",
    "kv_ep_bg_fetched",
    "kv_ep_checkpoint_memory_bytes",
    "kv_ep_data_read_failed",
    "kv_ep_data_write_failed",
    "kv_ep_diskqueue_items",
    "kv_ep_max_size",
    "kv_ep_mem_high_wat",
    "kv_ep_mem_low_wat",
    "kv_ep_num_non_resident",
    "kv_ep_num_value_ejects",
    "kv_ep_queue_size",
    "kv_ep_storage_age_seconds",
    "kv_ep_tmp_oom_errors",
    "kv_ep_total_persisted",
    "kv_mem_used_bytes",
    "kv_ops",
    "kv_read_bytes",
    "kv_subdoc_ops",
    "kv_total_memory_overhead_bytes",
    "kv_vb_curr_items",
    "kv_vb_eject",
    "kv_vb_ops_create",
    "kv_vb_ops_delete",
    "kv_vb_ops_update",
    "kv_vb_perc_mem_resident_ratio",
    "kv_vb_queue_drain",
    "kv_vb_queue_fill",
    "kv_vb_queue_size",
    "kv_vb_sync_write_aborted_count",
    "kv_vb_sync_write_accepted_count",
    "kv_vb_sync_write_committed_count",
    "kv_written_bytes",
    "settee_journal_unapplied_items",
    "settee_journal_used_bytes",
    "settee_vbuckets_damaged",
    "sys_cpu_utilization_rate",
    "sys_disk_usage_ratio",
    "sys_mem_actual_free",
    "sys_mem_actual_used",
    "sysproc_cpu_utilization",
    "sysproc_mem_resident",
];

/// Whether the figure of that name is.
pub(crate) fn is_on_dashboards(name: &str) -> bool {
    LONG.binary_search(&name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_so_that_each_is_found() {
        assert!(LONG.is_sorted());
        assert!(LONG.iter().all(|name| is_on_dashboards(name)) && !is_on_dashboards("kv_other"));
    }
}
