//! What users ask about themselves.

use std::sync::Arc;

use auth::UsersEdit;
use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde_json::{Map, Value, json};

use super::form_fields::FormFields;
use super::users::role_json;
use super::users_change::{carry_out, hashed};
use crate::answers;
use crate::authentication::User;
use crate::context::Context;
use crate::permission::is_given;

/// Permissions in one request.
const PERMISSIONS_MAX: usize = 1_000;

/// GET /whoami. Full administrators are of the domain in which the original has them.
pub(super) async fn whoami(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
) -> Response {
    let registry = context.users.registry();
    let account = registry.accounts.get(&user.name);
    let roles: Vec<Value> = account
        .map(|account| registry.roles_of(account).map(role_json).collect())
        .unwrap_or_default();
    answers::ok(&json!({
        "id": user.name,
        "domain": if registry.is_admin(&user.name) { "admin" } else { "local" },
        "roles": roles,
        "name": account.map_or("", |account| account.full_name.as_str()),
    }))
}

/// POST /controller/changePassword: the user's own.
pub(super) async fn change_password(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
    FormFields(mut fields): FormFields,
) -> Response {
    let Some(password) = fields.remove("password").filter(|_| fields.is_empty()) else {
        return answers::refused("password", "The new password must be supplied, and nothing else");
    };
    match hashed(&context, password).await {
        Ok(password) => {
            // Whoever has the password may give itself another one.
            let edit = UsersEdit::SetPassword(user.name.clone(), password);
            carry_out(&context, &user, edit).await
        }
        Err(refused) => refused,
    }
}

/// POST /pools/default/checkPermissions: permissions with commas between them.
pub(super) async fn check_permissions(
    Extension(user): Extension<User>,
    permissions: String,
) -> Response {
    let asked = permissions.split([',', '\n']).map(str::trim).filter(|text| !text.is_empty());
    if asked.clone().count() > PERMISSIONS_MAX {
        return answers::refused("_", "At most 1000 permissions are checked at once");
    }
    let given: Map<String, Value> = asked
        .map(|permission| (permission.to_owned(), json!(is_given(&user.access, permission))))
        .collect();
    answers::ok(&Value::Object(given))
}
