//! A bucket's figures by the names that the original's versions before 7 have: exporters of that
//! time still poll them.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use document::uri::escaped;
use serde_json::{Map, Value, json};

use super::cluster::management_host;
use super::named_bucket::{Fields, NamedBucket};
use crate::answers;
use crate::context::Context;
use crate::stats_history::{Series, StatsHistory};

/// What a figure is made of.
struct Told {
    name: &'static str,
    /// As `/metrics` has it.
    metric: &'static str,
    /// The figures that are added up: each has all of one of these sets of labels.
    labels: &'static [&'static [(&'static str, &'static str)]],
    /// Whether its rise in a second is told, and not itself.
    is_rate: bool,
}

const ALL: &[&[(&str, &str)]] = &[&[]];
const ACTIVE: &[&[(&str, &str)]] = &[&[("state", "active")]];
const REPLICA: &[&[(&str, &str)]] = &[&[("state", "replica")]];
const REPLICATION: &[&[(&str, &str)]] = &[&[("connection_type", "replication")]];
/// What is done to documents. A write with a version is a store, too.
const OPERATIONS: &[&[(&str, &str)]] = &[
    &[("op", "get")],
    &[("op", "set")],
    &[("op", "delete"), ("result", "hit")],
    &[("op", "incr")],
    &[("op", "decr")],
    &[("op", "touch"), ("result", "hit")],
    &[("op", "lock")],
];

const fn now(
    name: &'static str,
    metric: &'static str,
    labels: &'static [&'static [(&'static str, &'static str)]],
) -> Told {
    Told { name, metric, labels, is_rate: false }
}

const fn rate(
    name: &'static str,
    metric: &'static str,
    labels: &'static [&'static [(&'static str, &'static str)]],
) -> Told {
    Told { name, metric, labels, is_rate: true }
}

const TOLD: [Told; 53] = [
    now("couch_docs_actual_disk_size", "couch_docs_actual_disk_size", ALL),
    now("couch_docs_data_size", "couch_docs_data_size", ALL),
    now("curr_connections", "kv_curr_connections", ALL),
    now("curr_items", "kv_curr_items", ALL),
    now("curr_items_tot", "kv_curr_items_tot", ALL),
    now("curr_temp_items", "kv_curr_temp_items", ALL),
    now("ep_dcp_replica_items_remaining", "kv_dcp_items_remaining", REPLICATION),
    now("ep_diskqueue_items", "kv_ep_diskqueue_items", ALL),
    now("ep_max_size", "kv_ep_max_size", ALL),
    now("ep_mem_high_wat", "kv_ep_mem_high_wat", ALL),
    now("ep_mem_low_wat", "kv_ep_mem_low_wat", ALL),
    now("ep_num_non_resident", "kv_ep_num_non_resident", ALL),
    now("ep_overhead", "kv_total_memory_overhead_bytes", ALL),
    now("ep_queue_size", "kv_ep_queue_size", ALL),
    now("disk_write_queue", "kv_ep_queue_size", ALL),
    now("mem_used", "kv_mem_used_bytes", ALL),
    now("vb_active_curr_items", "kv_vb_curr_items", ACTIVE),
    now("vb_active_queue_size", "kv_vb_queue_size", ACTIVE),
    now("vb_replica_curr_items", "kv_vb_curr_items", REPLICA),
    now("vb_replica_queue_size", "kv_vb_queue_size", REPLICA),
    rate("bytes_read", "kv_read_bytes", ALL),
    rate("bytes_written", "kv_written_bytes", ALL),
    rate("cas_badval", "kv_ops", &[&[("op", "cas"), ("result", "badval")]]),
    rate("cas_hits", "kv_ops", &[&[("op", "cas"), ("result", "hit")]]),
    rate("cas_misses", "kv_ops", &[&[("op", "cas"), ("result", "miss")]]),
    rate("cmd_get", "kv_ops", &[&[("op", "get")]]),
    rate("cmd_set", "kv_ops", &[&[("op", "set")]]),
    rate("decr_hits", "kv_ops", &[&[("op", "decr"), ("result", "hit")]]),
    rate("decr_misses", "kv_ops", &[&[("op", "decr"), ("result", "miss")]]),
    rate("delete_hits", "kv_ops", &[&[("op", "delete"), ("result", "hit")]]),
    rate("delete_misses", "kv_ops", &[&[("op", "delete"), ("result", "miss")]]),
    rate("ep_bg_fetched", "kv_ep_bg_fetched", ALL),
    rate("ep_data_read_failed", "kv_ep_data_read_failed", ALL),
    rate("ep_data_write_failed", "kv_ep_data_write_failed", ALL),
    rate("ep_dcp_replica_items_sent", "kv_dcp_items_sent", REPLICATION),
    rate("ep_diskqueue_drain", "kv_vb_queue_drain", ALL),
    rate("ep_diskqueue_fill", "kv_vb_queue_fill", ALL),
    rate("ep_tmp_oom_errors", "kv_ep_tmp_oom_errors", ALL),
    rate("ep_total_persisted", "kv_ep_total_persisted", ALL),
    rate("get_hits", "kv_ops", &[&[("op", "get"), ("result", "hit")]]),
    rate("get_misses", "kv_ops", &[&[("op", "get"), ("result", "miss")]]),
    rate("incr_hits", "kv_ops", &[&[("op", "incr"), ("result", "hit")]]),
    rate("incr_misses", "kv_ops", &[&[("op", "incr"), ("result", "miss")]]),
    rate("ops", "kv_ops", OPERATIONS),
    rate("vb_active_eject", "kv_vb_eject", ACTIVE),
    rate("vb_active_ops_create", "kv_vb_ops_create", ACTIVE),
    rate("vb_active_ops_delete", "kv_vb_ops_delete", ACTIVE),
    rate("vb_active_ops_update", "kv_vb_ops_update", ACTIVE),
    rate("vb_active_sync_write_aborted_count", "kv_vb_sync_write_aborted_count", ACTIVE),
    rate("vb_active_sync_write_accepted_count", "kv_vb_sync_write_accepted_count", ACTIVE),
    rate("vb_active_sync_write_committed_count", "kv_vb_sync_write_committed_count", ACTIVE),
    rate("vb_replica_ops_create", "kv_vb_ops_create", REPLICA),
    rate("vb_replica_ops_update", "kv_vb_ops_update", REPLICA),
];

