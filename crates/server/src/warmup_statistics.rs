//! The statistics of a bucket's loading, a row each: STAT shows them, Prometheus reads them.

use std::time::Duration;

use bucket::WarmupProgress;

use crate::statistic::{Statistic, count};

type Row = Statistic<WarmupProgress>;

/// How far it has come.
pub static WARMUP_STATISTICS: &[Row] = &[
    Row::gauge("vBuckets that had files at the start", |it| count(it.vbuckets_total))
        .stat(&[("ep_warmup_vbuckets_total", WARMUP)]),
    Row::gauge("vBuckets whose metadata is loaded", |it| count(it.vbuckets_loaded))
        .stat(&[("ep_warmup_vbuckets_loaded", WARMUP)]),
    Row::gauge("vBuckets whose files could not be read", |it| count(it.vbuckets_failed))
        .stat(&[("ep_warmup_vbuckets_failed", WARMUP)]),
    Row::gauge("Documents whose metadata is to be loaded", |it| it.documents_total)
        .stat(&[("ep_warmup_estimated_key_count", WARMUP)])
        .metric("kv_ep_warmup_estimated_key_count"),
    Row::counter("Documents whose metadata is loaded", |it| it.documents_loaded)
        .stat(&[("ep_warmup_key_count", WARMUP)])
        .metric("kv_ep_warmup_key_count"),
    Row::gauge("Values that are to be loaded", |it| it.documents_total)
        .stat(&[("ep_warmup_estimated_value_count", WARMUP)])
        .metric("kv_ep_warmup_estimated_value_count"),
    Row::counter("Values that are loaded", |it| it.values_loaded)
        .stat(&[("ep_warmup_value_count", WARMUP)])
        .metric("kv_ep_warmup_value_count"),
    Row::gauge("Time until every vBucket served", |it| micros(it.metadata_took))
        .microseconds()
        .stat(&[("ep_warmup_keys_time", WARMUP)]),
    Row::gauge("Time until everything was loaded", |it| micros(it.took))
        .microseconds()
        .stat(&[("ep_warmup_time", WARMUP)])
        .metric("kv_ep_warmup_time_seconds"),
];

const WARMUP: &[&str] = &["warmup"];

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
