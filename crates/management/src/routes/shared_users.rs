//! Users, as the nodes of a cluster give them to each other.

use std::sync::Arc;

use auth::UserRegistry;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::named_bucket::Fields;
use crate::answers;
use crate::context::Context;

/// POST /settee/users: takes the users of another node if they count more than those here, with
/// `follows` only if they follow that revision. Answers those that are here behind that.
pub(super) async fn exchange(
    State(context): State<Arc<Context>>,
    Query(query): Query<Fields>,
    theirs: String,
) -> Response {
    let theirs = match UserRegistry::from_json(&theirs) {
        Ok(theirs) => theirs,
        Err(error) => return answers::refused("_", &error.to_string()),
    };
    let follows = match query.get("follows").map(|revision| revision.parse()) {
        Some(Err(_)) => return answers::refused("follows", "The value is a revision"),
        Some(Ok(revision)) => Some(revision),
        None => None,
    };
    let users = Arc::clone(&context.users);
    let taken = context.peer_work.spawn_blocking(move || {
        let taken = match follows {
            Some(revision) => users.adopt_behind(revision, theirs),
            None => users.adopt(theirs),
        };
        taken.map(|_is_ours_now| users.to_json())
    });
    match taken.await.unwrap_or_else(|_| Err("The node is shutting down".to_owned())) {
        Ok(ours) => answers::json_text(StatusCode::OK, ours),
        Err(why) => {
            let body = json!({"errors": {"_": why}}).to_string();
            answers::json_text(StatusCode::SERVICE_UNAVAILABLE, body)
        }
    }
}
