//! The statistics of the vBuckets of one role, a row each: STAT shows them as `vb_<role>_<name>`,
//! Prometheus reads them with the role as a label.

use bucket::StateStatistics;

use crate::statistic::{Statistic, count};

type Row = Statistic<StateStatistics>;

/// The label that says the role.
pub const STATE_LABEL: &str = "state";

/// The roles whose vBuckets are told of, in the order of [`bucket::BucketStatistics::by_state`].
/// Dead vBuckets do nothing: they are only counted.
pub const STATES: [&str; 3] = ["active", "replica", "pending"];

/// What they have and have done. The names in STAT are those behind the role.
pub static STATE_STATISTICS: &[Row] = &[
    Row::gauge("vBuckets", |it| count(it.vbucket_count)).stat(NUM).metric("kv_num_vbuckets"),
    Row::gauge("Live documents", |it| count(it.document_count))
        .stat(&[("curr_items", &[""])])
        .metric("kv_vb_curr_items"),
    Row::gauge("Values on disk alone", |it| count(it.ejected_count))
        .stat(&[("num_non_resident", &[""])])
        .metric("kv_vb_num_non_resident"),
    Row::gauge("Documents whose value is in memory", |it| count(it.resident_percent()))
        .percent()
        .stat(&[("perc_mem_resident", &[""])])
        .metric("kv_vb_perc_mem_resident_ratio"),
    Row::gauge("Tables that find documents", |it| count(it.tables_bytes))
        .bytes()
        .stat(&[("ht_memory", &[""])])
        .metric("kv_vb_ht_memory_bytes"),
    Row::gauge("Tables that find documents", |it| count(it.tables_bytes))
        .bytes()
        .stat(&[("ht_memory_overhead", &[""])])
        .metric("kv_vb_ht_memory_overhead_bytes"),
    Row::gauge("Documents in memory", |it| count(it.documents_bytes))
        .bytes()
        .stat(&[("ht_item_memory", &[""])])
        .metric("kv_vb_ht_item_memory_bytes"),
    Row::gauge("Memory of the filters of keys", |it| count(it.filter_bytes))
        .bytes()
        .stat(&[("bloom_filter_memory", &[""])])
        .metric("kv_vb_bloom_filter_memory_bytes"),
    Row::gauge("Memory of checkpoints", |it| count(it.checkpoints_bytes))
        .bytes()
        .stat(&[("checkpoint_memory", &[""])])
        .metric("kv_vb_checkpoint_memory_bytes"),
    Row::gauge("Durable writes that have not ended", |it| count(it.sync_write_count))
        .stat(&[("dm_num_tracked", &[""])])
        .metric("kv_vb_dm_num_tracked"),
    Row::gauge("Writes that wait to become durable", |it| count(it.queued_item_count))
        .stat(&[("queue_size", &[""])])
        .metric("kv_vb_queue_size"),
    Row::gauge(QUEUE_AGE_HELP, |it| it.queue_age_ms)
        .milliseconds()
        .stat(&[("queue_age", &[""])])
        .metric("kv_vb_queue_age_seconds"),
    Row::counter("Writes queued to become durable", |it| it.done.queue_fills)
        .stat(&[("queue_fill", &[""])])
        .metric("kv_vb_queue_fill"),
    Row::counter("Writes made durable", |it| it.done.queue_drains)
        .stat(&[("queue_drain", &[""])])
        .metric("kv_vb_queue_drain"),
    Row::counter("Documents created", |it| it.done.creations)
        .stat(&[("ops_create", &[""])])
        .metric("kv_vb_ops_create"),
    Row::counter("Documents changed", |it| it.done.updates)
        .stat(&[("ops_update", &[""])])
        .metric("kv_vb_ops_update"),
    Row::counter("Documents deleted", |it| it.done.deletions)
        .stat(&[("ops_delete", &[""])])
        .metric("kv_vb_ops_delete"),
    Row::counter("Writes that vBuckets refused", |it| it.done.rejections)
        .stat(&[("ops_reject", &[""])])
        .metric("kv_vb_ops_reject"),
    Row::counter("Reads that found a document", |it| it.done.reads)
        .stat(&[("ops_get", &[""])])
        .metric("kv_vb_ops_get"),
    Row::counter("Values that left memory", |it| it.done.ejections)
        .stat(&[("eject", &[""])])
        .metric("kv_vb_eject"),
    Row::counter("Documents whose time was over", |it| it.done.expirations)
        .stat(&[("expired", &[""])])
        .metric("kv_vb_expired"),
    Row::counter("Documents that a full ephemeral bucket deleted", |it| it.done.auto_deletions)
        .stat(&[("auto_delete_count", &[""])])
        .metric("kv_vb_auto_delete_count"),
    Row::counter("Tombstones that left memory", |it| it.done.purged_tombstones)
        .stat(&[("ht_tombstone_purged_count", &[""])])
        .metric("kv_vb_ht_tombstone_purged_count"),
    Row::counter("Items that rollbacks took back", |it| it.done.rollback_items)
        .stat(&[("rollback_item_count", &[""])])
        .metric("kv_vb_rollback_item_count"),
    Row::counter("Durable writes begun", |it| it.done.sync_writes_accepted)
        .stat(&[("sync_write_accepted_count", &[""])])
        .metric("kv_vb_sync_write_accepted_count"),
    Row::counter("Durable writes committed", |it| it.done.sync_writes_committed)
        .stat(&[("sync_write_committed_count", &[""])])
        .metric("kv_vb_sync_write_committed_count"),
    Row::counter("Durable writes committed although no majority holds them", |it| {
        it.done.sync_writes_committed_not_durable
    })
    .stat(&[("sync_write_committed_not_durable_count", &[""])])
    .metric("kv_vb_sync_write_committed_not_durable_count"),
    Row::counter("Durable writes aborted", |it| it.done.sync_writes_aborted)
        .stat(&[("sync_write_aborted_count", &[""])])
        .metric("kv_vb_sync_write_aborted_count"),
];

const QUEUE_AGE_HELP: &str = "How long these wait, added up, each as the oldest of its vBucket";
const NUM: &[(&str, &[&str])] = &[("num", &[""])];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistic::StatisticKind;

    #[test]
    fn every_statistic_of_a_role_is_shown_and_read() {
        for statistic in STATE_STATISTICS {
            assert!(!statistic.shown.is_empty(), "{}", statistic.help());
            let metric = statistic.metric.expect("Prometheus reads it");
            let is_of_vbuckets =
                metric.name.starts_with("kv_vb_") || metric.name == "kv_num_vbuckets";
            assert!(is_of_vbuckets, "{}", metric.name);
            let read = (statistic.read)(&StateStatistics::default());
            let is_full = statistic.kind == StatisticKind::Gauge && statistic.unit == "percent";
            assert_eq!(read, if is_full { 100 } else { 0 }, "{}", metric.name);
        }
    }
}
