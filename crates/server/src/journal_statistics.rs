//! The statistics of a bucket's journal and of the files that follow it, a row each. Without a
//! journal all are 0, and STAT shows none.

use bucket::BucketStatistics;

use crate::statistic::{Statistic, count};

type Row = Statistic<BucketStatistics>;

/// How full it is, how far files are behind, what it has written.
pub static JOURNAL_STATISTICS: &[Row] = &[
    Row::gauge("The last durable group", |it| it.journal.unwrap_or_default().durable_lsn.0)
        .stat(&[("durable_lsn", &["journal"])]),
    Row::gauge("The first group that is still needed", |it| {
        it.journal.unwrap_or_default().needed_from.0
    })
    .stat(&[("needed_from_lsn", &["journal"])]),
    Row::gauge("Segments in use", |it| it.journal.unwrap_or_default().segment_count)
        .stat(&[("segments", &["journal"])]),
    Row::gauge("What the journal takes", |it| it.journal.unwrap_or_default().used_bytes)
        .bytes()
        .stat(&[("used_bytes", &["journal"])])
        .metric("settee_journal_used_bytes"),
    Row::gauge("What the journal may take", |it| it.journal.unwrap_or_default().bytes_max)
        .bytes()
        .stat(&[("bytes_max", &["journal"])])
        .metric("settee_journal_max_bytes"),
    Row::gauge("Segments that are kept for later", |it| it.journal.unwrap_or_default().spare_count)
        .stat(&[("spares", &["journal"])]),
    Row::gauge("Memory in which groups are gathered", |it| {
        it.journal.unwrap_or_default().memory_bytes
    })
    .bytes()
    .stat(&[("memory_bytes", &["journal"])]),
    Row::counter("Groups made durable with one sync", |it| {
        it.journal.unwrap_or_default().group_count
    })
    .stat(&[("groups", &["journal"])])
    .metric("settee_journal_groups_total"),
    Row::counter("Records of the journal's groups", |it| {
        it.journal.unwrap_or_default().record_count
    })
    .stat(&[("records", &["journal"])]),
    Row::counter("Bytes of the journal", |it| it.journal.unwrap_or_default().written_bytes)
        .bytes()
        .stat(&[("written_bytes", &["journal"])])
        .metric("settee_journal_written_bytes_total"),
    Row::counter("Writes, syncs and new segments that failed", |it| {
        it.journal.unwrap_or_default().failure_count
    })
    .stat(&[("failures", &["journal"])]),
    Row::counter("Groups refused after a second failure", |it| {
        it.journal.unwrap_or_default().refused_count
    })
    .stat(&[("refused_groups", &["journal"])]),
    Row::counter("Groups refused because the journal was full", |it| {
        it.journal.unwrap_or_default().full_count
    })
    .stat(&[("full_groups", &["journal"])]),
    Row::counter("Flushes that waited for room in the journal", |it| it.journal_full_waits)
        .stat(&[("full_waits", &["journal"])]),
    Row::counter("Files that followed the journal", |it| it.applies)
        .stat(&[("applies", &["journal"])])
        .metric("settee_journal_applies_total"),
    Row::counter("Files that could not follow the journal, which is tried again", |it| {
        it.applies_failed
    })
    .stat(&[("applies_failed", &["journal"])]),
    Row::gauge("Bytes in the journal that no file has", |it| it.backlog.bytes)
        .bytes()
        .stat(&[("unapplied_bytes", &["journal"])]),
    Row::gauge("Writes in the journal that no file has", |it| count(it.backlog.items))
        .stat(&[("unapplied_items", &["journal"])])
        .metric("settee_journal_unapplied_items"),
    Row::gauge("vBuckets whose files are behind the journal", |it| count(it.backlog.vbuckets))
        .stat(&[("unapplied_vbuckets", &["journal"])]),
];
