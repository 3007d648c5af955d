//! The statistics of a bucket's compactions, a row each.

use bucket::CompactionStatistics;

use crate::statistic::{MetricName, Statistic, count};

type Row = Statistic<CompactionStatistics>;

const PURGED_HELP: &str = "What compactions left out for good, by kind";

/// What compactions have done, and what waits for them.
pub static COMPACTION_STATISTICS: &[Row] = &[
    Row::gauge("Compactions that wait or run", |it| {
        count(it.ordered_count + it.fragmented_count + it.running.len())
    })
    .stat(&[("ep_pending_compactions", &["", "compaction"])])
    .metric("kv_ep_pending_compactions"),
    Row::gauge("Compactions that run", |it| count(it.running.len()))
        .stat(&[("ep_compaction_running", &["", "compaction"])]),
    Row::counter("Files compacted", |it| it.done)
        .stat(&[("ep_compaction_done", &["", "compaction"])]),
    Row::counter("Compactions that failed", |it| it.failed)
        .stat(&[("ep_compaction_failed", &["", "compaction"])])
        .metric("kv_ep_compaction_failed"),
    Row::counter("Compactions given up", |it| it.aborted)
        .stat(&[("ep_compaction_aborted", &["", "compaction"])])
        .metric("kv_ep_compaction_aborted"),
    Row::counter("What files have become smaller by", |it| it.bytes_freed)
        .bytes()
        .stat(&[("ep_compaction_bytes_freed", &["", "compaction"])])
        .metric("settee_compaction_freed_bytes_total"),
    Row::counter("Tombstones left out", |it| it.tombstones_purged)
        .stat(&[("ep_compaction_tombstones_purged", &["", "compaction"])])
        .read_as(purged(&[("type", "tombstones")])),
    Row::counter("Completed prepares left out", |it| it.prepares_purged)
        .stat(&[("ep_compaction_prepares_purged", &["", "compaction"])])
        .read_as(purged(&[("type", "prepares")])),
    Row::counter("Documents of dropped collections left out", |it| it.of_dropped_collections)
        .stat(&[("ep_compaction_dropped_collection_items_purged", &["", "compaction"])])
        .read_as(purged(&[("type", "dropped_collections")])),
    Row::counter("Documents copied although their bodies cannot be read", |it| it.damaged_bodies)
        .stat(&[("ep_compaction_damaged_bodies", &["", "compaction"])]),
    Row::counter("Expired documents found", |it| it.expired)
        .stat(&[("ep_expired_compactor", &["", "compaction"])])
        .metric("kv_ep_expired_compactor"),
];

const fn purged(labels: &'static [(&'static str, &'static str)]) -> MetricName {
    MetricName::one_of("settee_compaction_purged_total", PURGED_HELP, labels)
}
