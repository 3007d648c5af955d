//! Users, to look at. Every user of this version may do everything.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::response::Response;
use serde_json::{Value, json};

use crate::answers;
use crate::authentication::User;
use crate::context::Context;

/// GET /whoami
pub(super) async fn whoami(Extension(User(name)): Extension<User>) -> Response {
    answers::ok(&json!({
        "id": name,
        "domain": "admin",
        "roles": [{"role": "admin"}],
        "name": "",
    }))
}

/// GET /settings/rbac/users and /settings/rbac/users/local
pub(super) async fn list(State(context): State<Arc<Context>>) -> Response {
    let users = context.users.names().iter().map(|name| user_json(name)).collect();
    answers::ok(&Value::Array(users))
}

/// GET /settings/rbac/users/local/{user}
pub(super) async fn one(State(context): State<Arc<Context>>, Path(name): Path<String>) -> Response {
    match context.users.credentials(&name) {
        Some(_) => answers::ok(&user_json(&name)),
        None => answers::not_found_text("Unknown user."),
    }
}

/// GET /settings/rbac/roles
pub(super) async fn roles() -> Response {
    answers::ok(&json!([{
        "role": "admin",
        "name": "Full Admin",
        "desc": "Can do everything. The one role of this version.",
    }]))
}

/// GET /settings/rbac/groups
pub(super) async fn groups() -> Response {
    answers::ok(&json!([]))
}

/// GET /settings/rbac/groups/{group}
pub(super) async fn group() -> Response {
    answers::not_found_text("Unknown group.")
}

/// Every change of users, groups and passwords.
pub(super) async fn refuse_change() -> Response {
    answers::refused("_", answers::FIXED_USERS)
}

fn user_json(name: &str) -> Value {
    json!({
        "id": name,
        "domain": "local",
        "name": "",
        "roles": [{"role": "admin", "origins": [{"type": "user"}]}],
        "groups": [],
        "external_groups": [],
    })
}
