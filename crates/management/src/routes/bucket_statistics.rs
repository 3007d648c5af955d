//! A bucket's figures by the names that the original's versions before 7 have: exporters of that
//! time still poll them.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::cluster::management_host;
use super::named_bucket::{Fields, NamedBucket};
use crate::answers;
use crate::context::Context;
use crate::stats_history::{self, Series, StatsHistory};

/// What a figure is made of.
struct Told {
    name: &'static str,
    /// As `/metrics` has it.
    metric: &'static str,
    labels: &'static [(&'static str, &'static str)],
    /// Whether its rise in a second is told, and not itself.
    is_rate: bool,
}

const fn now(name: &'static str, metric: &'static str) -> Told {
    Told { name, metric, labels: &[], is_rate: false }
}

const fn rate(
    name: &'static str,
    metric: &'static str,
    labels: &'static [(&'static str, &'static str)],
) -> Told {
    Told { name, metric, labels, is_rate: true }
}

const TOLD: [Told; 32] = [
    now("curr_items", "kv_curr_items"),
    now("curr_items_tot", "kv_curr_items_tot"),
    now("curr_temp_items", "kv_curr_temp_items"),
    now("ep_diskqueue_items", "kv_ep_diskqueue_items"),
    now("ep_max_size", "kv_ep_max_size"),
    now("ep_mem_high_wat", "kv_ep_mem_high_wat_bytes"),
    now("ep_mem_low_wat", "kv_ep_mem_low_wat_bytes"),
    now("ep_num_non_resident", "kv_ep_num_non_resident"),
    now("ep_queue_size", "kv_ep_queue_size"),
    now("disk_write_queue", "kv_ep_queue_size"),
    now("mem_used", "kv_mem_used_bytes"),
    rate("bytes_read", "kv_read_bytes", &[]),
    rate("bytes_written", "kv_written_bytes", &[]),
    rate("cas_badval", "kv_ops", &[("op", "cas"), ("result", "badval")]),
    rate("cas_hits", "kv_ops", &[("op", "cas"), ("result", "hit")]),
    rate("cmd_get", "kv_ops", &[("op", "get")]),
    rate("cmd_set", "kv_ops", &[("op", "set")]),
    rate("decr_hits", "kv_ops", &[("op", "decr"), ("result", "hit")]),
    rate("delete_hits", "kv_ops", &[("op", "delete"), ("result", "hit")]),
    rate("ep_bg_fetched", "kv_ep_bg_fetched", &[]),
    rate("ep_data_read_failed", "kv_ep_data_read_failed", &[]),
    rate("ep_data_write_failed", "kv_ep_data_write_failed", &[]),
    rate("ep_tmp_oom_errors", "kv_ep_tmp_oom_errors", &[]),
    rate("get_hits", "kv_ops", &[("op", "get"), ("result", "hit")]),
    rate("get_misses", "kv_ops", &[("op", "get"), ("result", "miss")]),
    rate("incr_hits", "kv_ops", &[("op", "incr"), ("result", "hit")]),
    rate("ops", "kv_ops", &[]),
    rate("vb_active_eject", "kv_ep_num_value_ejects", &[]),
    rate("vb_active_ops_create", "kv_vb_ops_create", &[]),
    rate("vb_active_ops_delete", "kv_vb_ops_delete", &[]),
    rate("vb_active_ops_update", "kv_vb_ops_update", &[]),
    rate("ep_total_persisted", "kv_ep_total_persisted", &[]),
];

/// Samples of the last minute.
const MINUTE_SAMPLES: usize = 6;

/// GET /pools/default/buckets/{bucket}/stats: of the node that is asked.
pub(super) async fn of_bucket(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
    Query(query): Query<Fields>,
) -> Response {
    answers::ok(&samples(&context.history, &bucket.map().name, query.get("zoom")))
}

/// GET /pools/default/buckets/{bucket}/nodes
pub(super) async fn nodes(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
) -> Response {
    let map = context.view.cluster_map();
    let name = bucket.map().name;
    let servers = map.nodes.iter().map(|node| {
        let host = management_host(node);
        let uri = format!("/pools/default/buckets/{name}/nodes/{}", host.replace(':', "%3A"));
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
        let mut told = samples(&context.history, &bucket.map().name, query.get("zoom"));
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

/// The samples of the last minute, or all that there are.
fn samples(history: &StatsHistory, bucket: &str, zoom: Option<&String>) -> Value {
    let mut times = history.times();
    if zoom.is_none_or(|zoom| zoom == "minute") {
        times.drain(..times.len().saturating_sub(MINUTE_SAMPLES));
    }
    let mut told = Map::new();
    let millis: Vec<u64> = times.iter().map(|seconds| seconds * 1000).collect();
    told.insert("timestamp".to_owned(), json!(millis));
    for figure in &TOLD {
        let labels: Vec<_> = figure.labels.iter().copied().chain([("bucket", bucket)]).collect();
        let all = history.find(figure.metric, &labels);
        let at = |seconds: &u64| all.iter().map(|series| value_at(series, *seconds, figure)).sum();
        told.insert(figure.name.to_owned(), times.iter().map(at).collect::<Vec<f64>>().into());
    }
    json!({
        "op": {
            "samples": told,
            "samplesCount": times.len(),
            "isPersistent": true,
            "lastTStamp": millis.last().copied().unwrap_or(0),
            "interval": stats_history::INTERVAL.as_secs() * 1000,
        },
        "hot_keys": [],
    })
}

/// 0 where there was no sample, or none before it that a rate could be of.
fn value_at(series: &Series, seconds: u64, figure: &Told) -> f64 {
    let found = series.points.binary_search_by_key(&seconds, |point| point.seconds);
    let Ok(index) = found else { return 0.0 };
    let point = |index: usize| series.points.get(index);
    let (Some(this), before) = (point(index), index.checked_sub(1).and_then(point)) else {
        return 0.0;
    };
    match before {
        _ if !figure.is_rate => this.value,
        None => 0.0,
        Some(before) => {
            let elapsed = this.seconds.saturating_sub(before.seconds).max(1);
            let elapsed = u32::try_from(elapsed).map_or(f64::MAX, f64::from);
            ((this.value - before.value) / elapsed).max(0.0)
        }
    }
}