/// What is of the node and has no bucket.
const OF_NODE: [&str; 1] = ["kv_curr_connections"];

/// A span of time, and the distance of the samples that are told of it.
#[derive(Clone, Copy)]
struct Zoom {
    name: &'static str,
    span_seconds: u64,
    step_seconds: u64,
}

/// Those of the original; the first when none is said. A node remembers a month.
const ZOOMS: [Zoom; 6] = [
    Zoom { name: "minute", span_seconds: 60, step_seconds: 1 },
    Zoom { name: "hour", span_seconds: 3600, step_seconds: 4 },
    Zoom { name: "day", span_seconds: 24 * 3600, step_seconds: 60 },
    Zoom { name: "week", span_seconds: 8 * 24 * 3600, step_seconds: 600 },
    Zoom { name: "month", span_seconds: 31 * 24 * 3600, step_seconds: 1800 },
    Zoom { name: "year", span_seconds: 366 * 24 * 3600, step_seconds: 21_600 },
];

/// GET /pools/default/buckets/{bucket}/stats: of the node that is asked.
pub(super) async fn of_bucket(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
    Query(query): Query<Fields>,
) -> Response {
    match Zoom::of(&query) {
        Ok(zoom) => answers::ok(&samples(&context.history, &bucket.map().name, zoom)),
        Err(why) => answers::refused("zoom", &why),
    }
}

/// GET /pools/default/buckets/{bucket}/nodes
pub(super) async fn nodes(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
) -> Response {
    let map = context.view.cluster_map();
    let nodes = format!("/pools/default/buckets/{}/nodes", escaped(&bucket.map().name));
    let servers = map.nodes.iter().map(|node| {
        let host = management_host(node);
        let uri = format!("{nodes}/{}", escaped(&host));
        json!({"hostname": host, "uri": uri, "stats": {"uri": format!("{uri}/stats")}})
    });
    answers::ok(&json!({"servers": servers.collect::<Value>()}))
}

/// GET /pools/default/buckets/{bucket}/nodes/{node}/stats
pub(super) async fn of_node(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
    Path(path): Path<Fields>,
    Query(query): Query<Fields>,
) -> Response {
    let map = context.view.cluster_map();
    let (asked, this) = (path.get("node"), management_host(&map.this_address));
    if asked == Some(&this) {
        let zoom = match Zoom::of(&query) {
            Ok(zoom) => zoom,
            Err(why) => return answers::refused("zoom", &why),
        };
        let mut told = samples(&context.history, &bucket.map().name, zoom);
        if let Some(told) = told.as_object_mut() {
            told.insert("hostname".to_owned(), json!(this));
        }
        return answers::ok(&told);
    }
    match asked.filter(|asked| map.nodes.iter().any(|node| management_host(node) == **asked)) {
        Some(other) => answers::refused("_", &format!("A node tells its own figures; ask {other}")),
        None => answers::not_found(),
    }
}

impl Zoom {
    /// # Errors
    /// There is none of that name.
    fn of(query: &Fields) -> Result<Self, String> {
        let Some(name) = query.get("zoom") else { return Ok(ZOOMS[0]) };
        let found = ZOOMS.into_iter().find(|zoom| zoom.name == *name);
        found.ok_or_else(|| {
            let names = ZOOMS.map(|zoom| zoom.name).join(", ");
            format!("The value must be one of: {names}")
        })
    }

