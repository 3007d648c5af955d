//! The statistics of a bucket's outgoing streams, added up by the kind of connection: STAT shows
//! them as `<kind>:<name>`, Prometheus reads them with the kind as a label.

use std::collections::BTreeMap;

use bucket::Bucket;
use replication::Hub;
use replication::producer::{ProducerStatus, StreamStatus};

use crate::statistic::{Statistic, count};

/// Connections of nodes to each other. They are told of even where there are none.
const REPLICATION: &str = "replication";
/// Connections whose names do not say a kind.
const OTHER: &str = "_other";

type Row = Statistic<DcpStatistics>;

/// The label that says the kind.
pub const CONNECTION_TYPE_LABEL: &str = "connection_type";

/// The connections of one kind together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DcpStatistics {
    /// Connections.
    pub connection_count: usize,
    /// Their streams.
    pub stream_count: usize,
    /// Messages with an item that were sent.
    pub items_sent: u64,
    /// Items that are still to be sent.
    pub items_remaining: u64,
    /// Bytes that were sent.
    pub bytes_sent: u64,
    /// Bytes that backfills have read and that are not sent.
    pub backfill_bytes: u64,
    /// Bytes that were sent and not acknowledged.
    pub unacked_bytes: u64,
}

/// What they have done and have before them.
pub static DCP_STATISTICS: &[Row] = &[
    Row::gauge("Connections that streams go out on", |it| count(it.connection_count))
        .stat(&[("count", &["dcpagg"]), ("producer_count", &["dcpagg"])])
        .metric("kv_dcp_connection_count"),
    Row::gauge("Streams that go out", |it| count(it.stream_count))
        .stat(&[("stream_count", &["dcpagg"])])
        .metric("kv_dcp_stream_count"),
    Row::gauge("Items sent on the connections that there are", |it| it.items_sent)
        .stat(&[("items_sent", &["dcpagg"])])
        .metric("kv_dcp_items_sent"),
    Row::gauge("Items still to be sent", |it| it.items_remaining)
        .stat(&[("items_remaining", &["dcpagg"])])
        .metric("kv_dcp_items_remaining"),
    Row::gauge("Bytes sent on the connections that there are", |it| it.bytes_sent)
        .bytes()
        .stat(&[("total_bytes", &["dcpagg"])])
        .metric("kv_dcp_total_data_size_bytes"),
    Row::gauge("Bytes read for streams and not sent", |it| it.backfill_bytes)
        .bytes()
        .stat(&[("backfill_bytes", &["dcpagg"])])
        .metric("settee_dcp_backfill_bytes"),
    Row::gauge("Bytes sent and not acknowledged", |it| it.unacked_bytes)
        .bytes()
        .stat(&[("unacked_bytes", &["dcpagg"])])
        .metric("settee_dcp_unacked_bytes"),
    Row::counter("Always 0: no consumer is told to come back later", |_| 0)
        .stat(&[("backoff", &["dcpagg"])])
        .metric("kv_dcp_backoff"),
];

impl DcpStatistics {
    fn add(&mut self, bucket: &Bucket, producer: &ProducerStatus) {
        self.connection_count += 1;
        self.stream_count += producer.streams.len();
        self.items_sent += producer.items_sent;
        self.items_remaining += remaining(bucket, producer);
        self.bytes_sent += producer.bytes_sent;
        self.backfill_bytes += producer.backfill_bytes;
        self.unacked_bytes += producer.unacked_bytes;
    }

    /// Those of all kinds together.
    pub(crate) fn total<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            connection_count: sum.connection_count + one.connection_count,
            stream_count: sum.stream_count + one.stream_count,
            items_sent: sum.items_sent + one.items_sent,
            items_remaining: sum.items_remaining + one.items_remaining,
            bytes_sent: sum.bytes_sent + one.bytes_sent,
            backfill_bytes: sum.backfill_bytes + one.backfill_bytes,
            unacked_bytes: sum.unacked_bytes + one.unacked_bytes,
        })
    }
}

/// The connections of a bucket by their kind: what their names begin with, up to `separator`.
pub(crate) fn by_kind(
    bucket: &Bucket,
    hub: &Hub,
    separator: &str,
) -> BTreeMap<String, DcpStatistics> {
    let mut kinds = BTreeMap::from([(REPLICATION.to_owned(), DcpStatistics::default())]);
    for producer in &hub.producer_status() {
        let kind = kind_of(&producer.name, separator);
        kinds.entry(kind.to_owned()).or_default().add(bucket, producer);
    }
    kinds
}

/// Items that other nodes do not have yet, by vBucket: of the copy that is the furthest behind.
/// vBuckets that no node copies are left out.
pub(crate) fn replication_lag(bucket: &Bucket, hub: &Hub, separator: &str) -> BTreeMap<u16, u64> {
    let mut lag: BTreeMap<u16, u64> = BTreeMap::new();
    let producers = hub.producer_status();
    let to_nodes = producers.iter().filter(|it| kind_of(&it.name, separator) == REPLICATION);
    for stream in to_nodes.flat_map(|producer| &producer.streams) {
        let of_vbucket = lag.entry(stream.vbid.0).or_default();
        *of_vbucket = (*of_vbucket).max(items_before(bucket, stream));
    }
    lag
}

fn kind_of<'a>(name: &'a str, separator: &str) -> &'a str {
    // Connectors' names are JSON: what begins it is no word that anybody would look for.
    let is_word = |kind: &str| kind.starts_with(|first: char| first.is_ascii_alphanumeric());
    match name.split_once(separator) {
        Some((kind, _)) if is_word(kind) => kind,
        _ => OTHER,
    }
}

/// Items that the streams of a connection have in front of them.
pub(crate) fn remaining(bucket: &Bucket, producer: &ProducerStatus) -> u64 {
    producer.streams.iter().map(|stream| items_before(bucket, stream)).sum()
}

/// Items that a stream has in front of it.
fn items_before(bucket: &Bucket, stream: &StreamStatus) -> u64 {
    let unread = stream.backfill_remaining.unwrap_or(0);
    unread + in_log(bucket, stream) + stream.waiting_messages
}

/// Items of the log in front of a stream.
pub(crate) fn in_log(bucket: &Bucket, stream: &StreamStatus) -> u64 {
    let figures = bucket.figures_of(stream.vbid);
    figures.map_or(0, |figures| figures.remaining(&stream.cursor_name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_name_begins_with_is_the_kind_of_its_connection() {
        for (name, separator, kind) in [
            ("replication:a->b:travel", ":", "replication"),
            ("xdcr-1", ":", "_other"),
            ("xdcr-1", "-", "xdcr"),
            ("", ":", "_other"),
            ("{\"a\":\"kafka\"}", ":", "_other"),
        ] {
            assert_eq!(kind_of(name, separator), kind, "{name} {separator}");
        }
    }

    #[test]
    fn the_total_is_what_all_have_together() {
        let one = DcpStatistics { connection_count: 1, items_sent: 3, ..DcpStatistics::default() };
        let other = DcpStatistics { stream_count: 2, items_sent: 4, ..DcpStatistics::default() };
        let total = DcpStatistics::total([one, other].iter());
        let counts = (total.connection_count, total.stream_count, total.items_sent);
        assert_eq!(counts, (1, 2, 7));
    }
}
