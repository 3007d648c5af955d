//! The vBuckets of a bucket one by one, and how long its work takes.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use cluster::PendingVbucket;
use serde_json::{Value, json};

use super::cluster::management_host;
use super::named_bucket::NamedBucket;
use crate::answers;
use crate::bucket_view::{BucketView, DamagedVbucket, Timing, TimingUnit, VbucketFacts};
use crate::context::Context;

/// The parts of all values up to which a histogram's largest ones are told.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// GET /settee/buckets/{bucket}/vbuckets
pub(super) async fn list(
    State(context): State<Arc<Context>>,
    NamedBucket(bucket): NamedBucket,
) -> Response {
    let cluster = context.view.cluster_map();
    let nodes: Value = cluster.nodes.iter().map(management_host).collect();
    answers::ok(&json!({
        "nodes": nodes,
        "thisNode": cluster.this_node,
        "vbuckets": vbuckets_json(&*bucket),
    }))
}

fn vbuckets_json(bucket: &dyn BucketView) -> Value {
    let here: BTreeMap<u16, VbucketFacts> =
        bucket.vbuckets().into_iter().map(|facts| (facts.vbid, facts)).collect();
    let damaged: BTreeMap<u16, DamagedVbucket> =
        bucket.damaged_vbuckets().into_iter().map(|damaged| (damaged.vbid, damaged)).collect();
    let pending: BTreeMap<u16, PendingVbucket> =
        bucket.pending_vbuckets().into_iter().map(|pending| (pending.vbid, pending)).collect();
    let incomplete = bucket.incomplete_vbuckets();
    let chains = bucket.map().chains;
    let one = |(vbid, chain): (u16, Vec<Option<usize>>)| {
        let mut fields = json!({
            "id": vbid,
            "chain": chain,
            "isIncomplete": incomplete.contains(&vbid),
            "damage": damaged.get(&vbid).map(|it| json!({"kind": it.kind, "reason": it.reason})),
            "pending":
                pending.get(&vbid).map(|it| json!({"wanted": it.wanted, "reason": it.reason})),
        });
        if let (Some(fields), Some(facts)) = (fields.as_object_mut(), here.get(&vbid)) {
            fields.insert("here".to_owned(), facts_json(facts));
        }
        fields
    };
    (0..).zip(chains).map(one).collect()
}

fn facts_json(facts: &VbucketFacts) -> Value {
    json!({
        "state": facts.state,
        "items": facts.items,
        "nonResidentItems": facts.non_resident_items,
        "highSeqno": facts.high_seqno,
        "persistedSeqno": facts.persisted_seqno,
        "unflushedItems": facts.unflushed_items,
        "replicationLag": facts.replication_lag,
    })
}

/// GET /settee/buckets/{bucket}/timings: histograms that are not empty. Durations are in
/// nanoseconds.
pub(super) async fn timings(NamedBucket(bucket): NamedBucket) -> Response {
    let timings = bucket.timings();
    let filled = timings.iter().filter(|timing| timing.values.count() > 0);
    answers::ok(&filled.map(timing_json).collect())
}

fn timing_json(timing: &Timing) -> Value {
    let (unit, factor) = match timing.unit {
        TimingUnit::Nanoseconds => ("ns", 1),
        TimingUnit::Microseconds => ("ns", 1_000),
        TimingUnit::Count => ("", 1),
    };
    let scaled = |value: u64| value.saturating_mul(factor);
    let values = &timing.values;
    let buckets: Value = values
        .buckets()
        .map(|bucket| json!([scaled(bucket.from), scaled(bucket.to), bucket.count]))
        .collect();
    let quantiles: serde_json::Map<String, Value> = QUANTILES
        .iter()
        .map(|(name, part)| ((*name).to_owned(), json!(scaled(values.value_at_quantile(*part)))))
        .collect();
    json!({
        "name": timing.name,
        "unit": unit,
        "count": values.count(),
        "mean": scaled(values.mean()),
        "min": scaled(values.min()),
        "max": scaled(values.max()),
        "quantiles": quantiles,
        "buckets": buckets,
    })
}