    /// The moments that are told of, the last one being the newest sample.
    fn moments(self, (first, last): (u64, u64)) -> Vec<u64> {
        let steps = 0..self.span_seconds / self.step_seconds;
        let ago = steps.map(|step| step * self.step_seconds);
        let mut moments: Vec<u64> =
            ago.map_while(|ago| last.checked_sub(ago)).take_while(|at| *at >= first).collect();
        moments.reverse();
        moments
    }
}

/// The samples of a span of time, or of the part of it that is known.
fn samples(history: &StatsHistory, bucket: &str, zoom: Zoom) -> Value {
    let moments = history.span().map_or_else(Vec::new, |span| zoom.moments(span));
    let since = moments.first().map_or(0, |first| first.saturating_sub(2 * zoom.step_seconds));
    let millis: Vec<u64> = moments.iter().map(|seconds| seconds * 1000).collect();
    let mut told = Map::new();
    told.insert("timestamp".to_owned(), json!(millis));
    for figure in &TOLD {
        let values = figure.values(history, bucket, &moments, since, zoom);
        told.insert(figure.name.to_owned(), values.into());
    }
    json!({
        "op": {
            "samples": told,
            "samplesCount": moments.len(),
            "isPersistent": true,
            "lastTStamp": millis.last().copied().unwrap_or(0),
            "interval": zoom.step_seconds * 1000,
        },
        "hot_keys": [],
    })
}

impl Told {
    /// Its values at these moments, for which samples since a moment before are needed.
    fn values(
        &self,
        history: &StatsHistory,
        bucket: &str,
        moments: &[u64],
        since: u64,
        zoom: Zoom,
    ) -> Vec<f64> {
        let mut values = vec![0.0; moments.len()];
        for labels in self.labels {
            let of_bucket = (!OF_NODE.contains(&self.metric)).then_some(("bucket", bucket));
            let labels: Vec<_> = labels.iter().copied().chain(of_bucket).collect();
            for series in history.find(self.metric, &labels, since) {
                for (value, at) in values.iter_mut().zip(moments) {
                    *value += value_at(&series, *at, zoom.step_seconds, self.is_rate);
                }
            }
        }
        values
    }
}

/// 0 where there was no sample, or none before it that a rate could be of.
fn value_at(series: &Series, at: u64, step_seconds: u64, is_rate: bool) -> f64 {
    let distance = step_seconds.max(series.interval_seconds);
    let newest = |at: u64, age_max: u64| {
        let behind = series.points.partition_point(|point| point.seconds <= at);
        let point = series.points.get(behind.checked_sub(1)?)?;
        (point.seconds + age_max >= at).then_some(point)
    };
    let Some(this) = newest(at, distance) else { return 0.0 };
    if !is_rate {
        return this.value;
    }
    let before = this.seconds.checked_sub(distance).and_then(|at| newest(at, distance));
    before.map_or(0.0, |before| {
        let elapsed = this.seconds.saturating_sub(before.seconds).max(1);
        let elapsed = u32::try_from(elapsed).map_or(f64::MAX, f64::from);
        ((this.value - before.value) / elapsed).max(0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats_history::{Point, SeriesName, is_on_dashboards};

    #[test]
    fn every_figure_is_kept_for_as_long_as_it_is_told() {
        for figure in &TOLD {
            assert!(is_on_dashboards(figure.metric), "{}", figure.metric);
        }
    }

    #[test]
    fn a_zoom_ends_at_the_newest_sample_and_begins_where_there_is_one() {
        let [minute, hour, ..] = ZOOMS;
        assert_eq!(minute.moments((1_000, 2_000)).len(), 60);
        assert_eq!(minute.moments((1_998, 2_000)), [1_998, 1_999, 2_000]);
        assert_eq!(hour.moments((1_990, 2_000)), [1_992, 1_996, 2_000]);
        assert_eq!(minute.moments((0, 1)), [0, 1]);
        for zoom in ZOOMS {
            let steps = zoom.span_seconds / zoom.step_seconds;
            assert!((60..=1_500).contains(&steps), "{}: {steps}", zoom.name);
        }
    }

    #[test]
    fn a_rate_is_over_a_step_and_a_value_is_not_told_for_longer_than_one() {
        let points = [(100, 10.0), (101, 30.0), (102, 60.0), (110, 0.0)];
        let points = points.map(|(seconds, value)| Point { seconds, value }).into();
        let name = SeriesName { name: "kv_ops".to_owned(), labels: Vec::new() };
        let series = Series { name, interval_seconds: 1, points };
        for (at, step, value, rate) in [
            (100, 1, 10.0, 0.0),
            (102, 1, 60.0, 30.0),
            (102, 2, 60.0, 25.0),
            (104, 1, 0.0, 0.0),
            (110, 1, 0.0, 0.0),
        ] {
            assert_eq!(value_at(&series, at, step, false), value, "{at} {step}");
            assert_eq!(value_at(&series, at, step, true), rate, "{at} {step}");
        }
    }
}
