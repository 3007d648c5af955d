//! Settings of the original's cluster manager, as they are here.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Value, json};

use crate::answers;
use crate::authentication::User;
use crate::context::Context;

/// GET /settings/web
pub(super) async fn administrator(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
) -> Response {
    let port = context.view.cluster_map().this_address.management_port;
    answers::ok(&json!({"port": port, "username": user.name}))
}

/// GET /settings/autoFailover: nodes do not fail over by themselves.
pub(super) async fn auto_failover() -> Response {
    answers::ok(&json!({
        "enabled": false,
        "timeout": 120,
        "count": 0,
        "maxCount": 1,
        "disableMaxCount": false,
        "failoverOnDataDiskIssues": {"enabled": false, "timePeriod": 120},
        "canAbortRebalance": false,
        "failoverPreserveDurabilityMajority": false,
    }))
}

/// GET /settings/stats: nothing is sent to anybody.
pub(super) async fn stats() -> Response {
    answers::ok(&json!({"sendStats": false}))
}

/// The part of a file that nothing needs at which buckets begin to compact it, unless they are told
/// otherwise.
const FRAGMENTATION_PERCENT: u8 = 30;

/// GET /settings/autoCompaction: what all buckets begin with.
pub(super) async fn auto_compaction() -> Response {
    answers::ok(&json!({"autoCompactionSettings": auto_compaction_settings(), "purgeInterval": 3}))
}

/// The settings of all buckets.
pub(super) fn auto_compaction_settings() -> Value {
    json!({
        "parallelDBAndViewCompaction": false,
        "databaseFragmentationThreshold": {
            "percentage": FRAGMENTATION_PERCENT,
            "size": "undefined",
        },
        "viewFragmentationThreshold": {"percentage": "undefined", "size": "undefined"},
        "indexCompactionMode": "circular",
        "indexCircularCompaction": {
            "daysOfWeek": "",
            "interval": {
                "fromHour": 0,
                "toHour": 0,
                "fromMinute": 0,
                "toMinute": 0,
                "abortOutside": false,
            },
        },
        "indexFragmentationThreshold": {"percentage": "undefined"},
    })
}

/// GET /internalSettings
pub(super) async fn internal(State(context): State<Arc<Context>>) -> Response {
    answers::ok(&json!({
        "indexAwareRebalanceDisabled": true,
        "rebalanceIndexWaitingDisabled": true,
        "rebalanceIndexPausingDisabled": true,
        "rebalanceIgnoreViewCompactions": true,
        "maxBucketCount": context.view.node().bucket_count_max,
        "restRequestLimit": context.limits.connections_max,
    }))
}
