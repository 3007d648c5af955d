//! The plan of the cluster: what this node does, and having it do something else.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use cluster::PendingVbucket;
use serde_json::{Map, Value, json};

use super::bucket_changes::is_trial;
use super::named_bucket::{Fields, named_entries};
use crate::answers;
use crate::bucket_view::BucketView;
use crate::context::Context;
use crate::node_view::CarryOutError;

/// GET /settee/clusterMap
pub(super) async fn show(State(context): State<Arc<Context>>) -> Response {
    let mut plan: Map<String, Value> =
        serde_json::from_str(&context.view.cluster_plan()).unwrap_or_default();
    let buckets = context.view.buckets();
    plan.insert("pending".to_owned(), pending(&buckets));
    plan.insert("incomplete".to_owned(), incomplete(&buckets));
    answers::ok(&Value::Object(plan))
}

/// How long a node waits for the ends of buckets before it answers. Less than those wait for the
/// answer who give it the plan.
const LEAVING_TIME_MAX: Duration = Duration::from_secs(10);

/// How soon it looks again.
const PAUSE: Duration = Duration::from_millis(5);

/// Behind the question mark: the answer waits for the ends of buckets that were just deleted.
const WAIT_FIELD: &str = "wait_for_deletions";

/// PUT /settee/clusterMap: answered when the node does its part, with what is left. With
/// `?just_validate=1` it only says whether it could.
pub(super) async fn carry_out(
    State(context): State<Arc<Context>>,
    Query(query): Query<Fields>,
    plan: String,
) -> Response {
    let view = context.view.clone();
    let is_trial = is_trial(&query);
    let waits = !is_trial && query.get(WAIT_FIELD).is_some_and(|value| value == "1");
    // The work is lost only when the runtime shuts down.
    let lost = || Err(CarryOutError::Stopping);
    let done = context.peer_work.spawn_blocking(move || view.carry_out(&plan, is_trial)).await;
    let (status, reason) = match done.unwrap_or_else(|_| lost()) {
        Ok(()) => {
            if waits {
                wait_for_leaving_buckets(&context).await;
            }
            return answers::ok(&json!({
                "pending": pending(&context.view.buckets()),
                "unsettled": context.view.unsettled(),
            }));
        }
        Err(CarryOutError::Invalid(reason)) => (StatusCode::BAD_REQUEST, reason),
        Err(CarryOutError::NotNow(reason)) => (StatusCode::SERVICE_UNAVAILABLE, reason),
        Err(CarryOutError::Older(reason)) => (StatusCode::CONFLICT, reason),
        Err(CarryOutError::Stopping) => {
            (StatusCode::SERVICE_UNAVAILABLE, "The node is shutting down".to_owned())
        }
    };
    answers::json_text(status, json!({"_": reason}).to_string())
}

/// Whoever has deleted a bucket on all nodes may make another of its name as soon as all have
/// answered. One that has not gone for long keeps nobody waiting.
async fn wait_for_leaving_buckets(context: &Context) {
    let gone = async {
        while context.view.has_leaving_buckets(LEAVING_TIME_MAX) {
            tokio::time::sleep(PAUSE).await;
        }
    };
    // What is left after that time goes later.
    drop(tokio::time::timeout(LEAVING_TIME_MAX, gone).await);
}

/// What is left, of all buckets.
fn pending(buckets: &[Arc<dyn BucketView>]) -> Value {
    let one = |left: PendingVbucket| {
        let PendingVbucket { vbid, wanted, reason } = left;
        json!({"vbucket": vbid, "wanted": wanted, "reason": reason})
    };
    named_entries(buckets, |bucket| bucket.pending_vbuckets().into_iter().map(one).collect())
}

/// The copies that are not whole yet: their numbers, or those of each bucket by its name where
/// there are several.
fn incomplete(buckets: &[Arc<dyn BucketView>]) -> Value {
    match buckets {
        [bucket] => json!(bucket.incomplete_vbuckets()),
        buckets => buckets
            .iter()
            .map(|bucket| (bucket.map().name, json!(bucket.incomplete_vbuckets())))
            .collect(),
    }
}
