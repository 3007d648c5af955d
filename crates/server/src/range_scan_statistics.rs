//! The statistics of a bucket's range scans, a row each.

use bucket::RangeScanStatistics;

use crate::statistic::{Statistic, count};

type Row = Statistic<RangeScanStatistics>;

/// How many there are, and what has become of others.
pub static RANGE_SCAN_STATISTICS: &[Row] = &[
    Row::gauge("Range scans that are not over", |it| count(it.open.len()))
        .stat(&[("open", &["range-scans"])])
        .metric("settee_range_scans"),
    Row::gauge("Range scans that there may be at a time", |it| count(it.scans_max))
        .stat(&[("open_max", &["range-scans"])])
        .metric("settee_range_scans_max"),
    Row::counter("Range scans that were made", |it| it.created)
        .stat(&[("created", &["range-scans"])])
        .metric("settee_range_scans_created_total"),
    Row::counter("Range scans that came to their end", |it| it.completed)
        .stat(&[("completed", &["range-scans"])]),
    Row::counter("Range scans that were ended before", |it| it.cancelled)
        .stat(&[("cancelled", &["range-scans"])])
        .metric("settee_range_scans_cancelled_total"),
    Row::counter("Range scans that were not made because there were too many", |it| it.refused)
        .stat(&[("refused", &["range-scans"])]),
];
