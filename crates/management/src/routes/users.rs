//! Users.

use std::collections::BTreeMap;
use std::sync::Arc;

use auth::{Role, RoleExtent, UserAccount, UserLimits, UserRegistry, UsersEdit};
use axum::Extension;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Path, State};
use axum::response::Response;
use serde_json::{Value, json};

use super::named_bucket::Fields;
use super::users_change::{carry_out, hashed, roles};
use crate::answers;
use crate::authentication::User;
use crate::context::Context;
use crate::date::rfc3339;

/// GET /settings/rbac/users and /settings/rbac/users/local
pub(super) async fn list(State(context): State<Arc<Context>>) -> Response {
    let registry = context.users.registry();
    let accounts = registry.accounts.iter();
    answers::ok(&accounts.map(|(name, account)| user_json(&registry, name, account)).collect())
}

/// GET /settings/rbac/users/local/{user}
pub(super) async fn one(State(context): State<Arc<Context>>, Path(name): Path<String>) -> Response {
    let registry = context.users.registry();
    match registry.accounts.get(&name) {
        Some(account) => answers::ok(&user_json(&registry, &name, account)),
        None => answers::not_found_text("Unknown user."),
    }
}

/// PUT /settings/rbac/users/local/{user}: name, password, roles, groups and limits.
pub(super) async fn change(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
    Path(name): Path<String>,
    form: Result<Form<Fields>, FormRejection>,
) -> Response {
    let Ok(Form(mut fields)) = form else {
        return answers::refused("_", "The body is a form");
    };
    let mut field = |name: &str| fields.remove(name);
    let (password, full_name) = (field("password"), field("name").unwrap_or_default());
    let (named_roles, groups) = (field("roles"), field("groups").unwrap_or_default());
    let limits = field("limits").unwrap_or_default();
    if let Some(unknown) = fields.into_keys().next() {
        return answers::refused(&unknown, "Unsupported key");
    }
    let registry = context.users.registry();
    let held = registry.accounts.get(&name).map_or(&[][..], |account| &account.roles);
    let roles = match roles(&context, &named_roles.unwrap_or_default(), held) {
        Ok(roles) => roles,
        Err(why) => return answers::refused("roles", &why),
    };
    let limits = match UserLimits::from_json(&limits) {
        Ok(limits) => limits,
        Err(why) => return answers::refused("limits", &why),
    };
    let password = match password {
        None => None,
        Some(password) => match hashed(&context, password).await {
            Ok(password) => Some(password),
            Err(refused) => return refused,
        },
    };
    let mut named = Vec::new();
    for group in groups.split(',').map(str::trim).filter(|group| !group.is_empty()) {
        if !named.iter().any(|it| it == group) {
            named.push(group.to_owned());
        }
    }
    let groups = named;
    let edit = UsersEdit::PutUser { user: name, password, full_name, roles, groups, limits };
    carry_out(&context, &user, edit).await
}

/// DELETE /settings/rbac/users/local/{user}
pub(super) async fn remove(
    State(context): State<Arc<Context>>,
    Extension(user): Extension<User>,
    Path(name): Path<String>,
) -> Response {
    carry_out(&context, &user, UsersEdit::RemoveUser(name)).await
}

/// GET /settings/rbac/users/external: users of other places are not known.
pub(super) async fn external() -> Response {
    answers::ok(&json!([]))
}

/// GET /settings/rbac/users/external/{user}
pub(super) async fn no_external() -> Response {
    answers::not_found_text("Unknown user.")
}

/// DELETE /settings/rbac/users/external/{user}
pub(super) async fn no_external_to_remove() -> Response {
    answers::not_found_text("User was not found.")
}

/// PUT /settings/rbac/users/external/{user}
pub(super) async fn refuse_external() -> Response {
    let why = "This server asks no other about users; make a local one";
    answers::refused("_", why)
}

fn user_json(registry: &UserRegistry, name: &str, account: &UserAccount) -> Value {
    let mut json = json!({
        "id": name,
        "domain": "local",
        "name": account.full_name,
        "roles": effective_roles(registry, account),
        "groups": account.groups,
        "external_groups": [],
    });
    if let (false, Some(fields)) = (account.limits.is_none(), json.as_object_mut()) {
        fields.insert("limits".to_owned(), json!({"kv": account.limits}));
    }
    let seconds = account.password_set_seconds.and_then(|seconds| i64::try_from(seconds).ok());
    if let (Some(seconds), Some(fields)) = (seconds, json.as_object_mut()) {
        fields.insert("password_change_date".to_owned(), json!(rfc3339(seconds)));
    }
    json
}

/// All roles of a user, each with where it comes from.
fn effective_roles(registry: &UserRegistry, account: &UserAccount) -> Value {
    let own = account.roles.iter().map(|role| (role, json!({"type": "user"})));
    let groups = account.groups.iter().filter_map(|name| Some((name, registry.groups.get(name)?)));
    let inherited = groups.flat_map(|(name, group)| {
        group.roles.iter().map(move |role| (role, json!({"type": "group", "name": name})))
    });
    let mut origins: BTreeMap<String, (&Role, Vec<Value>)> = BTreeMap::new();
    for (role, origin) in own.chain(inherited) {
        origins.entry(role.to_string()).or_insert((role, Vec::new())).1.push(origin);
    }
    let with_origins = |(role, origins): (&Role, Vec<Value>)| {
        let mut json = role_json(role);
        if let Some(fields) = json.as_object_mut() {
            fields.insert("origins".to_owned(), Value::Array(origins));
        }
        json
    };
    origins.into_values().map(with_origins).collect()
}

/// A role with what it is limited to.
pub(super) fn role_json(role: &Role) -> Value {
    let mut json = json!({"role": role.kind.name});
    let Some(fields) = json.as_object_mut() else { return json };
    let all = "*".to_owned();
    let mut say = |name: &str, value: &Option<String>| {
        fields.insert(name.to_owned(), json!(value.as_ref().unwrap_or(&all)));
    };
    if role.kind.extent >= RoleExtent::Bucket {
        say("bucket_name", &role.bucket);
    }
    if role.kind.extent >= RoleExtent::Scope {
        say("scope_name", &role.scope);
    }
    if role.kind.extent >= RoleExtent::Collection {
        say("collection_name", &role.collection);
    }
    json
}
