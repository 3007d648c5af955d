//! How changes of users are made, and answered.

use std::sync::Arc;

use auth::{Editor, NewPassword, PrivilegeSet, Role, UsersEdit, UsersEditError};
use axum::http::StatusCode;
use axum::response::Response;
use platform::Clock;
use serde_json::json;

use crate::answers;
use crate::authentication::User;
use crate::context::Context;

/// The permission that only full administrators have.
const CHANGES_ADMINS: &str = "cluster.admin.security.admin!write";

/// Makes a change in the name of `user`.
pub(super) async fn carry_out(context: &Arc<Context>, user: &User, edit: UsersEdit) -> Response {
    let view = Arc::clone(&context.view);
    let is_admin = user.access.on_node() == PrivilegeSet::ALL;
    let editor = if is_admin { Editor::Admin } else { Editor::Other };
    let made = tokio::task::spawn_blocking(move || view.edit_users(&edit, editor)).await;
    // The change is lost only when the runtime shuts down.
    let lost = || Err(UsersEditError::Failed("The node is shutting down".to_owned()));
    match made.unwrap_or_else(|_| lost()) {
        Ok(pending) => answers::known_by_all_but(&pending, StatusCode::OK),
        Err(UsersEditError::NoUser) => answers::not_found_text("User was not found."),
        Err(UsersEditError::NoGroup) => answers::not_found_text("Group was not found."),
        Err(UsersEditError::NotAllowed) => answers::forbidden(CHANGES_ADMINS),
        Err(UsersEditError::Invalid(field, why)) => answers::refused(field, &why),
        Err(UsersEditError::Failed(why)) => {
            let body = json!({"errors": {"_": why}}).to_string();
            answers::json_text(StatusCode::SERVICE_UNAVAILABLE, body)
        }
    }
}

/// Hashes a password on a thread that has the milliseconds which that takes.
///
/// # Errors
/// What is wrong with it, as it is answered.
pub(super) async fn hashed(
    context: &Arc<Context>,
    password: String,
) -> Result<NewPassword, Response> {
    let policy = context.users.registry().policy;
    policy.check(&password).map_err(|why| answers::refused("password", &why))?;
    let users = Arc::clone(&context.users);
    let hash = move || users.hash(password.as_bytes(), now_seconds());
    let hashed = tokio::task::spawn_blocking(hash).await;
    hashed.map_err(|_| answers::refused("_", "The node is shutting down"))
}

fn now_seconds() -> u64 {
    Clock::real().wall_time().seconds().into()
}

/// The roles that a form names, in buckets, scopes and collections that there are. Those that are
/// `held` already may be said again: their scope may have been dropped meanwhile.
///
/// # Errors
/// Which are none, in the words of an answer.
pub(super) fn roles(context: &Context, text: &str, held: &[Role]) -> Result<Vec<Role>, String> {
    let unknown = match Role::parse_all(text) {
        Ok(roles) => {
            let is_unknown = |role: &&Role| !held.contains(role) && !is_defined(context, role);
            let unknown: Vec<String> =
                roles.iter().filter(is_unknown).map(Role::to_string).collect();
            if unknown.is_empty() {
                return Ok(roles);
            }
            unknown
        }
        Err(unknown) => unknown,
    };
    Err(format!(
        "Cannot assign roles to user because the following roles are unknown, malformed or role \
         parameters are undefined: [{}]",
        unknown.join(",")
    ))
}

/// Whether there is what the role is limited to.
fn is_defined(context: &Context, role: &Role) -> bool {
    let Some(name) = &role.bucket else { return true };
    let Some(bucket) = context.view.bucket(name) else { return false };
    let Some(name) = &role.scope else { return true };
    let manifest = bucket.manifest();
    let Some(scope) = manifest.scope(name) else { return false };
    let is_there = |name: &String| scope.collections.iter().any(|it| it.name == *name);
    role.collection.as_ref().is_none_or(is_there)
}
